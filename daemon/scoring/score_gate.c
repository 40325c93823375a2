#include "daemon/scoring/score_gate.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <unistd.h>

int hk_score_gate_open(struct hk_score_gate *g)
{
  g->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  g->open = g->fd >= 0;
  return g->open ? 0 : -errno;
}

void hk_score_gate_close(struct hk_score_gate *g)
{
  if (g->open)
    close(g->fd);
  g->open = false;
}

uint64_t hk_score_gate_ask(struct hk_score_gate *g)
{
  const uint64_t one = 1;
  if (!g->open)
    return 0;
  const uint64_t asked = atomic_fetch_add(&g->asked, 1) + 1;
  const ssize_t n = write(g->fd, &one, sizeof one); /* it is readable in any case */
  (void)n;
  return asked;
}

bool hk_score_gate_passed(struct hk_score_gate *g, uint64_t asked)
{
  return atomic_load(&g->passed) >= asked;
}

static bool score_wait_look(struct hk_score_wait *w, struct hk_score_gate *g)
{
  const bool passed = hk_score_gate_passed(g, w->asked);
  if (passed)
    *w = (struct hk_score_wait){ .asked = w->asked };
  return passed;
}

void hk_score_wait_begin(struct hk_score_wait *w, struct hk_score_gate *g, int64_t now)
{
  (void)score_wait_look(w, g); /* before it asks anew: what it asks for now passes only later */
  w->asked = hk_score_gate_ask(g);
  if (w->since == 0)
    w->since = now;
}

bool hk_score_wait_over(struct hk_score_wait *w, struct hk_score_gate *g, int64_t now)
{
  if (score_wait_look(w, g))
    return true;
  w->without = w->without || now - w->since >= HK_SCORE_GATE_WITHOUT;
  return w->without;
}

uint64_t hk_score_gate_asked(struct hk_score_gate *g)
{
  uint64_t n;
  const ssize_t size = read(g->fd, &n, sizeof n);
  (void)size;
  const uint64_t asked = atomic_load(&g->asked);
  return asked > atomic_load(&g->passed) ? asked : 0;
}

void hk_score_gate_pass(struct hk_score_gate *g, uint64_t number)
{
  atomic_store(&g->passed, number);
}
