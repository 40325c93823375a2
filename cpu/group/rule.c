/* The keys of a group: see rule.h. */
#include "cpu/group/rule.h"
#include "cpu/detector.h"
#include "cpu/duration.h"
#include "cpu/rule_keys.h"
#include "cpu/rules/severity.h"
#include "cpu/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOVELTY_LEAST 100 /* rows */

struct hk_group_rule hk_group_default(void)
{
  return (struct hk_group_rule){ .shortest = 6,
                                 .hop = 3,
                                 .resident = 200,
                                 .wait = 4,
                                 .members = 256,
                                 .interval = 1000000000,
                                 .novelty_resident = 2500,
                                 .novelty_threshold = 1.6 };
}

double hk_group_unit(const struct hk_group_rule *rule, uint32_t members)
{
  if (rule->statistic == HK_GROUP_NOVELTY)
    return rule->novelty_threshold;
  return rule->threshold > 0 ? rule->threshold : 40 + 8.0 * members;
}

static int set_statistic(struct hk_group_rule *r, const char *value, char *error, size_t size)
{
  static const char *const words[] = { "joint", "novelty", "both" }; /* in the order of the enumeration */
  for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(value, words[i]) == 0) {
      r->statistic = i;
      return 0;
    }
  snprintf(error, size, "statistic = %s: not joint, novelty or both", value);
  hk_suggest_of(value, "joint, novelty, both", error, size);
  return -EINVAL;
}

int hk_group_set(struct hk_group_rule *r, const char *key, const char *value, char *error, size_t size)
{
  const struct {
    const char *name;
    uint32_t *out, least, most;
  } wholes[] = { { "shortest", &r->shortest, HK_GROUP_SHORTEST_MIN, HK_GROUP_RESIDENT_MAX },
                 { "hop", &r->hop, 1, HK_GROUP_RESIDENT_MAX },
                 { "resident", &r->resident, 2 * HK_GROUP_SHORTEST_MIN + 1, HK_GROUP_RESIDENT_MAX },
                 { "wait", &r->wait, 1, HK_GROUP_WAIT_MAX },
                 { "members", &r->members, 1, HK_GROUP_MEMBERS_MAX },
                 { "novelty.resident", &r->novelty_resident, NOVELTY_LEAST, HK_GROUP_RESIDENT_MAX - HK_GROUP_NOVELTY_AGE } };
  for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
    if (strcmp(key, wholes[i].name) == 0)
      return hk_rule_whole(wholes[i].out, wholes[i].least, wholes[i].most, key, value, error, size);
  if (strcmp(key, "statistic") == 0)
    return set_statistic(r, value, error, size);
  if (strcmp(key, "novelty.threshold") == 0) {
    char *end;
    const double number = strtod(value, &end);
    if (end != value && !*end && number > 0 && number <= HK_SEVERITY_MAX) {
      r->novelty_threshold = number;
      return 0;
    }
    snprintf(error, size, "%s = %s: not a number over 0 and at most %.0f", key, value, HK_SEVERITY_MAX);
    return -EINVAL;
  }
  if (strcmp(key, "interval") == 0) {
    int64_t interval;
    if (hk_duration_parse(value, &interval) == 0 && interval >= HK_GROUP_INTERVAL_MIN) {
      r->interval = interval;
      return 0;
    }
    snprintf(error, size, "%s = %s: not a duration such as 250ms or 5m, at least 1us", key, value);
    return -EINVAL;
  }
  if (strcmp(key, "threshold") == 0) {
    char *end;
    const double number = strtod(value, &end);
    const bool automatic = strcmp(value, "auto") == 0;
    if (automatic || (end != value && !*end && number > 0 && number <= 1e6)) {
      r->threshold = automatic ? 0 : number;
      return 0;
    }
    snprintf(error, size, "%s = %s: not auto, or a number over 0 and at most 1e6", key, value);
    return -EINVAL;
  }
  snprintf(error, size, "%s: there is no such key of a group", key);
  hk_suggest_of(
      key, "match, statistic, shortest, hop, resident, wait, members, interval, threshold, novelty.resident, novelty.threshold",
      error, size);
  return -EINVAL;
}

int hk_group_check(const struct hk_group_rule *r, char *error, size_t size)
{
  const bool limits = r->shortest >= HK_GROUP_SHORTEST_MIN && r->hop >= 1 && r->resident <= HK_GROUP_RESIDENT_MAX &&
                      r->wait >= 1 && r->wait <= HK_GROUP_WAIT_MAX && r->members >= 1 && r->members <= HK_GROUP_MEMBERS_MAX &&
                      r->interval >= HK_GROUP_INTERVAL_MIN && r->threshold >= 0 && isfinite(r->threshold) &&
                      r->statistic <= HK_GROUP_BOTH && r->novelty_resident >= NOVELTY_LEAST &&
                      r->novelty_resident <= HK_GROUP_RESIDENT_MAX - HK_GROUP_NOVELTY_AGE && r->novelty_threshold > 0 &&
                      isfinite(r->novelty_threshold);
  if (limits && r->resident >= 2 * (uint64_t)r->shortest + 1)
    return 0;
  if (limits)
    snprintf(error, size, "resident = %u: at least 2 shortest + 1 = %llu", r->resident, 2 * (unsigned long long)r->shortest + 1);
  else
    snprintf(error, size, "a key of a group is out of its limits");
  return -EINVAL;
}

static int rule_set(void *rule, const char *key, const char *value, char *error, size_t size)
{
  return hk_group_set(rule, key, value, error, size);
}

int hk_group_parse(const char *text, struct hk_group_rule *out, char *error, size_t size)
{
  *out = hk_group_default();
  const int status = hk_rule_parse(text, rule_set, out, error, size);
  return status == 0 ? hk_group_check(out, error, size) : status;
}
