/* Scores: what a machine shares of its results, and what it shows of those of others, over the log of scores.
 *
 *     subscribers here want results -> this machine joins the group of listeners, and reads the log from now on; after a loss of
 *                                      the connection from the message behind the last one that it has shown
 *     others listen -> an inner connection subscribes to all results of this machine -> messages (score_message.h) -> the log
 *     the log -> results that are known already, or are ours, are left out -> loops, for their subscribers
 *
 * While no machine listens, nothing is published, if the broker knows that. A new owner of a partition computes again what the
 * former one had computed since its last snapshot: of a sensor, results up to the time of the last one are left out, and so are
 * late ones. A snapshot counts once the broker has confirmed the results that it includes, so none of those before it is missing.
 * Messages that the broker has not confirmed are published again after a loss of the connection. While it takes none,
 * the inner connection is not read, and the publisher counts what it drops for it, as for any slow subscriber. */
#include "daemon/bridge/cluster_scores_out.h"
#include "daemon/net/loop.h"
#include "daemon/publish/shown.h"
#include "daemon/scoring/others.h"
#include "proto/wire/score_message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SECOND 1000000000ll
#define LINGER (600 * SECOND) /* scores are shared for so long after the last listener was seen: the log keeps them as long, */
#define EARLY (6 * SECOND)    /* and so long from the start on, */
#define AGAIN (60 * SECOND)   /* or from a new connection on, until listeners are back and counted */

/* What it shows. */
struct scores_in {
  bool listens, follows;
  uint64_t next;   /* offset of the next message; HK_ENGINE_NEXT: any that came since: */
  int64_t since;   /* ns, wall clock: when the first subscriber here began to listen */
  bool asked;      /* no message has come since this connection asked for the next one */
  int64_t *last;   /* ns, by slot of the others: time of its last result */
  atomic_uint out; /* messages that loops have not released */
  int back;        /* eventfd: they have released one */
  bool owed;       /* messages are to be acknowledged once loops have released them */
  uint64_t shown, repeated, refused;
  uint64_t missed; /* messages that the broker no longer had */
};

struct scores {
  int epoll;
  int64_t counted; /* ns: when listeners were last counted */
  uint32_t others; /* other machines that listen */
  int64_t until;   /* ns: until when it shares its scores */
  struct hk_scores_out out;
  struct scores_in in;
};

/* --- from others ------------------------------------------------------------------------------------------------------------ */

/* Thread: any. */
static void scores_released(struct hk_shown *shown)
{
  struct scores_in *in = shown->owner;
  const uint64_t one = 1;
  free(shown);
  atomic_fetch_sub(&in->out, 1);
  const ssize_t n = write(in->back, &one, sizeof one);
  (void)n;
}

/* Memory for n results, in one piece. */
static struct hk_shown *scores_shown(struct scores_in *in, uint32_t n)
{
  struct hk_shown *shown = malloc(sizeof *shown + n * (8 + 8 + 8 + 4 + 4 + 1));
  if (!shown)
    return NULL;
  *shown = (struct hk_shown){ .batch = { .kind = HK_BATCH_POINTS, .capacity = n }, .released = scores_released, .owner = in };
  shown->batch.time = (int64_t *)(shown + 1);
  shown->batch.value = (double *)(shown->batch.time + n);
  shown->sequence = (uint64_t *)(shown->batch.value + n);
  shown->batch.slot = (uint32_t *)(shown->sequence + n);
  shown->batch.score = (float *)(shown->batch.slot + n);
  shown->batch.state = (uint8_t *)(shown->batch.score + n);
  return shown;
}

/* Whether a result is none that was shown; then it is the last one. Its time decides, which ascends: a new owner counts points
 * that its snapshot has already, and are late, so sequences may differ. */
static bool scores_is_new(int64_t *last, int64_t time)
{
  const bool new = time > *last;
  *last = new ? time : *last;
  return new;
}

/* The results of a message that are not known yet. NULL: none, or there is no memory. */
static struct hk_shown *scores_new_ones(struct hk_cluster *c, struct hk_score_message *m)
{
  struct scores_in *in = &((struct scores *)c->state)->in;
  const struct hk_scores *f = &m->scores;
  uint32_t slot[HK_SCORE_MESSAGE_MAX], n = 0;
  int64_t time[HK_SCORE_MESSAGE_MAX];
  struct hk_shown *shown = scores_shown(in, f->n);
  if (!shown)
    return NULL;
  for (uint32_t i = 0; i < m->names.n; i++) {
    struct hk_string name;
    uint32_t handle;
    hk_names_next(&m->names, &handle, &name);
    if (hk_others_take(c->net->others, name, &slot[i]) != 0)
      slot[i] = UINT32_MAX;
  }
  hk_scores_times(f, time);
  struct hk_batch *b = &shown->batch;
  for (uint32_t i = 0; i < f->n; i++) {
    uint32_t number;
    uint64_t sequence = 0;
    memcpy(&number, (const uint8_t *)f->handles + i * sizeof number, sizeof number);
    if (f->sequences)
      memcpy(&sequence, (const uint8_t *)f->sequences + i * sizeof sequence, sizeof sequence);
    if (slot[number] == UINT32_MAX) {
      in->refused++;
      continue;
    }
    if (!scores_is_new(&in->last[slot[number]], time[i])) {
      in->repeated++;
      continue;
    }
    b->slot[n] = slot[number];
    b->time[n] = time[i];
    memcpy(&b->value[n], (const uint8_t *)f->values + i * sizeof *b->value, sizeof *b->value);
    memcpy(&b->score[n], (const uint8_t *)f->scores + i * sizeof *b->score, sizeof *b->score);
    b->state[n] = f->states ? ((const uint8_t *)f->states)[i] : HANKEL_OK;
    shown->sequence[n++] = sequence;
  }
  b->n = n;
  if (!f->sequences)
    shown->sequence = NULL;
  if (n > 0)
    return shown;
  free(shown);
  return NULL;
}

/* Gives results to the loops that have subscribers for them. */
static void scores_hand_over(struct hk_cluster *c, struct hk_shown *shown)
{
  struct scores_in *in = shown->owner;
  in->shown += shown->batch.n;
  atomic_fetch_add(&in->out, 1);
  atomic_init(&shown->holders, c->net->n_loops + 1);
  for (uint32_t i = 0; i < c->net->n_loops; i++) {
    struct hk_loop *l = &c->net->loops[i];
    if (atomic_load_explicit(&l->shared.listeners, memory_order_acquire) == 0 || !hk_loop_show(l, shown))
      hk_shown_release(shown);
  }
  hk_shown_release(shown);
}

/* The first message after a request: the broker may no longer have those before it. */
static void scores_begin_at(struct hk_cluster *c, uint64_t offset)
{
  struct scores_in *in = &((struct scores *)c->state)->in;
  in->asked = false;
  if (in->next == HK_ENGINE_NEXT || offset <= in->next)
    return;
  in->missed += offset - in->next;
  hk_log(c->net->log, HK_LOG_WARNING,
         "[cluster] scores: %" PRIu64
         " messages of other machines were not kept until they were read; their results are not shown here",
         offset - in->next);
}

/* A message that cannot be read. Its results are not shown here; nothing else is made of them. */
static void scores_leave_out(struct hk_cluster *c, const struct hk_broker_engine_event *e, const char *why)
{
  const uint8_t version = hk_frame_version(e->data, e->size);
  if (version > HK_PROTOCOL_VERSION)
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster",
                "scores: message %" PRIu64
                " is left out: it is of version %u; this hankeld reads version %d: upgrade this machine",
                e->offset, version, HK_PROTOCOL_VERSION);
  else
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster", "scores: message %" PRIu64 " is left out: %s", e->offset, why);
  pthread_mutex_lock(&c->lock);
  c->look.bad++;
  pthread_mutex_unlock(&c->lock);
}

static void scores_take(struct hk_cluster *c, const struct hk_broker_engine_event *e)
{
  struct scores *s = c->state;
  struct hk_score_message m;
  const char *why;
  if (s->in.asked)
    scores_begin_at(c, e->offset);
  s->in.next = e->offset + 1;
  s->in.owed = true;
  if (hk_score_message_read(e->data, e->size, &m, &why) != 0) {
    scores_leave_out(c, e, why);
    return;
  }
  if (m.writer == s->out.writer)
    return;
  const uint64_t refused = s->in.refused;
  struct hk_shown *shown = scores_new_ones(c, &m);
  if (s->in.refused > refused)
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster",
                "scores of %" PRIu64 " results of other machines are not shown: there is no room for their sensors (max_sensors)",
                s->in.refused - refused);
  if (shown)
    scores_hand_over(c, shown);
}

/* Lets the broker send more once the loops have published the previous results. */
static int scores_settle(struct hk_cluster *c)
{
  struct scores *s = c->state;
  uint64_t n;
  const ssize_t size = read(s->in.back, &n, sizeof n);
  (void)size;
  if (!s->in.owed || atomic_load(&s->in.out) > 0)
    return 0;
  s->in.owed = false;
  return c->kind->took(c->engine);
}

/* Whether this machine shares its scores. When the broker is back, listeners may be later than the points that have waited. */
static bool scores_shares(const struct hk_cluster *c)
{
  return c->rule.role != HK_CLUSTER_GATEWAY && hk_now() < ((const struct scores *)c->state)->until;
}

/* --- begin and end ---------------------------------------------------------------------------------------------------------- */

static int scores_begin(struct hk_cluster *c)
{
  const uint32_t most = c->net->config->max_sensors;
  struct scores *s = calloc(1, sizeof *s);
  c->state = s;
  if (!s)
    return -ENOMEM;
  s->in.next = HK_ENGINE_NEXT;
  s->epoll = epoll_create1(EPOLL_CLOEXEC);
  s->in.back = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  s->in.last = malloc(most * sizeof *s->in.last);
  int status = hk_scores_out_begin(&s->out, most, s->epoll);
  if (!s->in.last || status != 0)
    return s->in.last ? status : -ENOMEM;
  for (uint32_t i = 0; i < most; i++)
    s->in.last[i] = INT64_MIN;
  s->until = hk_now() + EARLY; /* perhaps some listen: so nothing is missed until they are counted */
  struct epoll_event event = { .events = EPOLLIN };
  if (s->epoll < 0 || s->in.back < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->in.back, &event) != 0 ||
      epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->net->shards->scores.fd, &event) != 0)
    return -errno;
  if (scores_shares(c))
    hk_scores_out_open(c, &s->out);
  return 0;
}

static void scores_finish(struct hk_cluster *c)
{
  struct scores *s = c->state;
  if (!s)
    return;
  hk_scores_out_close(&s->out); /* open if it never was connected */
  hk_scores_out_finish(&s->out);
  if (s->epoll >= 0)
    close(s->epoll);
  if (s->in.back >= 0)
    close(s->in.back);
  free(s->in.last);
  free(s);
}

/* --- turns ------------------------------------------------------------------------------------------------------------------ */

static int scores_greeted(struct hk_cluster *c)
{
  struct scores *s = c->state;
  hk_confirms_begin(&s->out.confirms);
  s->in.follows = s->in.listens = s->in.owed = false;
  s->counted = 0;
  if (s->out.fd >= 0 && s->until < hk_now() + AGAIN)
    s->until = hk_now() + AGAIN;
  return c->kind->log(c->engine, HK_ENGINE_SCORES);
}

static bool scores_wanted_here(const struct hk_cluster *c)
{
  bool wanted = false;
  for (uint32_t i = 0; i < c->net->n_loops; i++)
    wanted |= atomic_load_explicit(&c->net->loops[i].shared.listeners, memory_order_acquire) > 0;
  return wanted;
}

/* Informs others whether this machine listens, and counts those that do. */
static int scores_count(struct hk_cluster *c)
{
  struct scores *s = c->state;
  uint32_t all = 0;
  int status = 0;
  s->in.listens = scores_wanted_here(c);
  if (s->in.listens && !s->in.follows) {
    s->in.follows = s->in.asked = true;
    status = c->kind->follow(c->engine, HK_ENGINE_SCORES, s->in.next, s->in.since);
    s->in.since = s->in.since > 0 ? s->in.since : hk_wall();
  } else if (!s->in.listens && !s->in.follows) {
    s->in.next = HK_ENGINE_NEXT; /* a later subscriber wants no earlier results */
    s->in.since = 0;
  }
  if (status == 0 && !c->kind->count)
    all = s->in.listens + 1u; /* perhaps another one does */
  else if (status == 0)
    status = c->kind->count(c->engine, HK_ENGINE_LISTENERS, s->in.listens, &all);
  s->counted = hk_now();
  s->others = all - (s->in.listens && all > 0);
  if (s->others > 0 || (s->in.listens && all == 0)) /* or the broker does not know */
    s->until = s->counted + LINGER;
  c->more = true; /* the answers may have come with messages, which the socket no longer shows */
  return status;
}

static void scores_note(struct hk_cluster *c)
{
  const struct scores *s = c->state;
  pthread_mutex_lock(&c->lock);
  c->look.members = s->others;
  c->look.points = s->out.results;
  c->look.lost = s->out.lost;
  c->look.waiting = s->out.n;
  c->look.shown = s->in.shown;
  c->look.repeated = s->in.repeated;
  c->look.refused = s->in.refused;
  c->look.missed = s->in.missed;
  pthread_mutex_unlock(&c->lock);
  atomic_store(&c->self.unsent, s->out.fd >= 0 || s->out.n + s->out.n_waiting > 0);
}

/* Lets snapshots pass that include what the broker has confirmed (score_gate.h). */
static void scores_pass(struct hk_cluster *c)
{
  struct hk_scores_out *o = &((struct scores *)c->state)->out;
  struct hk_score_gate *gate = &c->net->shards->scores;
  for (uint64_t asked, passed; (asked = hk_score_gate_asked(gate)) != 0;) {
    hk_scores_out_mark(o, asked);
    if ((passed = hk_scores_out_marked(o)) == 0)
      break;
    hk_score_gate_pass(gate, passed);
  }
}

static int scores_turn(struct hk_cluster *c)
{
  struct scores *s = c->state;
  int status = 0;
  if (hk_now() - s->counted >= SECOND)
    status = scores_count(c);
  const bool shares = scores_shares(c);
  if (shares && s->out.fd < 0 && hk_now() >= s->out.retry)
    hk_scores_out_open(c, &s->out);
  if (s->out.fd >= 0 && (!shares || !hk_scores_out_hear(c, &s->out)))
    hk_scores_out_close(&s->out);
  if (!shares)
    hk_scores_out_discard(&s->out);
  if (status == 0)
    status = hk_scores_out_publish(c, &s->out);
  if (status == 0)
    status = hk_cluster_pump(c);
  if (status == 0)
    status = scores_settle(c);
  scores_pass(c);
  c->more |= s->out.n == 0 && s->out.n_waiting > 0 && !c->look.blocked; /* the last round was confirmed just now */
  scores_note(c);
  return status == 0 ? hk_confirms_check(&s->out.confirms, c->look.blocked, c->engine->why) : status;
}

static int scores_came(struct hk_cluster *c, const struct hk_broker_engine_event *e)
{
  struct scores *s = c->state;
  if (e->what == HK_ENGINE_CONFIRMED)
    hk_scores_out_confirm(&s->out, e);
  else if (e->what == HK_ENGINE_MESSAGE && e->partition == HK_ENGINE_SCORES)
    scores_take(c, e);
  return 0;
}

static void scores_lost(struct hk_cluster *c)
{
  struct scores *s = c->state;
  if (hk_cluster_stops(c))
    hk_scores_out_close(&s->out); /* else it stays, and its results are published over the next connection */
}

/* While its messages have no room the inner connection stays readable. */
static int scores_fd(const struct hk_cluster *c)
{
  const struct scores *s = c->state;
  return hk_scores_out_room(&s->out) ? s->epoll : s->in.back;
}

const struct hk_cluster_work hk_cluster_shared_scores = { .thread = "scores",
                                                          .as = "a reader of scores",
                                                          .begin = scores_begin,
                                                          .finish = scores_finish,
                                                          .greeted = scores_greeted,
                                                          .lost = scores_lost,
                                                          .came = scores_came,
                                                          .turn = scores_turn,
                                                          .fd = scores_fd };
