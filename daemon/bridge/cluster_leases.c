/* Scorer that shares the partitions with others ([cluster] state): the broker decides which partitions it has.
 *     away -> (connected) waiting -> LEASED: held -> lost, or shed -> away
 * Every scorer waits for the lease of every partition, each over a connection of its own, so that a dead scorer is replaced at
 * once, and a failure of one partition does not affect another. A scorer takes an offered lease while it has fewer than its
 * share (cluster_share.h); else it closes that connection, and the next in line gets the lease. A scorer with more than the
 * share, because another one came, sheds the rest: stops reading them, makes a snapshot, and closes their connections. So does
 * one that drains, with all, and one that has a partition that an operator has moved to another (event_holders.h). If the broker
 * keeps shares even by itself, a scorer takes what it is offered, and sheds what is recalled.
 * A partition is restored from the folder, and its log is read from the end of that state on. Until the next snapshot only the
 * log has later points: the next holder reads them again, with the same scores, events and numbers. */
#include "daemon/bridge/cluster_moves.h"
#include "daemon/bridge/cluster_part.h"
#include "daemon/bridge/cluster_progress.h"
#include "daemon/bridge/cluster_renewal.h"
#include "daemon/bridge/cluster_share.h"
#include "daemon/bridge/cluster_state.h"

#include "daemon/net/admission.h"
#include "daemon/scoring/snapshot_slices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ll
#define AGAIN (SECOND / 5)    /* before waiting again for a lease that was not taken, or lost */
#define TROUBLE (5 * SECOND)  /* likewise, after a failure */
#define SHED (10 * SECOND)    /* for a snapshot before partitions are shed without one, */
#define LAST (3 * SECOND / 2) /* and before the daemon ends */
#define TOGETHER 8u           /* connections made in one turn */
#define TURN (SECOND / 10)    /* for a partition before the next one has its turn */
#define AWAY (60 * SECOND)    /* a broker that could not be reached is not tried for a lease */
_Static_assert(HK_ENGINE_SILENCE *SECOND > SHED + HK_ENGINE_WAIT * SECOND, "who sheds is not taken for dead");

struct lease {
  struct hk_part part;       /* its engine is NULL while away */
  int64_t retry;             /* ns: when to wait again */
  bool held, shed, recalled; /* recalled: the broker wants it back */
  uint32_t broker;           /* that it waits over */
  uint32_t after;            /* it waits over the broker that follows the connected one by this number in turn */
  uint64_t epoch;            /* while held */
};

struct leases {
  struct lease *lease;           /* by partition */
  int state;                     /* the folder; -1: not open yet */
  int epoll;                     /* for their connections */
  uint32_t held;                 /* number of leases */
  struct hk_scorer_share share;  /* how many it may hold */
  int64_t away[HK_CLUSTER_URLS]; /* ns: until when a broker is not tried for leases */
  int64_t told;                  /* ns: when others were last notified of its partitions */
  uint32_t next;                 /* the next one to connect */
  int64_t spoken;                /* ns: when all feeds last had a sign of life, and members were counted */
  int64_t shed;                  /* ns: since when partitions are being shed; 0: none */
  uint64_t asked[HK_SHARDS_MAX]; /* numbers of the snapshots for that */
  struct hk_renewal renewal;     /* of the leases, and their offers */
  struct hk_part_room room;
};

static int begin(struct hk_cluster *c)
{
  struct leases *s = calloc(1, sizeof *s);
  c->state = s;
  if (!s)
    return -ENOMEM;
  s->state = -1;
  s->epoll = epoll_create1(EPOLL_CLOEXEC);
  s->lease = calloc(c->rule.partitions, sizeof *s->lease);
  int status = s->epoll < 0 ? -errno : s->lease ? hk_part_room_init(&s->room, c) : -ENOMEM;
  if (status == 0)
    status = hk_moves_new(&c->self.moves, c->rule.partitions);
  if (status != 0)
    return status;
  for (uint32_t i = 0; i < c->rule.partitions; i++)
    hk_part_init(&s->lease[i].part, i, &s->room);
  return 0;
}

static void finish(struct hk_cluster *c)
{
  struct leases *s = c->state;
  if (!s)
    return;
  if (s->state >= 0)
    close(s->state);
  if (s->epoll >= 0)
    close(s->epoll);
  hk_part_room_free(&s->room);
  hk_moves_free(c->self.moves);
  free(s->lease);
  free(s);
}

static void count_held(struct hk_cluster *c, int32_t more)
{
  struct leases *s = c->state;
  s->held += (uint32_t)more;
  pthread_mutex_lock(&c->lock);
  c->look.partitions = s->held;
  c->look.moves += more > 0;
  pthread_mutex_unlock(&c->lock);
}

/* --- giving up a partition ------------------------------------------------------------------------------------------------- */

/* Closes its connection, which gives up the lease, if we held it. */
static void go_away(struct hk_cluster *c, struct lease *l, int64_t pause)
{
  if (l->part.engine)
    c->kind->close(l->part.engine);
  l->part.engine = NULL;
  l->retry = hk_now() + pause;
}

/* Likewise, after a failure: the next broker is tried soon, and once all were, after a while. */
static void lease_elsewhere(struct hk_cluster *c, struct lease *l)
{
  l->after++;
  go_away(c, l, l->after % c->rule.n_brokers != 0 ? AGAIN : TROUBLE);
}

/* Forgets its sensors, unless the daemon ends. */
static void leave(struct hk_cluster *c, struct lease *l)
{
  hk_part_close(&l->part);
  if (hk_cluster_stops(c))
    return;
  const struct hk_partition_order o = { .what = HK_PARTITION_LEAVE, .held.partition = l->part.partition };
  const int status = hk_cluster_state_order(c, &o, NULL);
  if (status != 0 && status != -ECANCELED)
    hk_log(c->net->log, HK_LOG_ERROR, "[cluster] partition %" PRIu32 ": its sensors cannot be removed from memory: %s",
           l->part.partition, strerror(-status));
}

static void lose(struct hk_cluster *c, struct lease *l, const char *why)
{
  if (l->held) {
    hk_log(c->net->log, l->shed ? HK_LOG_NOTICE : HK_LOG_WARNING, "[cluster] partition %" PRIu32 " (epoch %" PRIu64 ") %s: %s",
           l->part.partition, l->epoch, l->shed ? "is another scorer's now" : "is lost", why);
    leave(c, l);
    hk_cluster_leaves(c, l->part.partition);
    hk_moves_leave(c->self.moves, l->part.partition);
    count_held(c, -1);
  }
  l->held = l->shed = l->recalled = false;
  go_away(c, l, AGAIN);
}

/* --- taking a partition ---------------------------------------------------------------------------------------------------- */

static enum hk_holders_wish lease_wish(const struct hk_cluster *c, const struct lease *l)
{
  return hk_holders_wish(hk_shared_holders(hk_cluster_shared(c)), l->part.partition, hk_now());
}

static bool may_take(const struct hk_cluster *c, const struct lease *l)
{
  const struct leases *s = c->state;
  const enum hk_holders_wish wish = lease_wish(c, l);
  if (!c->kind->count)
    return !atomic_load(&c->self.drains);
  return !atomic_load(&c->self.drains) && (wish == HK_WISH_OURS || (wish == HK_WISH_NONE && s->held < s->share.now));
}

static int hold(struct hk_cluster *c, struct lease *l, const struct hk_cluster_taken *t)
{
  struct hk_partition_order o = { .what = HK_PARTITION_HOLD,
                                  .held = { .partition = l->part.partition, .epoch = t->epoch, .base = t->at } };
  uint64_t at;
  snprintf(o.held.feed, sizeof o.held.feed, HK_OUR_FEEDS "%.100s %" PRIu32 "/%" PRIu32 " %" PRIu64, c->rule.name,
           l->part.partition, c->rule.partitions, t->epoch);
  int status = hk_part_open(c, &l->part, o.held.feed, &at);
  if (status != 0) {
    for (uint32_t i = 0; i < c->net->shards->n; i++)
      close(t->folder[i]);
    return status;
  }
  status = hk_cluster_state_order(c, &o, t->folder);
  if (status != 0)
    return hk_part_fail(&l->part, strerror(-status));
  return hk_part_follow(c, &l->part, t->at);
}

/* A state that its writer has just replaced (-EAGAIN) can be read the next time. */
static void note_state(struct hk_cluster *c, int status)
{
  struct leases *s = c->state;
  if (status == 0)
    hk_share_able(&s->share);
  if (status == 0 || status == -EAGAIN || !c->kind->count || hk_cluster_stops(c))
    return;
  const int64_t pause = hk_share_unable(&s->share, hk_now());
  if (pause > 0)
    hk_log(c->net->log, HK_LOG_WARNING,
           "[cluster] this machine is not counted among the scorers for %.0f s: others may take what it cannot",
           (double)pause * 1e-9);
}

/* Restores the last holder's state, and reads later messages. */
static int take(struct hk_cluster *c, struct lease *l)
{
  struct leases *s = c->state;
  struct hk_cluster_taken t;
  char why[HK_ENGINE_WHY];
  const int64_t begun = hk_now();
  const struct hk_broker_address *b = &c->rule.broker[l->broker];
  int status = hk_cluster_state_take(c, s->state, l->part.partition, &t, why);
  const bool made = status == 0;
  note_state(c, status);
  if (status == 0)
    status = hold(c, l, &t);
  else
    snprintf(l->part.engine->why, HK_ENGINE_WHY, "%s", why);
  if (status != 0) {
    hk_moves_fail(c->self.moves, l->part.partition, l->part.engine->why);
    if (!hk_cluster_stops(c))
      hk_log_peer(c->net->log, &c->quota, HK_LOG_ERROR, "cluster", "partition %" PRIu32 " cannot be taken over broker %s:%u: %s",
                  l->part.partition, b->host, b->port, l->part.engine->why);
    leave(c, l);
    if (made) /* every attempt makes an epoch */
      hk_cluster_state_drop(c, s->state, l->part.partition, t.epoch);
    lease_elsewhere(c, l);
    return 0;
  }
  l->held = true;
  l->epoch = t.epoch;
  hk_moves_take(c->self.moves, l->part.partition, lease_wish(c, l) == HK_WISH_OURS, hk_now());
  hk_cluster_begins(c, l->part.partition, t.epoch, l->part.wanted);
  count_held(c, 1);
  (void)hk_shared_append_holder(hk_cluster_shared(c), l->part.partition, t.epoch,
                                c->self.machine); /* without memory it is told later */
  hk_log(c->net->log, HK_LOG_NOTICE,
         "[cluster] partition %" PRIu32 " is scored here now (epoch %" PRIu64 "): %" PRIu32
         " sensors restored in %.2f s; its log is read from message %" PRIu64 " on",
         l->part.partition, t.epoch, t.sensors, (double)(hk_now() - begun) * 1e-9, hk_part_offset(t.at));
  if (t.anew > 0 || t.gone > 0)
    hk_log(c->net->log, HK_LOG_WARNING,
           "[cluster] partition %" PRIu32 ": %" PRIu32 " of its sensors warm up again, %" PRIu32
           " were not restored: detectors differ from those of its last scorer, or there is no room",
           l->part.partition, t.anew, t.gone);
  return 0;
}

/* --- turns ----------------------------------------------------------------------------------------------------------------- */

/* The broker to wait over: the connected one, or another if that could not read the partition's log to us. One broker of several
 * may give leases and lack logs: a scorer that stayed with it would keep partitions from all others. */
static uint32_t lease_broker(const struct hk_cluster *c, const struct lease *l)
{
  const struct leases *s = c->state;
  const uint32_t n = c->rule.n_brokers, connected = hk_cluster_broker(c);
  for (uint32_t i = 0; i < n; i++)
    if (hk_now() >= s->away[(connected + l->after + i) % n])
      return (connected + l->after + i) % n;
  return connected;
}

static void wait_for_lease(struct hk_cluster *c, struct lease *l)
{
  struct leases *s = c->state;
  char why[HK_ENGINE_WHY];
  struct hk_broker_engine *e;
  l->broker = lease_broker(c, l);
  int status = c->kind->open(&e, &c->rule, l->broker, c->engine, why);
  if (status != 0) {
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster", "partition %" PRIu32 ": cannot wait for its lease: %s",
                l->part.partition, why);
    s->away[l->broker] = hk_now() + AWAY;
    l->retry = hk_now() + TROUBLE;
    return;
  }
  l->part.engine = e;
  hk_renewal_wait(&s->renewal, l->part.partition);
  struct epoll_event event = { .events = EPOLLIN, .data.u32 = l->part.partition };
  status = c->kind->lease(e, l->part.partition);
  if (status == 0 && epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->kind->fd(e), &event) != 0)
    status = hk_part_fail(&l->part, strerror(errno));
  if (status == 0)
    return;
  hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster", "partition %" PRIu32 ": cannot wait for its lease: %s",
              l->part.partition, e->why);
  lease_elsewhere(c, l);
}

/* Processes the events of a partition. */
static void pump(struct hk_cluster *c, struct lease *l)
{
  struct hk_broker_engine_event e;
  int status = 0;
  const int64_t until = hk_now() + TURN;
  while (status == 0 && l->part.engine && !hk_cluster_stops(c)) {
    if (hk_now() > until) {
      c->more = true;
      break;
    }
    status = c->kind->next(l->part.engine, &e);
    if (status == 0 && e.what == HK_ENGINE_NOTHING)
      hk_part_rests(c, &l->part);
    if (status != 0 || e.what == HK_ENGINE_NOTHING)
      break;
    if (e.what == HK_ENGINE_MESSAGE && l->held)
      status = hk_part_came(c, &l->part, &e);
    else if (e.what == HK_ENGINE_RECALLED)
      l->recalled = true;
    else if (e.what == HK_ENGINE_LEASED && !may_take(c, l))
      go_away(c, l, AGAIN);
    else if (e.what == HK_ENGINE_LEASED)
      status = take(c, l);
  }
  if (status != 0) {
    lose(c, l, l->part.engine->why);
    l->after++;
  }
}

/* Requests the snapshots with which the next holder begins. */
static void ask_for_snapshots(struct hk_cluster *c)
{
  struct leases *s = c->state;
  for (uint32_t i = 0; i < c->net->shards->n; i++)
    s->asked[i] = hk_saver_ask(c->net->shards->shard[i].saver, true);
}

static bool have_snapshots(const struct hk_cluster *c)
{
  const struct leases *s = c->state;
  bool have = true;
  for (uint32_t i = 0; i < c->net->shards->n; i++)
    have &= hk_saver_finished(c->net->shards->shard[i].saver, s->asked[i]);
  return have;
}

/* Chooses the partitions to shed: those that the broker wants back, or that an operator has moved to another machine, then those
 * above the share. Returns their number. */
static uint32_t mark_to_shed(struct hk_cluster *c)
{
  struct leases *s = c->state;
  bool may[HK_PARTITIONS_MAX];
  uint32_t left = s->held;
  for (uint32_t i = 0; i < c->rule.partitions; i++)
    if (s->lease[i].held && (s->lease[i].recalled || (c->kind->count && lease_wish(c, &s->lease[i]) == HK_WISH_OTHERS))) {
      s->lease[i].shed = true;
      left--;
    }
  for (const uint32_t target = hk_share_exceeded(&s->share, left, hk_now()) ? s->share.now : left; left > target; left--) {
    for (uint32_t i = 0; i < c->rule.partitions; i++)
      may[i] = s->lease[i].held && !s->lease[i].shed;
    s->lease[hk_moves_shed(c->self.moves, may)].shed = true;
  }
  return s->held - left;
}

/* Sheds partitions: their last messages are taken, then a snapshot has them, then they are given up. */
static void shed(struct hk_cluster *c)
{
  struct leases *s = c->state;
  const int64_t now = hk_now();
  if (s->shed == 0 && mark_to_shed(c) > 0) {
    s->shed = now;
    ask_for_snapshots(c);
  }
  if (s->shed == 0 || (!have_snapshots(c) && now - s->shed < SHED))
    return;
  for (uint32_t i = 0; i < c->rule.partitions; i++)
    if (s->lease[i].shed)
      lose(c, &s->lease[i], atomic_load(&c->self.drains) ? "this machine is draining" : "the scorers' shares have changed");
  s->shed = 0;
}

/* Repeats to others what this machine has, because the log does not keep messages for ever. */
static void tell_others(struct hk_cluster *c)
{
  struct leases *s = c->state;
  if (hk_now() - s->told < c->rule.retention / 4)
    return;
  s->told = hk_now();
  for (uint32_t i = 0; i < c->rule.partitions; i++)
    if (s->lease[i].held)
      (void)hk_shared_append_holder(hk_cluster_shared(c), i, s->lease[i].epoch, c->self.machine);
}

static int leases_turn(struct hk_cluster *c)
{
  struct leases *s = c->state;
  const int64_t now = hk_now();
  const bool speak = now - s->spoken >= SECOND;
  uint32_t connect = TOGETHER;
  int status = 0;
  if (speak) {
    s->spoken = now;
    status = hk_share_count(c, &s->share, s->held);
    tell_others(c);
  }
  const bool drains = atomic_load(&c->self.drains);
  const bool renew = hk_renewal_due(c, &s->renewal, speak, now);
  drains ? hk_moves_end(c->self.moves, hk_cluster_shared(c), "this machine is draining")
         : hk_moves_send_again(c->self.moves, hk_cluster_shared(c), now);
  for (uint32_t i = 0; i < c->rule.partitions && status == 0 && !hk_cluster_stops(c); i++) {
    struct lease *l = &s->lease[(s->next + i) % c->rule.partitions];
    if (drains && l->part.engine && !l->held)
      go_away(c, l, 0);
    if (!l->part.engine && !drains && now >= l->retry && connect > 0) {
      connect--;
      wait_for_lease(c, l);
    }
    if (l->part.engine && !l->shed)
      pump(c, l);
    if (l->part.engine)
      hk_renewal_turn(c, &s->renewal, l->part.partition, renew && l->held);
    if ((l->held && l->part.owed && hk_part_settle(c, &l->part) != 0) || (l->held && speak && hk_part_sign(c, &l->part) != 0))
      lose(c, l, l->part.engine->why);
  }
  s->next = (s->next + 1) % c->rule.partitions;
  if (status == 0)
    shed(c);
  return status;
}

static int greeted(struct hk_cluster *c)
{
  struct leases *s = c->state;
  int status = 0;
  if (s->state < 0)
    status = hk_cluster_state_open(c, &s->state, c->engine->why);
  for (uint32_t i = 0; i < c->rule.partitions && status == 0 && !hk_cluster_stops(c); i++)
    status = c->kind->log(c->engine, i);
  s->spoken = hk_now();
  return status == 0 ? hk_share_count(c, &s->share, s->held) : status;
}

static void lost(struct hk_cluster *c)
{
  struct leases *s = c->state;
  const struct timespec moment = { 0, 5000000 };
  const int64_t until = hk_now() + LAST;
  if (hk_cluster_stops(c) && s->held > 0) {
    ask_for_snapshots(c);
    while (!have_snapshots(c) && hk_now() < until)
      (void)nanosleep(&moment, NULL);
  }
  for (uint32_t i = 0; i < c->rule.partitions; i++) {
    lose(c, &s->lease[i], c->engine->why[0] ? c->engine->why : "the daemon ends");
    s->lease[i].after = 0;
  }
  hk_renewal_close(c, &s->renewal);
  s->shed = 0;
}

static int came(struct hk_cluster *c, const struct hk_broker_engine_event *e)
{
  (void)c;
  (void)e; /* events of leased partitions come over their own connections */
  return 0;
}

static void alive(struct hk_cluster *c)
{
  struct leases *s = c->state;
  for (uint32_t i = 0; i < c->rule.partitions; i++)
    if (s->lease[i].part.engine)
      (void)c->kind->alive(s->lease[i].part.engine); /* a lost connection is reported by the next call */
  if (s->renewal.engine)
    (void)c->kind->alive(s->renewal.engine);
}

static int fd(const struct hk_cluster *c)
{
  return ((const struct leases *)c->state)->epoll;
}

const struct hk_cluster_work hk_cluster_leases = { .thread = "scorer",
                                                   .as = "a scorer",
                                                   .scores = true,
                                                   .leases = true,
                                                   .begin = begin,
                                                   .finish = finish,
                                                   .greeted = greeted,
                                                   .lost = lost,
                                                   .came = came,
                                                   .turn = leases_turn,
                                                   .fd = fd,
                                                   .alive = alive };
