#include "daemon/incidents/budget.h"

#include <math.h>

#define DEPTH .5       /* days of budget that the purse holds, */
#define FULL_LEAST 3.0 /* but so many messages at least */

void hk_budget_init(struct hk_budget *b, double a_day)
{
  *b = (struct hk_budget){ .a_day = a_day, .full = fmax(FULL_LEAST, a_day * DEPTH) };
  b->tokens = b->full / 2;
}

void hk_budget_change(struct hk_budget *b, double a_day)
{
  b->a_day = a_day;
  b->full = fmax(FULL_LEAST, a_day * DEPTH);
  b->tokens = fmin(b->tokens, b->full);
}

void hk_budget_clock(struct hk_budget *b, int64_t time)
{
  if (b->begun && time <= b->time)
    return;
  if (b->begun)
    b->tokens = fmin(b->full, b->tokens + b->a_day * (((double)time - (double)b->time) / (double)HK_DAY));
  b->begun = true;
  b->time = time;
}

double hk_budget_threshold(const struct hk_budget *b, const struct hk_fleet_tail *tail, double sensors)
{
  if (b->tokens < 1)
    return INFINITY;
  return hk_tail_threshold(tail, b->a_day * fmin(2, 2 * b->tokens / b->full), sensors);
}

void hk_budget_pay(struct hk_budget *b)
{
  b->tokens -= 1;
}
