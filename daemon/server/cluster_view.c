#include "daemon/server/cluster_view.h"

#include "daemon/bridge/cluster_mail.h"
#include "daemon/server/inquiry.h"
#include "daemon/server/server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct hk_outside hk_cluster_view_outside(struct hk_server *s)
{
  return (struct hk_outside){ s->receivers,     s->bridges,       s->cluster,    s->publishing,
                              s->shared.events, s->shared.scores, s->shared.mail };
}

static void cluster_view_notice(void *arg, struct hk_buffer *out)
{
  const struct hk_outside outside = hk_cluster_view_outside(arg);
  hk_outside_notice(out, &outside);
}

static uint64_t cluster_view_version(void *arg)
{
  struct hk_server *s = arg;
  struct hk_cluster_look look;
  hk_cluster_look(s->cluster, &look);
  return look.moves << 20 ^ look.partitions << 2 ^ (uint64_t)look.draining << 1 ^ look.state;
}

void hk_cluster_view_open(struct hk_server *s)
{
  static const struct hk_mail_answers answers = { .notice = cluster_view_notice,
                                                  .version = cluster_view_version,
                                                  .begin = hk_inquiry_of_other,
                                                  .result = hk_inquiry_result,
                                                  .drop = hk_inquiry_end };
  s->shared.answers = answers;
  s->shared.answers.arg = s;
  s->net.mail = &s->shared.answers;
}

/* The partitions that no machine that is there has; null if no scorer is known, as then nobody can say. */
static void cluster_view_missing(struct hk_server *s, struct hk_buffer *out, const struct hk_mail_machine *m, uint32_t n,
                                 uint32_t of)
{
  const char *comma = "";
  bool known = false;
  for (uint32_t k = 0; k < n; k++)
    known |= m[k].scores;
  hk_buffer_print(out, known ? ",\"unscored\":[" : ",\"unscored\":null");
  if (!known)
    return;
  for (uint32_t i = 0; i < of; i++) {
    struct hk_holder holder;
    bool there = false;
    if (hk_mail_holder(s->shared.mail, i, &holder))
      for (uint32_t k = 0; k < n; k++)
        there |= !m[k].away && strcmp(m[k].name, holder.machine) == 0;
    if (there)
      continue;
    hk_buffer_print(out, "%s%" PRIu32, comma, i);
    comma = ",";
  }
  hk_buffer_put(out, "]", 1);
}

void hk_cluster_view(void *arg, struct hk_buffer *out)
{
  struct hk_server *s = arg;
  struct hk_cluster_look l;
  struct hk_mail_machine *m = calloc(HK_MAIL_MACHINES, sizeof *m);
  hk_cluster_look(s->cluster, &l);
  const uint32_t n = m ? hk_mail_machines(s->shared.mail, true, m) : 0;
  hk_buffer_print(out, "{\"name\":");
  hk_json_string(out, l.name, strlen(l.name));
  hk_buffer_print(out, ",\"of\":%" PRIu32 ",\"machine\":\"%s\",\"machines\":[", l.of, hk_cluster_name(s->cluster));
  for (uint32_t i = 0; i < n; i++) {
    hk_buffer_print(out, "%s{\"name\":\"%s\",\"away\":%s,\"silent\":%.1f,\"has\":%" PRIu32 ",\"says\":%s}", i > 0 ? "," : "",
                    m[i].name, m[i].away ? "true" : "false", (double)m[i].silent * 1e-9, m[i].partitions,
                    m[i].report ? m[i].report : "{}");
    free(m[i].report);
  }
  hk_buffer_put(out, "]", 1);
  cluster_view_missing(s, out, m, n, l.of);
  hk_buffer_print(out, "}\n");
  free(m);
}
