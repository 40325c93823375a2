/* Gateway: publishes rounds of messages (scoring/relay.h) to the logs, and returns a round once the broker has confirmed all
 * messages of it and of earlier ones. A round stays here until then: after a loss of the connection all rounds are published
 * again, in order. So a message may be in its log twice; its points are late the second time, and change nothing. */
#include "daemon/bridge/cluster_internal.h"
#include "daemon/bridge/confirms.h"
#include "daemon/scoring/relay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOGETHER 16u /* messages between two checks for events */
_Static_assert(HK_RELAY_ROUNDS *(HK_PARTITIONS_MAX + HK_RELAY_CHUNKS * 64) < HK_CONFIRMS_MAX,
               "all rounds fit, with what is cut in more than one");

struct out {
  struct hk_round *round;
  uint64_t first; /* number of its first message; 0: not published on this connection */
  uint32_t sent;  /* number of its sent messages */
  uint32_t left;  /* number of these that are not confirmed */
};

struct gateway {
  struct out out[HK_RELAY_ROUNDS]; /* n of them, oldest first */
  uint32_t n;
  struct hk_confirms confirms;
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

static int greeted(struct hk_cluster *c)
{
  struct gateway *g = c->state;
  int status = 0;
  for (uint32_t i = 0; i < c->rule.partitions && status == 0 && !hk_cluster_stops(c); i++)
    status = c->kind->log(c->engine, i);
  for (uint32_t i = 0; i < g->n; i++)
    g->out[i] = (struct out){ .round = g->out[i].round, .left = g->out[i].round->packed.n };
  hk_confirms_begin(&g->confirms);
  return status;
}

static void confirm(void *arg, uint64_t number)
{
  struct gateway *g = arg;
  for (uint32_t i = 0; i < g->n; i++)
    if (g->out[i].first > 0 && number >= g->out[i].first && number < g->out[i].first + g->out[i].round->packed.n)
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

/* Publishes the rest of a round, as far as the broker accepts it. */
static int publish(struct hk_cluster *c, struct out *out)
{
  struct gateway *g = c->state;
  const struct hk_packed *p = &out->round->packed;
  int status = 0;
  if (out->first == 0)
    out->first = g->confirms.sent + 1;
  while (out->sent < p->n && status == 0 && !c->look.blocked && !hk_cluster_stops(c)) {
    const struct hk_packed_message *m = &p->message[out->sent];
    status = c->kind->publish(c->engine, m->partition, p->bytes + m->at, m->size);
    out->sent++;
    g->confirms.sent++;
    if (status == 0 && out->sent % TOGETHER == 0)
      status = hk_cluster_pump(c);
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
    g->out[g->n++] = (struct out){ .round = round, .left = round->packed.n };
  for (uint32_t i = 0; i < g->n && status == 0; i++)
    status = publish(c, &g->out[i]);
  if (status == 0)
    status = hk_cluster_pump(c);
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
