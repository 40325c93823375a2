#include "daemon/config/maintenance_rule.h"

#include "cpu/duration.h"
#include "daemon/config/section_keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND 1000000000ll
#define DAY 86400

/* Parses 2026-03-01T06:00:00Z. Returns NULL, or what is wrong. */
static const char *parse_time(const char *text, int64_t *out)
{
  struct tm utc = { 0 };
  const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  struct tm day = { .tm_year = utc.tm_year, .tm_mon = utc.tm_mon, .tm_mday = utc.tm_mday };
  const time_t seconds = end && *end == 0 ? timegm(&utc) : -1;
  if (seconds < 0 || seconds > INT64_MAX / SECOND)
    return "not a time such as 2026-03-01T06:00:00Z";
  const int wanted = day.tm_mday;
  if (timegm(&day) < 0 || day.tm_mday != wanted) /* 29 February would be taken for 1 March */
    return "there is no such day";
  *out = seconds * SECOND;
  return NULL;
}

int hk_daily_parse(const char *text, int32_t *from, int32_t *to)
{
  unsigned hour[2], minute[2];
  int read = 0;
  if (sscanf(text, "%2u:%2u-%2u:%2u%n", &hour[0], &minute[0], &hour[1], &minute[1], &read) != 4 || text[read] != 0 ||
      hour[0] > 23 || hour[1] > 24 || minute[0] > 59 || minute[1] > 59 || hour[1] * 60 + minute[1] > DAY / 60)
    return -EINVAL;
  *from = (int32_t)(hour[0] * 60 + minute[0]) * 60;
  *to = (int32_t)(hour[1] * 60 + minute[1]) * 60;
  return *from == *to ? -EINVAL : 0;
}

int hk_maintenance_key(struct hk_maintenance_rule *r, const char *name, const char *value, char *error, size_t size)
{
  const char *wanted = NULL;
  if (strcmp(name, "match") == 0) {
    if (value[0] == 0 || strlen(value) >= sizeof r->match)
      wanted = "a glob of 1 to 512 bytes; * matches every sensor";
    else
      snprintf(r->match, sizeof r->match, "%s", value);
  } else if (strcmp(name, "from") == 0) {
    wanted = parse_time(value, &r->from);
  } else if (strcmp(name, "to") == 0) {
    wanted = parse_time(value, &r->to);
  } else if (strcmp(name, "duration") == 0) {
    wanted = hk_duration_parse(value, &r->duration) != 0 ? "not a duration such as 90m or 2h" : NULL;
  } else if (strcmp(name, "daily") == 0) {
    wanted =
        hk_daily_parse(value, &r->daily_from, &r->daily_to) != 0 ? "not two times of the day (UTC) such as 22:00-04:30" : NULL;
  } else {
    static const char *const names[] = { "match", "from", "to", "duration", "daily" };
    return hk_section_no_key("maintenance", name, names, sizeof names / sizeof *names, sizeof *names, error, size);
  }
  if (wanted)
    snprintf(error, size, "%s = %.64s: %s", name, value, wanted);
  return wanted ? -EINVAL : 0;
}

int hk_maintenance_finish(struct hk_maintenance_rule *r, char *error, size_t size)
{
  const char *why = NULL;
  if (r->match[0] == 0)
    why = "needs match = GLOB, the sensors that it is for";
  else if (r->from == 0 && r->to == 0 && r->daily_from == r->daily_to)
    why = "needs from and to (or duration), or daily";
  else if (r->duration > 0 && (r->from == 0 || r->to != 0))
    why = "`duration` counts from `from` and replaces `to`";
  else if (r->duration > 0)
    r->to = r->duration < INT64_MAX - r->from ? r->from + r->duration : INT64_MAX;
  if (!why && r->to == 0)
    r->to = INT64_MAX;
  if (!why && r->to <= r->from)
    why = "`to` is not after `from`";
  if (why)
    snprintf(error, size, "%s", why);
  return why ? -EINVAL : 0;
}
