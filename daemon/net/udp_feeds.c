/* The number of a feed is random but for its last 16 bits, which are the seat's index. */
#include "daemon/net/udp_feeds.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

int hk_seats_open(struct hk_seats *s, uint32_t n)
{
  s->seats = calloc(n, sizeof *s->seats);
  s->free = calloc(n, sizeof *s->free);
  pthread_mutex_init(&s->lock, NULL);
  s->n = n;
  if (!s->seats || !s->free)
    return -ENOMEM;
  for (uint32_t i = 0; i < n; i++) {
    pthread_mutex_init(&s->seats[i].lock, NULL);
    s->seats[i].index = i;
    s->free[s->n_free++] = n - 1 - i;
  }
  return 0;
}

void hk_seats_close(struct hk_seats *s)
{
  for (uint32_t i = 0; s->seats && i < s->n; i++) {
    pthread_mutex_destroy(&s->seats[i].lock);
    hk_mac_free(s->seats[i].mac);
  }
  if (s->n > 0)
    pthread_mutex_destroy(&s->lock);
  free(s->seats);
  free(s->free);
  *s = (struct hk_seats){ 0 };
}

struct hk_seat *hk_seats_take(struct hk_seats *s)
{
  pthread_mutex_lock(&s->lock);
  struct hk_seat *seat = s->n_free > 0 ? &s->seats[s->free[--s->n_free]] : NULL;
  if (seat && seat->index >= s->high)
    s->high = seat->index + 1;
  pthread_mutex_unlock(&s->lock);
  return seat;
}

uint32_t hk_seats_taken(struct hk_seats *s)
{
  pthread_mutex_lock(&s->lock);
  const uint32_t n = s->n - s->n_free;
  pthread_mutex_unlock(&s->lock);
  return n;
}

static void add(struct hk_counters *c, const struct hk_udp_feed *f)
{
  hk_count(&c->lost, hk_udp_feed_lost(f));
  hk_count(&c->lost_points, hk_udp_feed_lost_points(f));
  hk_count(&c->repeated, f->repeated);
  hk_count(&c->reordered, f->reordered);
  hk_count(&c->too_late, f->too_late);
  hk_count(&c->bad_datagrams, f->malformed);
}

void hk_seats_give(struct hk_seats *s, struct hk_seat *seat, struct hk_counters *counters)
{
  pthread_mutex_lock(&seat->lock);
  add(counters, &seat->feed);
  seat->feed = (struct hk_udp_feed){ 0 };
  hk_mac_free(seat->mac);
  seat->mac = NULL;
  seat->number = 0;
  pthread_mutex_unlock(&seat->lock);
  pthread_mutex_lock(&s->lock);
  s->free[s->n_free++] = seat->index;
  pthread_mutex_unlock(&s->lock);
}

void hk_seats_sum(struct hk_seats *s, struct hk_counters *sum)
{
  pthread_mutex_lock(&s->lock);
  const uint32_t high = s->high;
  pthread_mutex_unlock(&s->lock);
  for (uint32_t i = 0; i < high; i++) {
    pthread_mutex_lock(&s->seats[i].lock);
    add(sum, &s->seats[i].feed);
    pthread_mutex_unlock(&s->seats[i].lock);
  }
}

uint64_t hk_seat_open(struct hk_seat *seat, struct hk_source *source)
{
  uint64_t number;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
    return 0;
  number = (number & ~(uint64_t)0xffff) | seat->index;
  pthread_mutex_lock(&seat->lock);
  seat->number = number;
  seat->source = source;
  pthread_mutex_unlock(&seat->lock);
  return number;
}

int hk_seat_key(struct hk_seat *seat, uint8_t key[HK_MAC_KEY])
{
  if (getrandom(key, HK_MAC_KEY, GRND_NONBLOCK) != (ssize_t)HK_MAC_KEY)
    return -EIO;
  struct hk_mac *mac = hk_mac_new(key);
  if (!mac)
    return -ENOMEM;
  pthread_mutex_lock(&seat->lock);
  if (seat->number != 0) {
    hk_mac_free(seat->mac);
    seat->mac = mac;
    mac = NULL;
  }
  pthread_mutex_unlock(&seat->lock);
  hk_mac_free(mac);
  return mac ? -EPERM : 0;
}

bool hk_seat_fed(struct hk_seat *seat)
{
  pthread_mutex_lock(&seat->lock);
  const bool fed = seat->feed.highest > 0;
  pthread_mutex_unlock(&seat->lock);
  return fed;
}

void hk_seat_end(struct hk_seat *seat, uint64_t datagrams, uint64_t points)
{
  pthread_mutex_lock(&seat->lock);
  hk_udp_feed_end(&seat->feed, datagrams, points);
  pthread_mutex_unlock(&seat->lock);
}

void hk_seat_shut(struct hk_seat *seat)
{
  if (!seat)
    return;
  pthread_mutex_lock(&seat->lock);
  hk_mac_free(seat->mac);
  seat->mac = NULL;
  seat->number = 0;
  seat->source = NULL;
  pthread_mutex_unlock(&seat->lock);
}

struct hk_seat *hk_seat_enter(struct hk_seats *s, uint64_t number)
{
  const uint32_t index = number & 0xffff;
  if (index >= s->n || number >> 16 == 0)
    return NULL;
  struct hk_seat *seat = &s->seats[index];
  pthread_mutex_lock(&seat->lock);
  if (seat->number == number)
    return seat;
  pthread_mutex_unlock(&seat->lock);
  return NULL;
}

void hk_seat_leave(struct hk_seat *seat)
{
  pthread_mutex_unlock(&seat->lock);
}
