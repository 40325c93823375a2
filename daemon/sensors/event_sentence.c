#include "daemon/sensors/event_sentence.h"

#include "daemon/base/focus_sentence.h"
#include "daemon/base/limit_sentence.h"
#include "daemon/base/novelty_sentence.h"
#include "daemon/sensors/limit_shown.h"
#include "daemon/sensors/novelty_shown.h"

#include <string.h>

/* How a sensor differs, of an alert whose event has no details. */
static void put_levels(FILE *out, const struct hk_event *e)
{
  switch (e->channel) {
  case HK_CHANNEL_SCORE:
  case HK_CHANNEL_CHANGE:
    fprintf(out, "%s: level %.6g before, %.6g after",
            e->channel == HK_CHANNEL_SCORE ? "looks unlike before" : "behaves differently", e->before, e->after);
    break;
  case HK_CHANNEL_GROUP:
    fprintf(out, "its sensors, taken together, behave differently: the one that differs most went from %.6g to %.6g", e->before,
            e->after);
    break;
  case HK_CHANNEL_NOVELTY:
    fprintf(out, "does what it has not done before: %.6g, where %.6g was expected", e->after, e->before);
    break;
  default:
    fprintf(out, "level went from %.6g to %.6g", e->before, e->after);
  }
}

void hk_event_sentence(FILE *out, const struct hk_event *e, const char *near)
{
  const struct hankel_event said = { .time = e->time,
                                     .from = e->from,
                                     .before = e->before,
                                     .after = e->after,
                                     .instant = e->instant,
                                     .spread_before = e->spread_before,
                                     .spread_after = e->spread_after,
                                     .novelty = hk_novelty_shown(e),
                                     .limit = hk_limit_shown(e) };
  if (said.novelty.kind != HANKEL_NO_NOVELTY)
    hk_novelty_sentence(out, &said);
  else if (e->marks & HANKEL_TRAVELS)
    hk_focus_sentence(out, &said, near);
  else if (said.limit.blocks > 0 && e->kind == HK_EVENT_CLEARED)
    fprintf(out, "the limit %.6g is no longer near", said.limit.limit);
  else if (said.limit.blocks > 0)
    hk_limit_sentence(out, &said);
  else
    put_levels(out, e);
}

size_t hk_event_said(const struct hk_event *e, const char *near, char out[HK_EVENT_SAID])
{
  FILE *file = fmemopen(out, HK_EVENT_SAID, "w");
  if (!file)
    return 0;
  out[0] = 0;
  hk_event_sentence(file, e, near);
  (void)fclose(file); /* fails if not all of it fits */
  return strnlen(out, HK_EVENT_SAID);
}

bool hk_event_says_no_instant(const struct hk_event *e)
{
  return !(e->marks & HANKEL_TRAVELS) && hk_limit_shown(e).blocks == 0;
}
