#include "daemon/bridge/cluster_moves.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct hk_moves {
  atomic_uint waiting;
  uint32_t n;
  pthread_mutex_t lock; /* protects the following: */
  struct hk_move move[];
};

int hk_moves_new(struct hk_moves **out, uint32_t partitions)
{
  struct hk_moves *m = calloc(1, sizeof *m + partitions * sizeof *m->move);
  if (!m)
    return -ENOMEM;
  m->n = partitions;
  pthread_mutex_init(&m->lock, NULL);
  *out = m; /* complete: others may look at it */
  return 0;
}

void hk_moves_free(struct hk_moves *m)
{
  if (m)
    pthread_mutex_destroy(&m->lock);
  free(m);
}

static void move_enter(struct hk_moves *m, struct hk_move *one, enum hk_move_state state)
{
  atomic_fetch_add(&m->waiting, (unsigned)(state == HK_MOVE_WAITS) - (unsigned)(one->state == HK_MOVE_WAITS));
  one->state = state;
}

bool hk_moves_ask(struct hk_moves *m, uint32_t partition, int64_t now)
{
  struct hk_move *one = &m->move[partition];
  pthread_mutex_lock(&m->lock);
  const bool asks = !one->here;
  if (asks) {
    move_enter(m, one, HK_MOVE_WAITS);
    one->asked = one->sent = now;
    one->heard = false;
    one->why[0] = 0;
  }
  pthread_mutex_unlock(&m->lock);
  return asks;
}

void hk_moves_withdraw(struct hk_moves *m, uint32_t partition)
{
  pthread_mutex_lock(&m->lock);
  if (m->move[partition].state == HK_MOVE_WAITS)
    move_enter(m, &m->move[partition], HK_MOVE_NONE);
  pthread_mutex_unlock(&m->lock);
}

/* Whether a request waited, which it does no longer. */
static bool move_end(struct hk_moves *m, uint32_t partition, const char *why)
{
  struct hk_move *one = &m->move[partition];
  pthread_mutex_lock(&m->lock);
  const bool waited = one->state == HK_MOVE_WAITS;
  if (waited) {
    move_enter(m, one, HK_MOVE_OVER);
    snprintf(one->why, sizeof one->why, "%s", why);
  }
  pthread_mutex_unlock(&m->lock);
  return waited;
}

void hk_moves_end(struct hk_moves *m, struct hk_event_shared *log, const char *why)
{
  for (uint32_t i = 0; i < m->n && hk_moves_wait(m); i++)
    if (move_end(m, i, why))
      (void)hk_shared_append_holder(log, i, HK_HOLDERS_WITHDRAWN, NULL); /* without memory it counts for its whole time */
}

bool hk_moves_wait(const struct hk_moves *m)
{
  return atomic_load(&m->waiting) > 0;
}

bool hk_moves_turn(struct hk_moves *m, uint32_t partition, enum hk_holders_wish wish, int64_t now)
{
  struct hk_move *one = &m->move[partition];
  bool again = false;
  pthread_mutex_lock(&m->lock);
  if (one->state == HK_MOVE_WAITS) {
    const bool overruled = one->heard && wish == HK_WISH_OTHERS; /* before that it is perhaps an older wish */
    one->heard |= wish == HK_WISH_OURS;
    if (overruled || now - one->asked >= HK_MOVES_OVER)
      move_enter(m, one, overruled ? HK_MOVE_OVERRULED : HK_MOVE_OVER);
    else if (one->why[0] == 0) /* else the others would leave the partition to a machine that cannot take it */
      again = now - one->sent >= HK_MOVES_AGAIN && now - one->asked < HK_MOVES_OVER - HK_HOLDERS_WISH;
    if (again)
      one->sent = now;
  }
  pthread_mutex_unlock(&m->lock);
  return again;
}

void hk_moves_send_again(struct hk_moves *m, struct hk_event_shared *log, int64_t now)
{
  for (uint32_t i = 0; i < m->n && hk_moves_wait(m); i++)
    if (hk_moves_turn(m, i, hk_holders_wish(hk_shared_holders(log), i, now), now))
      (void)hk_shared_append_holder(log, i, HK_HOLDERS_AGAIN, NULL); /* without memory the next one is sent */
}

void hk_moves_fail(struct hk_moves *m, uint32_t partition, const char *why)
{
  pthread_mutex_lock(&m->lock);
  snprintf(m->move[partition].why, sizeof m->move[partition].why, "%s", why);
  pthread_mutex_unlock(&m->lock);
}

void hk_moves_take(struct hk_moves *m, uint32_t partition, bool wished, int64_t now)
{
  struct hk_move *one = &m->move[partition];
  pthread_mutex_lock(&m->lock);
  one->here = true;
  one->came = wished || one->state == HK_MOVE_WAITS ? now : 0;
  if (one->state == HK_MOVE_WAITS)
    move_enter(m, one, HK_MOVE_DONE);
  pthread_mutex_unlock(&m->lock);
}

void hk_moves_leave(struct hk_moves *m, uint32_t partition)
{
  pthread_mutex_lock(&m->lock);
  m->move[partition].here = false;
  m->move[partition].came = 0;
  pthread_mutex_unlock(&m->lock);
}

uint32_t hk_moves_shed(struct hk_moves *m, const bool *may)
{
  uint32_t first = UINT32_MAX;
  pthread_mutex_lock(&m->lock);
  for (uint32_t i = m->n; i-- > 0;)
    if (may[i] && (first == UINT32_MAX || m->move[i].came < m->move[first].came))
      first = i;
  pthread_mutex_unlock(&m->lock);
  return first;
}

void hk_moves_look(struct hk_moves *m, uint32_t partition, struct hk_move *out)
{
  pthread_mutex_lock(&m->lock);
  *out = m->move[partition];
  pthread_mutex_unlock(&m->lock);
}
