/* A loop's thread: its turns, start and stop, and the orders of other threads. */
#include "daemon/net/loop_thread.h"

#include "daemon/base/thread.h"
#include "daemon/base/uv_reserve.h"
#include "daemon/net/admission.h"
#include "daemon/net/connection.h"
#include "daemon/net/net.h"
#include "daemon/net/tcp_listener.h"
#include "daemon/net/udp_listener.h"
#include "daemon/publish/shown.h"
#include "daemon/scoring/hand_over.h"
#include "daemon/scoring/others.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 64u           /* messages with results of other machines that wait for the loop */
#define END 2               /* s that the thread has to stop */
#define TURN_RESULTS 65536u /* approximate number of results of a shard in one turn: under 1 MiB for a subscriber to all */

/* --- what others give ------------------------------------------------------------------------------------------------- */

static void loop_forget(struct hk_loop *l, const struct hk_delivery *p)
{
  for (uint32_t i = 0; i < p->n_slots; i++)
    hk_publisher_forget(l->publisher, p->slots[i]);
}

static void loop_tell(struct hk_loop *l, const char *words)
{
  for (struct hk_connection *c = l->list.connections, *next; c; c = next) {
    next = c->links.next;
    hk_connection_tell(c, HANKEL_INTERNAL, words);
  }
}

static void take_delivery(struct hk_loop *l, struct hk_chunk_pool *pool, uint32_t shard, struct hk_delivery *p)
{
  switch (p->kind) {
  case HK_DELIVERY_RESULTS:
    hk_publish(l->publisher, p->batch, p->sequence, hk_string(p->by ? p->by : ""));
    if (p->batch->kind == HK_BATCH_POINTS)
      hk_latency_add(&l->latency, &p->stamps, hk_now(), p->batch->n);
    break;
  case HK_DELIVERY_DROPPED:
    hk_publish_dropped(l->publisher, p->batch);
    break;
  case HK_DELIVERY_RETIRE:
    hk_chunk_pool_token(pool, shard);
    break;
  case HK_DELIVERY_FORGET:
    if (pool == &l->scored.pool) /* publishers know no other sensors */
      loop_forget(l, p);
    break;
  case HK_DELIVERY_WORDS:
    loop_tell(l, p->words);
    break;
  case HK_DELIVERY_EXPORT:
    break; /* it is here to show that the earlier ones were published */
  }
  hk_delivery_release(p, &l->counters);
}

/* Takes the deliveries that are there now, and of each shard no more results than a socket accepts in one turn. Otherwise
 * results would be queued faster than the loop writes to full sockets. */
static void take_deliveries(struct hk_loop *l, struct hk_chunk_pool *pool)
{
  for (uint32_t i = 0; i < pool->filling.shards; i++) {
    uint32_t n = hk_ring_count(&pool->lanes[i]->deliveries), results = 0;
    for (; n > 0 && results < TURN_RESULTS; n--) {
      struct hk_delivery *p = hk_ring_take(&pool->lanes[i]->deliveries);
      results += p->kind == HK_DELIVERY_RESULTS ? p->batch->n : 0;
      take_delivery(l, pool, i, p);
      l->pace.busy = l->pace.turn;
    }
    if (n > 0)
      hk_wake_up(&l->wake, HK_WAKE_WORK);
  }
}

/* Results of other machines. */
static void take_shown(struct hk_loop *l)
{
  struct hk_shown *shown;
  while (l->shared.others.publisher && (shown = hk_ring_take(&l->shared.others.ring)) != NULL) {
    hk_publish(l->shared.others.publisher, &shown->batch, shown->sequence, hk_string(""));
    hk_shown_release(shown);
    l->pace.busy = l->pace.turn;
  }
}

static struct hk_connection *take_arrivals(struct hk_loop *l)
{
  pthread_mutex_lock(&l->shared.lock);
  struct hk_connection *c = l->shared.arrivals;
  l->shared.arrivals = NULL;
  pthread_mutex_unlock(&l->shared.lock);
  return c;
}

static void start_arrivals(struct hk_loop *l)
{
  for (struct hk_connection *c = take_arrivals(l), *next; c; c = next) {
    next = c->links.next;
    hk_connection_start(c);
    if (l->draining)
      hk_connection_drain(c);
    if (l->flushed) /* an inner connection: listeners are closed by then */
      hk_connection_refuse(c, HANKEL_SHUTTING_DOWN, "the daemon ends");
  }
}

static void loop_read_datagrams(struct hk_loop *l)
{
  for (uint32_t i = 0; i < l->n_datagrams; i++)
    if (l->datagrams[i].open)
      (void)hk_udp_read(&l->datagrams[i]);
}

/* Takes all data that has arrived, as far as there is room. */
static void loop_read_all(struct hk_listener *l)
{
  const int64_t begin = hk_now();
  while (l->open && !hk_udp_read(l) && l->polling && l->read_to < begin)
    continue;
}

static void loop_drain(struct hk_loop *l)
{
  l->draining = true;
  for (uint32_t i = 0; i < l->n_datagrams; i++)
    loop_read_all(&l->datagrams[i]);
  for (uint32_t i = 0; i < l->n_datagrams; i++)
    hk_listener_close(&l->datagrams[i]);
  for (struct hk_connection *c = l->list.connections; c; c = c->links.next)
    hk_connection_drain(c);
}

static void loop_flush(struct hk_loop *l, bool give_up)
{
  l->flushed = true;
  while (!give_up && hk_publish_events(l->publisher))
    continue;
  for (struct hk_connection *c = l->list.connections, *next; c; c = next) {
    next = c->links.next;
    const size_t unread = c->state == HK_CLOSED ? 0 : uv_stream_get_write_queue_size((const uv_stream_t *)&c->tcp);
    if (!give_up) {
      hk_connection_refuse(c, HANKEL_SHUTTING_DOWN, "the daemon ends");
      continue;
    }
    if (unread > 0)
      hk_log_peer(l->net->log, &c->quota, HK_LOG_WARNING, c->peer,
                  "closed: the daemon is shutting down, and %zu bytes were not read in time", unread);
    hk_connection_close(c);
  }
}

/* Copies the settings to the objects that keep their own. */
static void loop_adopt(struct hk_loop *l)
{
  l->config = l->net->config;
  l->scored.intake.max_ahead = l->entry.intake.max_ahead = l->config->max_ahead;
  l->scored.intake.max_pending = l->entry.intake.max_pending = l->config->max_pending;
  hk_lines_adopt(l->lines, l->config->evict);
  hk_publisher_adopt(l->publisher, l->config);
  if (l->shared.others.publisher)
    hk_publisher_adopt(l->shared.others.publisher, l->config);
  atomic_fetch_add_explicit(&l->net->obeyed, 1, memory_order_release);
}

static void admit_again(struct hk_loop *l)
{
  for (struct hk_connection *c = l->list.connections, *next; c; c = next) {
    next = c->links.next;
    hk_admission_again(c);
  }
  atomic_fetch_add_explicit(&l->net->obeyed, 1, memory_order_release);
}

static void obey(struct hk_loop *l)
{
  if (atomic_load_explicit(&l->shared.orders, memory_order_relaxed) == 0)
    return;
  const unsigned orders = atomic_exchange_explicit(&l->shared.orders, 0, memory_order_acquire);
  if (orders & HK_ORDER_READ) {
    loop_read_datagrams(l);
    hk_shard_settled(&l->net->shards->shard[0]); /* the requester checks again */
  }
  if (orders & HK_ORDER_ADOPT)
    loop_adopt(l);
  if (orders & HK_ORDER_ADMIT)
    admit_again(l);
  if (orders & HK_ORDER_DRAIN)
    loop_drain(l);
  if (orders & (HK_ORDER_FLUSH | HK_ORDER_GIVE_UP))
    loop_flush(l, orders & HK_ORDER_GIVE_UP);
  if (orders & HK_ORDER_STOP)
    uv_stop(&l->uv);
}

/* --- the turn -------------------------------------------------------------------------------------------------------- */

static bool datagrams_wait(const struct hk_loop *l)
{
  for (uint32_t i = 0; i < l->n_datagrams; i++)
    if (l->datagrams[i].open && !l->datagrams[i].polling)
      return true;
  return false;
}

/* Gives every parked connection a turn, in the order of parking; a connection that cannot continue is parked again. */
static void wake_parked(struct hk_loop *l)
{
  struct hk_connection *c = l->list.parked;
  l->list.parked = NULL;
  l->list.parked_tail = &l->list.parked;
  l->scored.intake.wall = hk_intake_clock(&l->scored.intake);
  l->entry.intake.wall = hk_intake_clock(&l->entry.intake);
  while (c) {
    struct hk_connection *next = c->links.next_parked;
    c->links.parked = false;
    hk_connection_go_on(c);
    c = next;
  }
  for (uint32_t i = 0; i < l->n_datagrams && !l->draining; i++)
    hk_udp_go_on(&l->datagrams[i]);
}

/* Whether a connection waits for room, not for its peer. */
static bool anyone_waits(const struct hk_loop *l)
{
  for (const struct hk_connection *c = l->list.parked; c; c = c->links.next_parked)
    if (!hk_connection_waits_for_peer(c))
      return true;
  return false;
}

/* Acknowledges the committed points of feeds. */
static void loop_acknowledge(struct hk_loop *l)
{
  for (struct hk_connection *c = l->list.feeding, *next; c; c = next) {
    next = c->links.next_feeding;
    c->kind->acknowledge(c);
  }
}

static void loop_work(struct hk_loop *l)
{
  take_deliveries(l, &l->scored.pool);
  take_deliveries(l, &l->entry.pool);
  take_shown(l);
  hk_loop_tell_events(l);
  loop_acknowledge(l);
  obey(l);
  start_arrivals(l);
  uint64_t settled = atomic_load_explicit(&l->net->shards->settled, memory_order_acquire);
  if (l->net->entry != l->net->shards)
    settled += atomic_load_explicit(&l->net->entry->settled, memory_order_acquire);
  if ((l->list.parked || datagrams_wait(l)) &&
      (settled != l->pace.settled || hk_chunk_pool_returned(&l->scored.pool) || hk_chunk_pool_returned(&l->entry.pool))) {
    l->pace.settled = settled;
    wake_parked(l);
  }
}

static void loop_on_check(uv_check_t *check)
{
  struct hk_loop *l = check->data;
  hk_awake(&l->wake);
  l->pace.turn++;
  l->pace.readers_before = l->pace.readers;
  l->pace.readers = 0;
  loop_work(l);
}

static void on_idle(uv_idle_t *idle)
{
  (void)idle;
}

/* Whether the loop polls instead of sleeping, because it had work recently. */
static bool stay_awake(struct hk_loop *l)
{
  const int64_t poll = l->config->busy_poll, now = poll > 0 ? hk_now() : 0;
  if (l->pace.busy + 1 >= l->pace.turn) /* in this turn's check, or in the sockets' callbacks before it */
    l->pace.busy_at = now;
  return poll > 0 && now - l->pace.busy_at < poll;
}

/* Before the loop sleeps: also seals points that timers have put in. */
static void on_prepare(uv_prepare_t *prepare)
{
  struct hk_loop *l = prepare->data;
  const bool scored = hk_chunk_pool_seal(&l->scored.pool), sealed = hk_chunk_pool_seal(&l->entry.pool) && scored;
  unsigned reasons = HK_WAKE_WORK;
  if (!sealed)
    reasons |= HK_WAKE_TAKEN | HK_WAKE_ROOM;
  if (l->list.parked || datagrams_wait(l))
    reasons |= HK_WAKE_ROOM;
  if (l->draining)
    l->shared.drained = sealed && !anyone_waits(l);
  if (!stay_awake(l) && hk_sleep(&l->wake, reasons))
    uv_idle_stop(&l->handles.idle);
  else
    uv_idle_start(&l->handles.idle, on_idle);
}

static void loop_on_second(uv_timer_t *timer)
{
  struct hk_loop *l = timer->data;
  const int64_t now = hk_now();
  wake_parked(l); /* a connection that waits for room must not depend on results that never come */
  for (uint32_t i = 0; i < l->n_datagrams; i++)
    if (l->datagrams[i].open)
      hk_udp_look(&l->datagrams[i]);
  for (struct hk_connection *c = l->list.connections, *next; c; c = next) {
    next = c->links.next;
    hk_connection_tick(c, now);
  }
  hk_loop_survey(l);
}

static void on_pulse(uv_timer_t *timer)
{
  struct hk_loop *l = timer->data;
  l->shared.beat = hk_now();
}

/* --- life ------------------------------------------------------------------------------------------------------------ */

static int loop_open_handles(struct hk_loop *l)
{
  int status = uv_loop_init(&l->uv);
  if (status != 0)
    return status;
  l->handles.open = true;
  status = hk_reserve_descriptors(&l->uv, l->net->capacity.descriptors);
  if (status != 0)
    return status;
  uv_prepare_init(&l->uv, &l->handles.prepare);
  uv_check_init(&l->uv, &l->handles.check);
  uv_idle_init(&l->uv, &l->handles.idle);
  uv_timer_init(&l->uv, &l->handles.second);
  uv_timer_init(&l->uv, &l->handles.pulse);
  l->handles.prepare.data = l->handles.check.data = l->handles.second.data = l->handles.pulse.data = l;
  return hk_wake_init(&l->wake, &l->uv);
}

int hk_loop_listen(struct hk_loop *l, const struct hk_config_listener *config, struct hk_gate *gate,
                   struct sockaddr_storage *bind_to, int fd, char *error, size_t size)
{
  const int status = hk_listener_open(&l->datagrams[l->n_datagrams], l, config, gate, bind_to, fd, error, size);
  l->n_datagrams += status == 0;
  return status;
}

/* lanes: of loop 0 to the first of these shards. */
static int loop_open_way(struct hk_loop *l, struct hk_loop_way *way, const struct hk_shards *to, struct hk_lane *lanes)
{
  way->intake = (struct hk_intake){ .registry = to->registry,
                                    .pool = &way->pool,
                                    .counters = &l->counters,
                                    .log = l->net->log,
                                    .max_ahead = l->config->max_ahead,
                                    .max_pending = l->config->max_pending };
  return hk_chunk_pool_open(&way->pool, lanes + l->number, to->n, l->net->n_loops, l->number, l->points);
}

static int loop_open_others(struct hk_loop *l)
{
  const int status = hk_ring_init(&l->shared.others.ring, SHOWN);
  return status == 0 ? hk_publisher_new(&l->shared.others.publisher, l->config, l->net->others->registry, NULL, &l->counters)
                     : status;
}

int hk_loop_open(struct hk_loop *l, struct hk_net *net, uint32_t number, char *error, size_t size)
{
  const struct hk_config *config = net->config;
  l->net = net;
  l->config = config;
  l->number = number;
  l->list.parked_tail = &l->list.parked;
  l->points = net->capacity.loop_points;
  pthread_mutex_init(&l->shared.lock, NULL);
  int status = loop_open_handles(l);
  l->buffer = malloc(HK_LOOP_BUFFER);
  l->records = net->gates.any_tls ? malloc(HK_ADMISSION_CHUNK) : NULL;
  l->datagrams = calloc(config->n_listeners + net->sockets.n_passed, sizeof *l->datagrams);
  if (status == 0 && (!l->buffer || !l->datagrams || (net->gates.any_tls && !l->records)))
    status = -ENOMEM;
  if (status == 0)
    status = hk_publisher_new(&l->publisher, config, net->shards->registry, net->shards->events, &l->counters);
  if (status == 0 && net->others)
    status = loop_open_others(l);
  if (status == 0)
    status = loop_open_way(l, &l->scored, net->shards, net->lanes);
  l->peers = &l->scored;
  if (status == 0 && net->entry != net->shards) {
    l->peers = &l->entry;
    status = loop_open_way(l, &l->entry, net->entry, net->lanes + net->shards->n * net->n_loops);
  }
  if (status != 0) {
    snprintf(error, size, "start: %s", uv_strerror(status));
    return status;
  }
  l->room = hk_chunk_pool_room(&l->peers->pool);
  status = hk_lines_new(&l->lines, &l->peers->intake, config->evict);
  if (status != 0)
    snprintf(error, size, "start: %s", strerror(-status));
  return status;
}

static void *loop_run(void *arg)
{
  struct hk_loop *l = arg;
  hk_thread_name("loop", l->number);
  uv_run(&l->uv, UV_RUN_DEFAULT);
  return NULL;
}

int hk_loop_start(struct hk_loop *l, uint64_t beat)
{
  l->shared.beat = hk_now();
  uv_prepare_start(&l->handles.prepare, on_prepare);
  uv_check_start(&l->handles.check, loop_on_check);
  uv_timer_start(&l->handles.second, loop_on_second, 1000, 1000);
  uv_timer_start(&l->handles.pulse, on_pulse, beat, beat);
  if (l->number == 0)
    return 0;
  const int status = -pthread_create(&l->handles.thread, NULL, loop_run, l);
  l->handles.running = status == 0;
  return status;
}

bool hk_loop_stop(struct hk_loop *l)
{
  if (!l->handles.running)
    return true;
  hk_loop_order(l, HK_ORDER_STOP);
  l->handles.running = !hk_thread_join(l->handles.thread, END);
  return !l->handles.running;
}

static void loop_close_handle(uv_handle_t *handle, void *arg)
{
  (void)arg;
  if (!uv_is_closing(handle))
    uv_close(handle, NULL);
}

static void loop_release(struct hk_loop *l, struct hk_chunk_pool *pool)
{
  struct hk_delivery *p;
  for (uint32_t i = 0; i < pool->filling.shards && pool->lanes[i]; i++)
    while ((p = hk_ring_take(&pool->lanes[i]->deliveries)) != NULL)
      hk_delivery_release(p, &l->counters);
}

void hk_loop_close(struct hk_loop *l)
{
  if (!l->net)
    return;
  for (uint32_t i = 0; i < l->n_datagrams; i++)
    hk_listener_close(&l->datagrams[i]);
  for (struct hk_connection *c = take_arrivals(l), *next; c; c = next) {
    next = c->links.next;
    hk_connection_abandon(c);
  }
  for (struct hk_connection *c = l->list.connections; c; c = c->links.next)
    hk_connection_close(c);
  if (l->handles.open) {
    hk_awake(&l->wake); /* no other thread may wake it any more */
    uv_walk(&l->uv, loop_close_handle, NULL);
    uv_run(&l->uv, UV_RUN_DEFAULT);
    uv_loop_close(&l->uv);
  }
  loop_release(l, &l->scored.pool);
  loop_release(l, &l->entry.pool);
  for (struct hk_shown *shown; l->shared.others.publisher && (shown = hk_ring_take(&l->shared.others.ring)) != NULL;)
    hk_shown_release(shown);
  hk_publisher_free(l->shared.others.publisher);
  hk_ring_free(&l->shared.others.ring);
  hk_publisher_free(l->publisher);
  hk_chunk_pool_close(&l->scored.pool);
  hk_chunk_pool_close(&l->entry.pool);
  hk_lines_free(l->lines);
  hk_picture_work_free(&l->pictures);
  free(l->datagrams);
  free(l->buffer);
  free(l->records);
  pthread_mutex_destroy(&l->shared.lock);
}
