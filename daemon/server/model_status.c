/* See model_status.h. */
#include "daemon/server/model_status.h"

#include "daemon/scoring/groups.h"
#include "daemon/scoring/machine.h"
#include "daemon/server/server.h"

#include <inttypes.h>

void hk_models_json(struct hk_buffer *out, const struct hk_server *s)
{
  struct hk_machine_models all = { 0 };
  for (uint32_t i = 0; i < s->shards.n; i++) {
    const struct hk_groups_count *one = hk_groups_count(s->shard[i].machines.fields);
    all.lines += one->lines;
    all.running += one->running;
    all.checks += one->checks;
    all.poor += one->poor;
    all.explained += one->explained;
  }
  hk_buffer_print(out, ",\"models\":{\"lines\":%" PRIu32 ",\"running\":%" PRIu32 ",\"checks\":%" PRIu32 ",\"poor\":%" PRIu32,
                  all.lines, all.running, all.checks, all.poor);
  if (all.checks > 0) {
    hk_buffer_print(out, ",\"explained\":");
    hk_json_number(out, (double)all.explained / 1e6 / all.checks, 4);
  }
  hk_buffer_put(out, "}", 1);
}
