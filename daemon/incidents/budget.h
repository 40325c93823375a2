/* Budget: a purse of messages, refilled by the data's clock, and the rank that an incident needs at its current level.
 *
 * In any 24 hours at most full + a_day messages are paid, whatever comes. Thread: one at a time. Owner: the caller. */
#ifndef HK_BUDGET_H
#define HK_BUDGET_H

#include "daemon/incidents/fleet_tail.h"

struct hk_budget { /* plain data: a copy is a snapshot */
  double a_day;    /* messages; 0: none is reported */
  double full;     /* the purse's size: half a day's messages, at least 3 */
  double tokens;   /* 0..full */
  int64_t time;    /* ns: the last refill */
  bool begun;
};

/* Half full. a_day >= 0. */
void hk_budget_init(struct hk_budget *budget, double a_day);
/* Changes the budget; the purse keeps its contents, as far as they fit. */
void hk_budget_change(struct hk_budget *budget, double a_day);
/* Advances the clock to `time` (ns); an earlier time changes nothing. */
void hk_budget_clock(struct hk_budget *budget, int64_t time);
/* The rank that an incident needs to be reported; infinite while the purse has less than one message. */
double hk_budget_threshold(const struct hk_budget *budget, const struct hk_fleet_tail *tail, double sensors);
/* Takes one message out; the threshold was finite. */
void hk_budget_pay(struct hk_budget *budget);

#endif
