/* Gateway: publishes rounds of messages (scoring/relay.h) to the logs, and returns a round once the broker has confirmed all
 * messages of it and of earlier ones. A round stays here until then: after a loss of the connection all rounds are published
 * again. So a message may be in its log twice; its points are late the second time, and change nothing.
 *
 * One message of each log at a time is on its way: a message that was lost between brokers, and came after a later one the second
 * time, would be late, too, and its points would be dropped. */
#include "daemon/bridge/cluster_internal.h"
#include "daemon/bridge/confirms.h"
#include "daemon/scoring/relay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOGETHER 16u /* messages between two checks for events */
/* Of a round at most: one of each partition, and what is cut, since a message has room for 8,192 points, and for 500 names at
 * least.
 */
#define MESSAGES (HK_PARTITIONS_MAX + HK_RELAY_CHUNKS * (HK_CHUNK_POINTS / 500 + 1))
_Static_assert(HK_RELAY_ROUNDS *MESSAGES < HK_CONFIRMS_MAX, "the numbers of all rounds fit");

struct out {
  struct hk_round *round;
  uint32_t left;       /* number of its messages that are not confirmed */
  bool sent[MESSAGES]; /* on this connection */
};

struct gateway {
  struct out out[HK_RELAY_ROUNDS]; /* n of them, oldest first */
  uint32_t n;
  struct hk_confirms confirms;
  struct {
    struct hk_round *round;
    uint32_t partition;
  } by[HK_CONFIRMS_MAX];              /* what a number is, modulo HK_CONFIRMS_MAX */
  bool on_its_way[HK_PARTITIONS_MAX]; /* an unconfirmed message of the log */
  uint64_t pass;                      /* over all rounds */
  uint64_t passed[HK_PARTITIONS_MAX]; /* the pass in which a message of the log had to wait, so later ones do, too */
  bool freed;                         /* a message was confirmed */
};

static int begin(struct hk_cluster *c)
{
  c->state = calloc(1, sizeof(struct gateway));
  c->look.partitions = c->rule.partitions;
  return c->state ? 0 : -ENOMEM;
}

static void finish(struct hk_cluster *c)
{
  free(c->state);
}

static void lost(struct hk_cluster *c)
{
  (void)c; /* unconfirmed rounds stay */
}

static void begin_round(struct out *out, struct hk_round *round)
{
  out->round = round;
  out->left = round->packed.n;
  memset(out->sent, 0, sizeof out->sent);
}

static int greeted(struct hk_cluster *c)
{
  struct gateway *g = c->state;
  int status = 0;
  for (uint32_t i = 0; i < c->rule.partitions && status == 0 && !hk_cluster_stops(c); i++)
    status = c->kind->log(c->engine, i);
  for (uint32_t i = 0; i < g->n; i++)
    begin_round(&g->out[i], g->out[i].round);
  memset(g->on_its_way, 0, sizeof g->on_its_way);
  hk_confirms_begin(&g->confirms);
  return status;
}

static void confirm(void *arg, uint64_t number)
{
  struct gateway *g = arg;
  const uint32_t at = number % HK_CONFIRMS_MAX;
  g->on_its_way[g->by[at].partition] = false;
  g->freed = true;
  for (uint32_t i = 0; i < g->n; i++)
    if (g->out[i].round == g->by[at].round)
      g->out[i].left--;
}

static void give_back(struct hk_cluster *c)
{
  struct gateway *g = c->state;
  uint64_t messages = 0, points = 0;
  while (g->n > 0 && g->out[0].left == 0) {
    struct hk_round *round = g->out[0].round;
    messages += round->packed.n;
    for (uint32_t i = 0; i < round->packed.n; i++)
      points += round->packed.message[i].points;
    memmove(g->out, g->out + 1, --g->n * sizeof *g->out);
    hk_relay_give(c->net->entry->relay, round);
  }
  pthread_mutex_lock(&c->lock);
  c->look.messages += messages;
  c->look.points += points;
  c->look.waiting = hk_confirms_open(&g->confirms);
  pthread_mutex_unlock(&c->lock);
}

static int came(struct hk_cluster *c, const struct hk_broker_engine_event *e)
{
  struct gateway *g = c->state;
  if (e->what == HK_ENGINE_CONFIRMED)
    (void)hk_confirms_take(&g->confirms, e, confirm, g); /* low: the rounds say what can be given back */
  return 0;
}

static int publish_message(struct hk_cluster *c, struct hk_round *round, uint32_t i)
{
  struct gateway *g = c->state;
  const struct hk_packed_message *m = &round->packed.message[i];
  const uint64_t number = ++g->confirms.sent;
  g->on_its_way[m->partition] = true;
  g->by[number % HK_CONFIRMS_MAX].round = round;
  g->by[number % HK_CONFIRMS_MAX].partition = m->partition;
  const int status = c->kind->publish(c->engine, m->partition, round->packed.bytes + m->at, m->size);
  return status == 0 && number % TOGETHER == 0 ? hk_cluster_pump(c) : status;
}

/* Publishes what can be published of a round. A message waits while one of its log is on its way, or an earlier one waits. */
static int publish(struct hk_cluster *c, struct out *out)
{
  struct gateway *g = c->state;
  int status = 0;
  for (uint32_t i = 0; i < out->round->packed.n && status == 0 && !c->look.blocked && !hk_cluster_stops(c); i++) {
    const uint32_t partition = out->round->packed.message[i].partition;
    if (out->sent[i])
      continue;
    if (g->on_its_way[partition] || g->passed[partition] == g->pass) {
      g->passed[partition] = g->pass; /* even if it is confirmed during this pass */
      continue;
    }
    out->sent[i] = true;
    status = publish_message(c, out->round, i);
  }
  return status;
}

static int gateway_turn(struct hk_cluster *c)
{
  struct gateway *g = c->state;
  struct hk_relay *relay = c->net->entry->relay;
  struct hk_round *round;
  int status = 0;
  hk_relay_woken(relay);
  while (g->n < HK_RELAY_ROUNDS && (round = hk_relay_take(relay)) != NULL)
    begin_round(&g->out[g->n++], round);
  do {
    g->pass++;
    g->freed = false;
    for (uint32_t i = 0; i < g->n && status == 0; i++)
      status = publish(c, &g->out[i]);
    if (status == 0)
      status = hk_cluster_pump(c);
  } while (status == 0 && g->freed && !c->look.blocked && !hk_cluster_stops(c)); /* another message of that log can go */
  give_back(c);
  return status == 0 ? hk_confirms_check(&g->confirms, c->look.blocked, c->engine->why) : status;
}

static int fd(const struct hk_cluster *c)
{
  return hk_relay_fd(c->net->entry->relay);
}

const struct hk_cluster_work hk_cluster_gateway = { .thread = "gateway",
                                                    .as = "a gateway",
                                                    .begin = begin,
                                                    .finish = finish,
                                                    .greeted = greeted,
                                                    .lost = lost,
                                                    .came = came,
                                                    .turn = gateway_turn,
                                                    .fd = fd };
