#include "daemon/config/incidents_rule.h"

#include "cpu/duration.h"
#include "cpu/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY INT64_C(86400000000000)
#define MOST_A_DAY 1e6

const struct hk_incidents_rule *hk_incidents_section(const struct hk_incidents_sections *all, const char *name)
{
  for (uint32_t i = 0; i < all->n; i++)
    if (strcmp(all->of[i].name, name) == 0)
      return &all->of[i];
  return NULL;
}

int hk_budget_parse(const char *text, double *a_day)
{
  char *end;
  if (strcmp(text, "off") == 0) {
    *a_day = 0;
    return 0;
  }
  const double number = strtod(text, &end);
  if (end == text || (*end && strcmp(end, "/day") != 0) || !(number >= 0) || number > MOST_A_DAY)
    return -EINVAL;
  *a_day = number;
  return 0;
}

static int incidents_rule_set_interval(struct hk_incidents_rule *rule, const char *value, char *error, size_t size)
{
  int64_t interval;
  if (hk_duration_parse(value, &interval) != 0 || interval <= 0 || interval > DAY) {
    snprintf(error, size, "interval = %.64s: not a duration up to a day, such as 250ms, 30s, 5m or 1h", value);
    return -EINVAL;
  }
  rule->interval = interval;
  return 0;
}

static int set_members(struct hk_incidents_rule *rule, const char *value, char *error, size_t size)
{
  char *end;
  const unsigned long number = strtoul(value, &end, 10);
  if (end == value || *end || value[0] == '-' || number < 1 || number > 0xffffff) {
    snprintf(error, size, "members = %.64s: not a whole number from 1 to %u", value, 0xffffffu);
    return -EINVAL;
  }
  rule->members = (uint32_t)number;
  return 0;
}

static int incidents_rule_set_match(struct hk_incidents_rule *rule, const char *value, char *error, size_t size)
{
  if (!value[0] || strlen(value) >= sizeof rule->match) {
    snprintf(error, size, "match = %.64s: not a glob of 1 to %zu bytes", value, sizeof rule->match - 1);
    return -EINVAL;
  }
  memcpy(rule->match, value, strlen(value) + 1);
  return 0;
}

int hk_incidents_key(struct hk_incidents_rule *rule, const char *name, const char *value, char *error, size_t size)
{
  if (strcmp(name, "interval") == 0)
    return incidents_rule_set_interval(rule, value, error, size);
  if (strcmp(name, "members") == 0)
    return set_members(rule, value, error, size);
  if (strcmp(name, "match") == 0)
    return incidents_rule_set_match(rule, value, error, size);
  if (strcmp(name, "budget") != 0) {
    snprintf(error, size, "no such key of [incidents]: %.64s; there are match, budget, interval and members", name);
    hk_suggest_of(name, "match, budget, interval, members", error, size);
  } else if (hk_budget_parse(value, &rule->a_day) == 0)
    return 0;
  else
    snprintf(error, size, "budget = %.64s: not messages a day from 0 to %.0f, such as 10/day, or off", value, MOST_A_DAY);
  return -EINVAL;
}
