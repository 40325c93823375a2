#include "daemon/base/limit_sentence.h"
#include "daemon/base/novelty_sentence.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#define MINUTE ((int64_t)60000000000)
#define HOUR (60 * MINUTE)

/* "in 9 to 14 h", from the event's point on. */
static void put_interval(FILE *out, int64_t earliest, int64_t latest)
{
  const int64_t longer = latest == INT64_MAX ? earliest : latest;
  const int64_t unit = longer < 2 * HOUR ? MINUTE : longer < 72 * HOUR ? HOUR : 24 * HOUR;
  const char *name = unit == MINUTE ? "min" : unit == HOUR ? "h" : "days";
  const int64_t first = earliest / unit, last = latest / unit + (latest % unit > 0); /* outwards to whole ones */
  if (latest == INT64_MAX)
    fprintf(out, "in %" PRId64 " %s or later", first, name);
  else if (last <= first + 1)
    fprintf(out, "in %" PRId64 " %s", last, name);
  else
    fprintf(out, "in %" PRId64 " to %" PRId64 " %s", first, last, name);
}

void hk_limit_sentence(FILE *out, const struct hankel_event *event)
{
  const struct hankel_limit *l = &event->limit;
  const bool falls = l->slope < 0;
  if (l->reached <= event->time) {
    fprintf(out, "has reached its limit %.6g", l->limit);
  } else {
    char when[HK_TIMESTAMP_SIZE];
    hk_timestamp_format(l->reached - l->reached % MINUTE, when);
    fprintf(out, "%s %.6g ", falls ? "falls to" : "reaches", l->limit);
    put_interval(out, l->earliest - event->time, l->latest == INT64_MAX ? INT64_MAX : l->latest - event->time);
    fprintf(out, ", about %s", when);
  }
  fprintf(out, ": now %.6g, %s by %.3g an hour", event->after, falls ? "falls" : "grows", fabs((double)l->slope) * 3600);
}
