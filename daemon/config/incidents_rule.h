/* What [incidents] says. Pure functions. */
#ifndef HK_INCIDENTS_RULE_H
#define HK_INCIDENTS_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hk_incidents_rule { /* null initialiser: all zero: there is no such section */
  bool wanted;
  double a_day;     /* messages; 0: all are withheld */
  int64_t interval; /* ns between points of a sensor; 0: not said */
  uint32_t members; /* sensors in open incidents, at most; 0: as many as usual */
};

/* Messages a day, as 10/day, 10, or off. 0, or -EINVAL. */
int hk_budget_parse(const char *text, double *a_day);
/* Sets a key. 0, or -EINVAL with a message. */
int hk_incidents_key(struct hk_incidents_rule *rule, const char *name, const char *value, char *error, size_t size);

#endif
