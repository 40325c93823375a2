/* Sections [incidents] and [incidents NAME]: each has a budget of its own. Pure functions. */
#ifndef HK_INCIDENTS_RULE_H
#define HK_INCIDENTS_RULE_H

#include <stddef.h>
#include <stdint.h>

#define HK_INCIDENTS_NAME 64u /* bytes of a name, with its 0 */
#define HK_INCIDENTS_MOST 16u /* sections */
#define HK_INCIDENTS_LATE 12u /* points, more than which data are late: HK_INCIDENT_WINDOW */

struct hk_incidents_rule {
  char name[HK_INCIDENTS_NAME]; /* "": [incidents] */
  double a_day;                 /* messages; 0: all are withheld */
  int64_t interval;             /* ns between points of a sensor; 0: not given */
  char match[513];              /* glob of the sensors of which incidents are made, ends with 0; "": all */
  uint32_t members;             /* maximum number of sensors in open incidents; 0: the default */
};
struct hk_incidents_sections { /* a sensor belongs to the first that matches it */
  struct hk_incidents_rule of[HK_INCIDENTS_MOST];
  uint32_t n; /* 0: no incidents are made */
};

/* The section of this name; NULL: there is none. */
const struct hk_incidents_rule *hk_incidents_section(const struct hk_incidents_sections *sections, const char *name);

/* Parses messages a day, as 10/day, 10, or off. Returns 0 or -EINVAL. */
int hk_budget_parse(const char *text, double *a_day);
/* Sets a key. Returns 0, or -EINVAL with a message. */
int hk_incidents_key(struct hk_incidents_rule *rule, const char *name, const char *value, char *error, size_t size);

#endif
