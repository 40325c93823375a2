#include "daemon/base/focus_sentence.h"
#include "daemon/base/novelty_sentence.h"

#include <math.h>

void hk_focus_sentence(FILE *out, const struct hankel_event *event, const char *near)
{
  char when[HK_TIMESTAMP_SIZE];
  hk_timestamp_say(event->instant, when);
  fprintf(out, "a change began at position %.6g%s%s%s at %s UTC and travels at %.6g a second", event->after,
          near[0] ? ", near " : "", near, near[0] ? "," : "", when, fabs((double)event->spread_after));
  if (event->spread_after < 0)
    fputs(" towards lower positions", out);
}
