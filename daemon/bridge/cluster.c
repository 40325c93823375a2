#include "daemon/bridge/cluster_internal.h"
#include "daemon/bridge/cluster_moves.h"

#include "daemon/base/thread.h"
#include "daemon/durable/event_copy.h"
#include "daemon/net/listener.h"
#include "daemon/scoring/partition_of.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND 1000000000ll
#define PAUSE (SECOND / 5) /* before the first reconnection; doubled up to */
#define PAUSE_MOST (5 * SECOND)
#define STEADY (10 * SECOND)          /* after this time a connection counts as good */
#define ALIVE (2 * SECOND)            /* between two signs of life to the broker, while it is not read from */
#define TURN 1000                     /* maximum wait of a turn, ms */
#define MOMENT 10000                  /* us; waits at the end are counted by it: */
#define LAST_SCORES 100               /* for the last scores, before the thread is to end, */
#define FAREWELL 20                   /* and for the last message, before the socket is shut down */
#define PATIENCE (3 * HK_ENGINE_WAIT) /* s for the end of the thread */

/* --- state ----------------------------------------------------------------------------------------------------------------- */

static void note(struct hk_cluster *c, enum hk_bridge_state state, const char *why)
{
  pthread_mutex_lock(&c->lock);
  if (c->look.state != state || c->look.since == 0)
    c->look.since = hk_wall();
  c->look.connected += state == HK_BRIDGE_CONNECTED && c->look.state != state;
  c->look.state = state;
  c->look.blocked = false;
  if (why)
    snprintf(c->look.why, sizeof c->look.why, "%s", why);
  pthread_mutex_unlock(&c->lock);
}

static void set_fd(struct hk_cluster *c, int fd)
{
  pthread_mutex_lock(&c->lock);
  c->fd = fd;
  pthread_mutex_unlock(&c->lock);
}

/* What the connections of this process last said of a broker that they lack; empty: nothing since one was made. They lose it
 * together, and one line is enough. */
static struct {
  pthread_mutex_t lock;
  char why[HK_ENGINE_WHY];
  bool lost;
} said = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Notes it. Returns whether that is news. */
static bool cluster_is_news(const char *why, bool lost)
{
  pthread_mutex_lock(&said.lock);
  const bool is = strcmp(said.why, why) != 0 || said.lost != lost;
  snprintf(said.why, sizeof said.why, "%s", why);
  said.lost = lost;
  pthread_mutex_unlock(&said.lock);
  return is;
}

static void failed(struct hk_cluster *c, const char *why)
{
  const bool was = c->engine != NULL;
  char before[sizeof c->look.why];
  snprintf(before, sizeof before, "%s", c->look.why); /* only this thread writes it */
  if (was && hk_now() - c->opened > STEADY)
    c->pause = PAUSE;
  c->retry = hk_now() + c->pause / 2 + random() % (c->pause / 2);
  c->pause = 2 * c->pause < PAUSE_MOST ? 2 * c->pause : PAUSE_MOST;
  if ((!c->told || strcmp(why, before) != 0) && cluster_is_news(why, was))
    hk_log(c->net->log, HK_LOG_WARNING, "[cluster] broker %s %s: %s; it is tried again", c->look.broker,
           was ? "is lost" : "cannot be reached", why);
  c->told = true;
  note(c, HK_BRIDGE_FAILING, why);
}

/* --- connection ------------------------------------------------------------------------------------------------------------ */

static void drop(struct hk_cluster *c, const char *why)
{
  char copy[HK_ENGINE_WHY];
  snprintf(copy, sizeof copy, "%s", why);
  set_fd(c, -1);
  c->work->lost(c);
  failed(c, copy);
  c->kind->close(c->engine);
  c->engine = NULL;
}

static void connect_to(struct hk_cluster *c)
{
  static atomic_bool warned; /* once is enough */
  const struct hk_broker_address *b = &c->rule.broker[c->broker];
  char why[HK_ENGINE_WHY];
  pthread_mutex_lock(&c->lock);
  snprintf(c->look.broker, sizeof c->look.broker, "%.200s:%u", b->host, b->port);
  pthread_mutex_unlock(&c->lock);
  const int status = c->kind->open(&c->engine, &c->rule, c->broker, NULL, why);
  c->broker = (c->broker + 1) % c->rule.n_brokers;
  if (status != 0) {
    c->engine = NULL;
    failed(c, why);
    return;
  }
  c->opened = hk_now();
  set_fd(c, c->kind->fd(c->engine));
  if (c->work->greeted(c) != 0) {
    drop(c, c->engine->why);
    return;
  }
  c->told = false;
  (void)cluster_is_news("", false);
  if (c->engine->untried[0] && !atomic_exchange(&warned, true))
    hk_log(c->net->log, HK_LOG_WARNING, "[cluster] broker %s has version %s, which hankeld was not tried with", c->look.broker,
           c->engine->untried);
  hk_log(c->net->log, HK_LOG_NOTICE, "[cluster] connected to broker %s as %s", c->look.broker, c->work->as);
  note(c, HK_BRIDGE_CONNECTED, NULL);
}

static void blocked(struct hk_cluster *c, bool is)
{
  hk_log(c->net->log, is ? HK_LOG_WARNING : HK_LOG_NOTICE, "[cluster] broker %s %s", c->look.broker,
         is ? c->engine->why : "takes messages again");
  pthread_mutex_lock(&c->lock);
  c->look.blocked = is;
  if (is)
    snprintf(c->look.why, sizeof c->look.why, "%s", c->engine->why);
  pthread_mutex_unlock(&c->lock);
}

int hk_cluster_pump(struct hk_cluster *c)
{
  struct hk_broker_engine_event e;
  int status = 0;
  while (status == 0 && (status = c->kind->next(c->engine, &e)) == 0 && e.what != HK_ENGINE_NOTHING) {
    if (e.what == HK_ENGINE_BLOCKED || e.what == HK_ENGINE_UNBLOCKED)
      blocked(c, e.what == HK_ENGINE_BLOCKED);
    else
      status = c->work->came(c, &e);
  }
  return status;
}

void hk_cluster_alive(struct hk_cluster *c)
{
  if (hk_now() - c->shown < ALIVE)
    return;
  c->shown = hk_now();
  if (c->engine)
    (void)c->kind->alive(c->engine); /* a lost connection is reported by the next call */
  if (c->work->alive)
    c->work->alive(c);
}

/* --- turns ----------------------------------------------------------------------------------------------------------------- */

static void rest(struct hk_cluster *c)
{
  struct pollfd p[3] = { { .fd = c->wake, .events = POLLIN },
                         { .fd = c->engine ? c->kind->fd(c->engine) : -1, .events = POLLIN },
                         { .fd = c->engine ? c->work->fd(c) : -1, .events = POLLIN } };
  int timeout = c->more ? 0 : TURN;
  c->more = false;
  if (!c->engine) {
    const int64_t left = (c->retry - hk_now()) / 1000000;
    timeout = left < 0 ? 0 : left < timeout ? (int)left + 1 : timeout;
  }
  (void)poll(p, 3, timeout);
}

static void *turns(void *arg)
{
  struct hk_cluster *c = arg;
  hk_thread_name(c->work->thread, 0);
  while (!hk_cluster_stops(c)) {
    if (!c->engine && hk_now() >= c->retry)
      connect_to(c);
    if (c->engine && (hk_cluster_pump(c) != 0 || c->work->turn(c) != 0))
      drop(c, c->engine->why);
    if (!hk_cluster_stops(c))
      rest(c);
  }
  if (c->engine) {
    set_fd(c, -1);
    c->work->lost(c);
    c->kind->close(c->engine);
    c->engine = NULL;
  }
  atomic_store(&c->over, true);
  return NULL;
}

/* --- start and end --------------------------------------------------------------------------------------------------------- */

/* HOST:PORT as configured, or of the first listener of the binary protocol. */
static void name_machine(struct hk_cluster *c)
{
  const struct hk_net_sockets *sockets = &c->net->sockets;
  const char *port = "0";
  char host[200] = "";
  if (c->rule.address[0]) {
    snprintf(c->self.machine, sizeof c->self.machine, "%s", c->rule.address);
    return;
  }
  for (uint32_t i = sockets->n_listeners; i-- > 0;) {
    const char *colon = strrchr(sockets->listeners[i].address, ':');
    if (sockets->listeners[i].config->protocol == HK_PROTOCOL_BINARY && colon)
      port = colon + 1;
  }
  if (gethostname(host, sizeof host - 1) != 0 || !host[0])
    snprintf(host, sizeof host, "localhost");
  snprintf(c->self.machine, sizeof c->self.machine, "%s:%s", host, port);
}

/* By enum hk_cluster_engine; the configuration refuses those that this daemon is built without. */
static const struct hk_broker_engine_kind *const kinds[] = {
#ifdef HK_HAVE_RABBITMQ
  [HK_CLUSTER_RABBITMQ] = &hk_engine_rabbitmq,
#endif
#ifdef HK_HAVE_KAFKA
  [HK_CLUSTER_KAFKA] = &hk_engine_kafka,
#endif
};

static int cluster_start(struct hk_cluster **out, struct hk_net *net, const struct hk_cluster_work *work)
{
  const struct hk_cluster_rule *rule = &net->config->cluster;
  struct hk_cluster *c = calloc(1, sizeof *c);
  if (!c)
    return -ENOMEM;
  c->net = net;
  c->rule = *rule;
  c->kind = kinds[rule->engine];
  c->work = work;
  c->pause = PAUSE;
  c->fd = -1;
  name_machine(c);
  c->look.role = work->scores || rule->role == HK_CLUSTER_SCORER ? HK_CLUSTER_SCORER : HK_CLUSTER_GATEWAY;
  c->look.of = rule->partitions;
  snprintf(c->look.name, sizeof c->look.name, "%s", rule->name);
  snprintf(c->look.machine, sizeof c->look.machine, "%s", c->self.machine);
  c->peers.listener.precision = 1;
  snprintf(c->peers.gate.name, sizeof c->peers.gate.name, "cluster");
  pthread_mutex_init(&c->lock, NULL);
  c->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  c->part = calloc(rule->partitions, sizeof *c->part);
  int status = c->wake < 0 ? -errno : c->part ? hk_sections_new(&c->self.sections, net->config) : -ENOMEM;
  if (status == 0)
    status = c->work->begin(c);
  *out = c; /* complete, since other threads look at it; the caller frees it in each case; before our thread, which may use it */
  if (status == 0)
    status = -pthread_create(&c->thread, NULL, turns, c);
  c->running = status == 0;
  return status;
}

int hk_cluster_start(struct hk_cluster **out, struct hk_net *net)
{
  const struct hk_cluster_rule *rule = &net->config->cluster;
  *out = NULL;
  if (rule->role == HK_CLUSTER_NONE)
    return 0;
  if (kinds[rule->engine]->experimental)
    hk_log(net->log, HK_LOG_WARNING, "[cluster] engine = %s is experimental: it has not run against real brokers so far",
           kinds[rule->engine]->name);
  return cluster_start(out, net,
                       rule->role == HK_CLUSTER_GATEWAY ? &hk_cluster_gateway
                       : rule->state[0]                 ? &hk_cluster_leases
                                                        : &hk_cluster_scorer);
}

int hk_cluster_start_publishing(struct hk_cluster **out, struct hk_net *net)
{
  *out = NULL;
  return net->config->cluster.role == HK_CLUSTER_ALL ? cluster_start(out, net, &hk_cluster_gateway) : 0;
}

int hk_cluster_start_events(struct hk_cluster **out, struct hk_net *net)
{
  *out = NULL;
  return hk_eventlog_shared(net->shards->events) ? cluster_start(out, net, &hk_cluster_events) : 0;
}

int hk_cluster_start_scores(struct hk_cluster **out, struct hk_net *net)
{
  *out = NULL;
  return net->others ? cluster_start(out, net, &hk_cluster_shared_scores) : 0;
}

int hk_cluster_start_mail(struct hk_cluster **out, struct hk_net *net)
{
  const struct hk_cluster_rule *rule = &net->config->cluster;
  *out = NULL;
  return rule->role != HK_CLUSTER_NONE && kinds[rule->engine]->mailbox ? cluster_start(out, net, &hk_cluster_mail) : 0;
}

static void order_end(struct hk_cluster *c)
{
  const uint64_t one = 1;
  atomic_store(&c->stop, true);
  const ssize_t n = write(c->wake, &one, sizeof one);
  (void)n;
  for (int i = 0; c->work->farewell && i < FAREWELL && !atomic_load(&c->over); i++)
    (void)usleep(MOMENT);
  pthread_mutex_lock(&c->lock);
  if (c->fd >= 0)
    (void)shutdown(c->fd, SHUT_RDWR); /* it may be waiting for a broker that accepts nothing */
  pthread_mutex_unlock(&c->lock);
}

void hk_cluster_end(struct hk_cluster *c)
{
  if (c && c->running && c->work->scores)
    order_end(c);
}

bool hk_cluster_ended(const struct hk_cluster *c)
{
  return !c || !c->running || !c->work->scores || atomic_load(&c->over);
}

bool hk_cluster_stop(struct hk_cluster *c)
{
  if (!c || !c->running)
    return true;
  for (int i = 0; i < LAST_SCORES && atomic_load(&c->self.unsent) && !atomic_load(&c->stop); i++)
    (void)usleep(MOMENT);
  order_end(c);
  c->running = !hk_thread_join(c->thread, PATIENCE);
  return !c->running;
}

void hk_cluster_free(struct hk_cluster *c)
{
  if (!c)
    return;
  c->work->finish(c);
  if (c->wake >= 0)
    close(c->wake);
  pthread_mutex_destroy(&c->lock);
  hk_sections_release(c->self.sections);
  free(c->part);
  free(c);
}

uint32_t hk_cluster_partition(const struct hk_cluster *c, const char *name)
{
  return c ? hk_partition_of_series(c->self.sections, hk_string(name), c->rule.partitions) : UINT32_MAX;
}

const char *hk_cluster_name(const struct hk_cluster *c)
{
  return c ? c->self.machine : "";
}

bool hk_cluster_is_us(const struct hk_cluster *c, const struct hk_holder *holder)
{
  return strcmp(c->self.machine, holder->machine) == 0;
}

struct hk_event_shared *hk_cluster_shared(const struct hk_cluster *c)
{
  return hk_eventlog_shared(c->net->shards->events);
}

int hk_cluster_drain(struct hk_cluster *c, bool drains)
{
  if (!c || !c->work->leases)
    return -ENOTSUP;
  atomic_store(&c->self.drains, drains);
  pthread_mutex_lock(&c->lock);
  c->look.draining = drains;
  pthread_mutex_unlock(&c->lock);
  hk_log(c->net->log, HK_LOG_NOTICE, "[cluster] %s",
         drains ? "draining: the partitions of this machine go to others, and it takes none"
                : "this machine takes its share of the partitions again");
  return 0;
}

int hk_cluster_want(struct hk_cluster *c, uint32_t partition)
{
  if (!c || !c->work->leases)
    return -ENOTSUP;
  if (!c->kind->count)
    return -EPERM;
  if (partition >= c->rule.partitions)
    return -EINVAL;
  if (atomic_load(&c->self.drains))
    return -EBUSY;
  if (!hk_moves_ask(c->self.moves, partition, hk_now())) /* first, since it may come as soon as the request is on its way */
    return -EALREADY;
  const bool asked = hk_shared_append_holder(hk_cluster_shared(c), partition, 0, NULL) != 0;
  if (asked && !atomic_load(&c->self.drains))
    return 0;
  hk_moves_withdraw(c->self.moves, partition);
  if (!asked)
    return -ENOMEM;
  /* It drains since: the scorer may have taken the request back before that was in the log, where the later message counts. */
  (void)hk_shared_append_holder(hk_cluster_shared(c), partition, HK_HOLDERS_WITHDRAWN,
                                NULL); /* without memory as in hk_moves_end */
  return -EBUSY;
}

/* Why a move is not done yet. */
static void cluster_say_why(struct hk_cluster *c, uint32_t partition, const struct hk_move *m, char why[HK_ENGINE_WHY])
{
  struct hk_holder holder;
  if (m->why[0])
    snprintf(why, HK_ENGINE_WHY, "%s", m->why);
  else if (!m->heard)
    snprintf(why, HK_ENGINE_WHY, "the request has not gone through the broker's log of events yet");
  else if (hk_cluster_machine(c, partition, &holder))
    snprintf(why, HK_ENGINE_WHY, "%.180s had it last, and the broker has not passed its lease on yet", holder.machine);
  else
    snprintf(why, HK_ENGINE_WHY, "no machine is known to have it, and the broker has not passed its lease on yet");
}

bool hk_cluster_move(struct hk_cluster *c, uint32_t partition, struct hk_cluster_move *out)
{
  static const char *const states[] = {
    [HK_MOVE_WAITS] = "waits", [HK_MOVE_DONE] = "done", [HK_MOVE_OVERRULED] = "overruled", [HK_MOVE_OVER] = "over"
  };
  struct hk_move m;
  if (!c || !c->self.moves || partition >= c->rule.partitions)
    return false;
  hk_moves_look(c->self.moves, partition, &m);
  if (m.state == HK_MOVE_NONE)
    return false;
  *out = (struct hk_cluster_move){ .state = states[m.state], .ago = hk_now() - m.asked };
  if (m.state == HK_MOVE_WAITS || m.state == HK_MOVE_OVER)
    cluster_say_why(c, partition, &m, out->why);
  if (m.state == HK_MOVE_OVERRULED)
    snprintf(out->why, sizeof out->why, "another machine was asked to take it since");
  return true;
}

bool hk_cluster_machine(struct hk_cluster *c, uint32_t partition, struct hk_holder *out)
{
  struct hk_event_shared *shared = c ? hk_cluster_shared(c) : NULL;
  return shared && hk_holders_find(hk_shared_holders(shared), partition, out);
}

void hk_cluster_look(struct hk_cluster *c, struct hk_cluster_look *out)
{
  *out = (struct hk_cluster_look){ .role = HK_CLUSTER_NONE };
  if (!c)
    return;
  pthread_mutex_lock(&c->lock);
  *out = c->look;
  pthread_mutex_unlock(&c->lock);
}

uint32_t hk_cluster_parts(struct hk_cluster *c, struct hk_cluster_part *out)
{
  uint32_t n = 0;
  if (!c)
    return 0;
  pthread_mutex_lock(&c->lock);
  for (uint32_t i = 0; i < c->rule.partitions; i++)
    if (c->part[i].since != 0)
      out[n++] = c->part[i];
  pthread_mutex_unlock(&c->lock);
  return n;
}
