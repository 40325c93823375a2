/* The section [incidents]. Pure functions. */
#ifndef HK_INCIDENTS_RULE_H
#define HK_INCIDENTS_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hk_incidents_rule { /* zero-initialised: there is no such section */
  bool wanted;
  double a_day;     /* messages; 0: all are withheld */
  int64_t interval; /* ns between points of a sensor; 0: not given */
  char match[513];  /* glob of the sensors of which incidents are made, ends with 0; "": all */
  uint32_t members; /* maximum number of sensors in open incidents; 0: the default */
};

/* Parses messages a day, as 10/day, 10, or off. Returns 0 or -EINVAL. */
int hk_budget_parse(const char *text, double *a_day);
/* Sets a key. Returns 0, or -EINVAL with a message. */
int hk_incidents_key(struct hk_incidents_rule *rule, const char *name, const char *value, char *error, size_t size);

#endif
