/* See confirms.h. */
#include "daemon/bridge/confirms.h"

#include "daemon/base/log.h"

#include <errno.h>
#include <stdio.h>

#define PATIENCE 10000000000 /* ns */

void hk_confirms_begin(struct hk_confirms *c)
{
  *c = (struct hk_confirms){ .low = 1, .progress = hk_now() };
}

bool hk_confirms_take(struct hk_confirms *c, const struct hk_broker_engine_event *e, void (*each)(void *arg, uint64_t number),
                      void *arg)
{
  const uint64_t low = c->low;
  if (e->number < low || e->number > c->sent)
    return false;
  for (uint64_t i = e->all ? low : e->number; i <= e->number; i++) {
    bool *confirmed = &c->confirmed[i % HK_CONFIRMS_MAX];
    if (!*confirmed && each)
      each(arg, i);
    *confirmed = true;
  }
  for (; c->low <= c->sent && c->confirmed[c->low % HK_CONFIRMS_MAX]; c->low++)
    c->confirmed[c->low % HK_CONFIRMS_MAX] = false;
  if (c->low != low)
    c->progress = hk_now();
  return c->low != low;
}

int hk_confirms_check(struct hk_confirms *c, bool blocked, char why[HK_ENGINE_WHY])
{
  if (blocked || hk_confirms_open(c) == 0)
    c->progress = hk_now();
  if (hk_now() - c->progress <= PATIENCE)
    return 0;
  snprintf(why, HK_ENGINE_WHY, "it has not confirmed a message for 10 s");
  return -ETIMEDOUT;
}
