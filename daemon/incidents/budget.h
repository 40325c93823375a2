/* Budget: a purse of messages, refilled by the data's clock, and what rank an incident needs while so much is in it.
 *
 * In any 24 hours at most full + a_day messages are paid, whatever comes. Thread: one at a time. Owner: the caller. */
#ifndef HK_BUDGET_H
#define HK_BUDGET_H

#include "daemon/incidents/fleet_tail.h"

struct hk_budget { /* plain data: a copy is a snapshot */
  double a_day;    /* messages; 0: none is told */
  double full;     /* most that the purse holds: half a day's, at least 3 */
  double tokens;   /* 0..full */
  int64_t time;    /* ns: when it was refilled */
  bool begun;
};

/* Half full. a_day >= 0. */
void hk_budget_init(struct hk_budget *budget, double a_day);
/* Another budget from now on; what is in the purse stays, as far as it has room. */
void hk_budget_change(struct hk_budget *budget, double a_day);
/* It is `time` (ns) now; one that is not later changes nothing. */
void hk_budget_clock(struct hk_budget *budget, int64_t time);
/* The rank that an incident needs to be told; infinite while there is less than one message in the purse. */
double hk_budget_threshold(const struct hk_budget *budget, const struct hk_fleet_tail *tail, double sensors);
/* Takes one out; the threshold was finite. */
void hk_budget_pay(struct hk_budget *budget);

#endif
