#include "daemon/net/loop.h"

#include "daemon/net/connection.h"
#include "daemon/net/net.h"
#include "daemon/publish/event_follower.h"

void hk_loop_add(struct hk_loop *l, struct hk_connection *c)
{
  c->links.previous = NULL;
  c->links.next = l->list.connections;
  if (c->links.next)
    c->links.next->links.previous = c;
  l->list.connections = c;
}

void hk_loop_remove(struct hk_loop *l, struct hk_connection *c)
{
  if (c->links.previous)
    c->links.previous->links.next = c->links.next;
  else
    l->list.connections = c->links.next;
  if (c->links.next)
    c->links.next->links.previous = c->links.previous;
  if (c->links.parked) {
    struct hk_connection **link = &l->list.parked;
    while (*link != c)
      link = &(*link)->links.next_parked;
    *link = c->links.next_parked;
    if (l->list.parked_tail == &c->links.next_parked)
      l->list.parked_tail = link;
  }
  atomic_fetch_sub(&l->shared.n_connections, 1);
}

void hk_loop_park(struct hk_loop *l, struct hk_connection *c)
{
  c->links.parked = true;
  c->links.next_parked = NULL;
  *l->list.parked_tail = c;
  l->list.parked_tail = &c->links.next_parked;
}

/* The publisher's views may have changed. */
static void loop_subscribed(struct hk_loop *l)
{
  atomic_store_explicit(&l->shared.subscriptions, hk_publisher_views(l->publisher), memory_order_release);
  if (l->shared.others.publisher)
    atomic_store_explicit(&l->shared.listeners, hk_publisher_views(l->shared.others.publisher), memory_order_release);
}

/* To results of other machines, if there are any. A part of the daemon that shares those of this machine wants no others. */
static int subscribe_others(struct hk_loop *l, struct hk_connection *c, const struct hk_wanted *wanted)
{
  struct hk_wanted results = *wanted;
  if (!l->shared.others.publisher || c->binary.scored)
    return 0;
  results.what &= HANKEL_SCORES | HANKEL_UNSCORED | HANKEL_VALUES | HANKEL_SEQUENCES;
  if (results.what & (HANKEL_SCORES | HANKEL_UNSCORED))
    return hk_subscribe(l->shared.others.publisher, &c->others, &results);
  hk_unsubscribe(l->shared.others.publisher, &c->others);
  return 0;
}

int hk_loop_subscribe(struct hk_loop *l, struct hk_connection *c, const struct hk_wanted *wanted)
{
  int status = subscribe_others(l, c, wanted);
  if (status == 0)
    status = hk_subscribe(l->publisher, &c->subscriber, wanted);
  loop_subscribed(l);
  return status;
}

void hk_loop_unsubscribe(struct hk_loop *l, struct hk_connection *c)
{
  hk_unsubscribe(l->publisher, &c->subscriber);
  if (l->shared.others.publisher)
    hk_unsubscribe(l->shared.others.publisher, &c->others);
  loop_subscribed(l);
}

bool hk_loop_show(struct hk_loop *l, struct hk_shown *shown)
{
  const bool put = hk_ring_put(&l->shared.others.ring, shown);
  if (put)
    hk_wake_up(&l->wake, HK_WAKE_WORK);
  return put;
}

void hk_loop_survey(struct hk_loop *l)
{
  uint32_t subscribers = 0, held_back = 0;
  uint64_t queued = 0;
  for (const struct hk_connection *c = l->list.connections; c; c = c->links.next) {
    subscribers += c->subscriber.view != NULL;
    held_back += c->links.parked;
    if (c->state != HK_CLOSED)
      queued += uv_stream_get_write_queue_size((const uv_stream_t *)&c->tcp);
  }
  l->shared.subscribers = subscribers;
  l->shared.held_back = held_back;
  l->shared.queued = queued;
}

void hk_loop_hand(struct hk_loop *l, struct hk_connection *c)
{
  atomic_fetch_add(&l->shared.n_connections, 1);
  pthread_mutex_lock(&l->shared.lock);
  c->links.next = l->shared.arrivals;
  l->shared.arrivals = c;
  pthread_mutex_unlock(&l->shared.lock);
  hk_wake_up(&l->wake, HK_WAKE_WORK);
}

struct hk_loop *hk_loop_least_busy(struct hk_net *net)
{
  struct hk_loop *least = &net->loops[0];
  for (uint32_t i = 1; i < net->n_loops; i++)
    if (net->loops[i].shared.n_connections < least->shared.n_connections)
      least = &net->loops[i];
  return least;
}

void hk_loop_order(struct hk_loop *l, enum hk_order order)
{
  atomic_fetch_or_explicit(&l->shared.orders, order, memory_order_release);
  hk_wake_up(&l->wake, HK_WAKE_WORK);
}

void hk_loop_tell_events(struct hk_loop *l)
{
  if (hk_publish_events(l->publisher))
    hk_wake_up(&l->wake, HK_WAKE_WORK);
}

bool hk_loop_told(struct hk_loop *l, struct hk_subscriber *s, uint64_t *event)
{
  struct hk_eventlog *log = l->net->shards->events;
  if (!log)
    return true;
  if (*event == 0)
    *event = hk_eventlog_last(log) + 1;
  hk_loop_tell_events(l);
  return hk_follower_told(s, *event - 1);
}

void hk_loop_feeds(struct hk_loop *l, struct hk_connection *c)
{
  c->links.next_feeding = l->list.feeding;
  l->list.feeding = c;
}

void hk_loop_feeds_no_more(struct hk_loop *l, struct hk_connection *c)
{
  for (struct hk_connection **link = &l->list.feeding; *link; link = &(*link)->links.next_feeding)
    if (*link == c) {
      *link = c->links.next_feeding;
      break;
    }
}

static void loop_told_of_pictures(void *arg, const char *why)
{
  struct hk_loop *l = arg;
  if (why)
    hk_log(l->net->log, HK_LOG_WARNING, "loop %u cannot compute pictures on the GPU: %s; the processor does it", l->number, why);
  else
    hk_log(l->net->log, HK_LOG_INFO, "loop %u computes pictures on GPU %u", l->number, l->pictures.place.number);
}

void hk_loop_picture_device(struct hk_loop *l, const struct hk_picture_device *device, uint32_t number)
{
  l->pictures.place = (struct hk_picture_place){ device, number, HK_PICTURE_DEVICE_LEAST, loop_told_of_pictures, l };
}
