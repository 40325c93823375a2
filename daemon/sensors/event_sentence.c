#include "daemon/sensors/event_sentence.h"

#include "daemon/base/focus_sentence.h"
#include "daemon/base/limit_sentence.h"
#include "daemon/base/novelty_sentence.h"
#include "daemon/sensors/limit_shown.h"
#include "daemon/sensors/novelty_shown.h"

#include <stdbool.h>
#include <string.h>

void hk_event_sentence(FILE *out, const struct hk_event *e, const char *near)
{
  const bool over = e->kind == HK_EVENT_CLEARED;
  char when[HK_TIMESTAMP_SIZE];
  const struct hankel_event said = { .time = e->time,
                                     .from = e->from,
                                     .before = e->before,
                                     .after = e->after,
                                     .instant = e->instant,
                                     .spread_before = e->spread_before,
                                     .spread_after = e->spread_after,
                                     .novelty = hk_novelty_shown(e),
                                     .limit = hk_limit_shown(e) };
  if (said.novelty.kind != HANKEL_NO_NOVELTY && !over) {
    hk_novelty_sentence(out, &said);
  } else if (e->marks & HANKEL_TRAVELS) {
    hk_focus_sentence(out, &said, near);
  } else if (said.limit.blocks > 0 && !over) {
    hk_limit_sentence(out, &said);
  } else if (said.limit.blocks > 0) {
    fprintf(out, "the limit %.6g is no longer near", said.limit.limit);
  } else {
    hk_timestamp_say(e->instant, when);
    fprintf(out, "level went from %.6g to %.6g at %s UTC", e->before, e->after, when);
  }
}

size_t hk_event_said(const struct hk_event *e, char out[HK_EVENT_SAID])
{
  FILE *file = fmemopen(out, HK_EVENT_SAID, "w");
  if (!file)
    return 0;
  out[0] = 0;
  hk_event_sentence(file, e, "");
  (void)fclose(file); /* fails if not all of it fits */
  return strnlen(out, HK_EVENT_SAID);
}
