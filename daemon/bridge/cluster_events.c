/* Events: publishes what this machine appends to the shared log of events, and copies the log (durable/event_copy.h), in order.
 *
 *     connected -> our mark is published -> read back: everything that was there before is copied, and is shown
 *
 * A machine that has something to do for all (receivers of alerts, incidents) waits for the lease of the leader, over a
 * connection of its own. Its holder publishes a mark that says so, and leads once that is read back: by then it knows what its
 * predecessor has done. It leads no longer when either connection is lost. */
#include "daemon/bridge/cluster_internal.h"
#include "daemon/bridge/confirms.h"
#include "daemon/durable/event_copy.h"
#include "daemon/durable/event_shared.h"
#include "daemon/net/loop.h"
#include "daemon/scoring/hand_over.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SECOND 1000000000ll
#define WINDOW 1024u         /* maximum number of unconfirmed messages */
#define HASHES (1u << 18)    /* a message whose sensor has the hash of another one's, modulo this, waits, too */
#define TROUBLE (5 * SECOND) /* before waiting for the lease again, after a failure */
#define TOGETHER 256u        /* messages that are read before subscribers hear of them */

struct events {
  struct hk_eventlog *log;             /* the copy */
  struct hk_event_shared *shared;      /* what it has of the shared one */
  uint64_t next;                       /* offset of the next message; HK_ENGINE_FIRST: none was read */
  const struct hk_shared_message *out; /* the last one published on this connection; NULL: none */
  uint64_t base;                       /* number of the outgoing before this connection's first */
  struct hk_confirms confirms;
  uint32_t round;                 /* of messages: one begins when none is unconfirmed */
  uint32_t about[HASHES];         /* by the hash of a sensor: the last round with a message of it */
  bool about_all;                 /* the round has a message that is none of a sensor */
  uint64_t greeting;              /* number of our mark at the begin of the connection; 0: it is still to be appended */
  uint32_t fresh;                 /* messages read since subscribers heard of any */
  int epoll;                      /* for outgoing messages, and the lease */
  struct hk_broker_engine *lease; /* NULL: none is waited for */
  bool leased, leads;
  uint64_t mark; /* while leased: number of the mark of the lease; 0: still to be appended */
  int64_t retry; /* ns: when to wait for the lease again */
};

static int events_begin(struct hk_cluster *c)
{
  struct events *s = calloc(1, sizeof *s);
  c->state = s;
  if (!s)
    return -ENOMEM;
  s->log = c->net->shards->events;
  s->shared = hk_eventlog_shared(s->log);
  s->next = HK_ENGINE_FIRST;
  s->epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = { .events = EPOLLIN };
  return s->epoll < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, hk_shared_fd(s->shared), &event) != 0 ? -errno : 0;
}

static void events_finish(struct hk_cluster *c)
{
  struct events *s = c->state;
  if (s && s->epoll >= 0)
    close(s->epoll);
  free(s);
}

/* --- the lease -------------------------------------------------------------------------------------------------------------- */

static void lead(struct hk_cluster *c, bool leads)
{
  struct events *s = c->state;
  if (s->leads != leads)
    hk_log(c->net->log, HK_LOG_NOTICE, "[cluster] %s",
           leads ? "this machine is the leader now: it sends alerts" : "this machine is no longer the leader");
  s->leads = leads;
  pthread_mutex_lock(&c->lock);
  c->look.leads = leads;
  pthread_mutex_unlock(&c->lock);
  hk_shared_lead(s->shared, leads);
}

static void give_up_lease(struct hk_cluster *c, int64_t pause)
{
  struct events *s = c->state;
  lead(c, false);
  if (s->lease)
    c->kind->close(s->lease);
  s->lease = NULL;
  s->leased = false;
  s->mark = 0;
  s->retry = hk_now() + pause;
}

static void events_wait_for_lease(struct hk_cluster *c)
{
  struct events *s = c->state;
  char why[HK_ENGINE_WHY];
  int status = c->kind->open(&s->lease, &c->rule, hk_cluster_broker(c), c->engine, why);
  if (status != 0)
    s->lease = NULL;
  struct epoll_event event = { .events = EPOLLIN };
  if (status == 0)
    status = c->kind->lease(s->lease, HK_ENGINE_EVENTS);
  if (status == 0 && c->kind->renew)
    status = c->kind->renew(s->lease, HK_ENGINE_EVENTS); /* it reads no log, so it may be one of those that publish */
  if (status != 0 && s->lease)
    snprintf(why, sizeof why, "%.200s", s->lease->why);
  if (status == 0 && epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->kind->fd(s->lease), &event) != 0) {
    status = -errno;
    snprintf(why, sizeof why, "%s", strerror(errno));
  }
  if (status == 0)
    return;
  hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster", "cannot wait for the leader's lease: %s", why);
  give_up_lease(c, TROUBLE);
}

/* Processes the lease's connection, and leads if it can. */
static void look_at_lease(struct hk_cluster *c)
{
  struct events *s = c->state;
  struct hk_broker_engine_event e;
  int status = 0;
  if (!hk_shared_wants(s->shared) || !hk_shared_is_ready(s->shared)) {
    if (s->lease)
      give_up_lease(c, 0);
    return;
  }
  if (!s->lease && hk_now() >= s->retry)
    events_wait_for_lease(c);
  while (s->lease && (status = c->kind->next(s->lease, &e)) == 0 && e.what != HK_ENGINE_NOTHING)
    s->leased |= e.what == HK_ENGINE_LEASED;
  if (status != 0) {
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster", "the leader's lease is lost: %s", s->lease->why);
    give_up_lease(c, SECOND);
  }
  if (s->leased && s->mark == 0)
    s->mark = hk_shared_mark(s->shared, true);
  if (s->leased && s->mark > 0 && hk_shared_marked(s->shared) >= s->mark)
    lead(c, true);
}

/* --- the log ---------------------------------------------------------------------------------------------------------------- */

/* Subscribers hear of new events, and savers of confirmed ones. */
static void events_tell(struct hk_cluster *c)
{
  struct events *s = c->state;
  s->fresh = 0;
  for (uint32_t i = 0; i < c->net->n_loops; i++)
    hk_wake_up(&c->net->loops[i].wake, HK_WAKE_WORK);
  for (uint32_t i = 0; i < c->net->shards->n; i++)
    hk_wake_up(&c->net->shards->shard[i].life.wake, HK_WAKE_WORK);
  hk_shard_settled(&c->net->shards->shard[0]); /* connections wait for acknowledgements to be confirmed */
}

static int events_greeted(struct hk_cluster *c)
{
  struct events *s = c->state;
  int status = c->kind->log(c->engine, HK_ENGINE_EVENTS);
  if (status == 0)
    status = c->kind->follow(c->engine, HK_ENGINE_EVENTS, s->next, 0);
  s->out = NULL;
  hk_confirms_begin(&s->confirms);
  s->greeting = 0;
  return status;
}

static void events_confirm(struct events *s, const struct hk_broker_engine_event *e)
{
  if (!hk_confirms_take(&s->confirms, e, NULL, NULL))
    return;
  if (hk_confirms_open(&s->confirms) == 0)
    s->out = NULL; /* the next one is the first of the remaining ones */
  hk_shared_confirmed(s->shared, s->base + s->confirms.low - 1);
  s->fresh++;
}

static int events_take(struct hk_cluster *c, const struct hk_broker_engine_event *e)
{
  struct events *s = c->state;
  const char *why;
  if (s->next != HK_ENGINE_FIRST && e->offset < s->next) {
    snprintf(c->engine->why, sizeof c->engine->why,
             "the log of events begins again at %" PRIu64 ", and %" PRIu64 " was next: after deleting it, restart all machines",
             e->offset, s->next);
    return -EPROTO;
  }
  s->next = e->offset + 1;
  if (!hk_copy_take(s->log, e->offset, e->data, e->size, &why))
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster", "event %" PRIu64 " is left out: %s", e->offset, why);
  if (++s->fresh >= TOGETHER)
    events_tell(c);
  if (hk_cluster_stops(c) && !hk_shared_is_ready(s->shared)) {
    snprintf(c->engine->why, sizeof c->engine->why, "the daemon ends");
    return -ECANCELED;
  }
  return c->kind->took(c->engine);
}

static int events_came(struct hk_cluster *c, const struct hk_broker_engine_event *e)
{
  if (e->what == HK_ENGINE_CONFIRMED)
    events_confirm(c->state, e);
  return e->what == HK_ENGINE_MESSAGE && e->partition == HK_ENGINE_EVENTS ? events_take(c, e) : 0;
}

/* Whether a message may be published while others are unconfirmed. A message that is lost between brokers and published again
 * must not come after a later one of its sensor, because it would then be taken for a repeated one; others keep their order,
 * too. */
static bool events_may_go(struct events *s, const struct hk_shared_message *m)
{
  if (hk_confirms_open(&s->confirms) == 0) {
    s->round++;
    s->about_all = false;
  } else if (m->about == 0 || s->about_all || s->about[m->about / 2 % HASHES] == s->round) {
    return false;
  }
  s->about_all = m->about == 0;
  s->about[m->about / 2 % HASHES] = s->round;
  return true;
}

/* Publishes appended messages, as far as the broker accepts them. */
static int events_publish(struct hk_cluster *c)
{
  struct events *s = c->state;
  const struct hk_shared_message *m;
  int status = 0;
  while (status == 0 && !c->look.blocked && hk_confirms_open(&s->confirms) < WINDOW &&
         (m = hk_shared_outgoing(s->shared, s->out)) != NULL && events_may_go(s, m)) {
    if (s->confirms.sent == 0)
      s->base = m->number - 1;
    s->out = m;
    s->confirms.sent++;
    status = c->kind->publish(c->engine, HK_ENGINE_EVENTS, m->message, m->size);
  }
  return status;
}

static int events_turn(struct hk_cluster *c)
{
  struct events *s = c->state;
  hk_shared_woken(s->shared);
  if (s->greeting == 0)
    s->greeting = hk_shared_mark(s->shared, false);
  int status = events_publish(c);
  if (status == 0)
    status = hk_cluster_pump(c);
  if (s->greeting > 0 && hk_shared_marked(s->shared) >= s->greeting && !hk_shared_is_ready(s->shared)) {
    hk_shared_ready(s->shared);
    s->fresh++;
    hk_log(c->net->log, HK_LOG_INFO, "[cluster] the log of events is read up to position %" PRIu64, hk_eventlog_last(s->log));
  }
  if (status == 0)
    look_at_lease(c);
  if (s->fresh > 0)
    events_tell(c);
  pthread_mutex_lock(&c->lock);
  c->look.waiting = (uint32_t)hk_shared_waiting(s->shared);
  pthread_mutex_unlock(&c->lock);
  c->more =
      status == 0 && !c->look.blocked && hk_confirms_open(&s->confirms) == 0 && hk_shared_outgoing(s->shared, s->out) != NULL;
  return status == 0 ? hk_confirms_check(&s->confirms, c->look.blocked, c->engine->why) : status;
}

static void events_lost(struct hk_cluster *c)
{
  give_up_lease(c, 0); /* unconfirmed messages stay */
}

static void events_alive(struct hk_cluster *c)
{
  struct events *s = c->state;
  if (s->lease)
    (void)c->kind->alive(s->lease); /* a lost connection is reported by the next call */
}

static int events_fd(const struct hk_cluster *c)
{
  return ((const struct events *)c->state)->epoll;
}

const struct hk_cluster_work hk_cluster_events = { .thread = "events",
                                                   .as = "a reader of events",
                                                   .begin = events_begin,
                                                   .finish = events_finish,
                                                   .greeted = events_greeted,
                                                   .lost = events_lost,
                                                   .came = events_came,
                                                   .turn = events_turn,
                                                   .fd = events_fd,
                                                   .alive = events_alive };
