/* The number of a feed is random, except its last 16 bits: the index of the peer feed. */
#include "daemon/net/udp_feeds.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

int hk_peer_feeds_open(struct hk_peer_feeds *s, uint32_t n)
{
  s->peer_feeds = calloc(n, sizeof *s->peer_feeds);
  s->free = calloc(n, sizeof *s->free);
  pthread_mutex_init(&s->lock, NULL);
  s->n = n;
  if (!s->peer_feeds || !s->free)
    return -ENOMEM;
  for (uint32_t i = 0; i < n; i++) {
    pthread_mutex_init(&s->peer_feeds[i].lock, NULL);
    s->peer_feeds[i].index = i;
    s->free[s->n_free++] = n - 1 - i;
  }
  return 0;
}

void hk_peer_feeds_close(struct hk_peer_feeds *s)
{
  for (uint32_t i = 0; s->peer_feeds && i < s->n; i++) {
    pthread_mutex_destroy(&s->peer_feeds[i].lock);
    hk_mac_free(s->peer_feeds[i].mac);
  }
  if (s->n > 0)
    pthread_mutex_destroy(&s->lock);
  free(s->peer_feeds);
  free(s->free);
  *s = (struct hk_peer_feeds){ 0 };
}

struct hk_peer_feed *hk_peer_feeds_take(struct hk_peer_feeds *s)
{
  pthread_mutex_lock(&s->lock);
  struct hk_peer_feed *peer_feed = s->n_free > 0 ? &s->peer_feeds[s->free[--s->n_free]] : NULL;
  if (peer_feed && peer_feed->index >= s->high)
    s->high = peer_feed->index + 1;
  pthread_mutex_unlock(&s->lock);
  return peer_feed;
}

uint32_t hk_peer_feeds_taken(struct hk_peer_feeds *s)
{
  pthread_mutex_lock(&s->lock);
  const uint32_t n = s->n - s->n_free;
  pthread_mutex_unlock(&s->lock);
  return n;
}

static void udp_feeds_add(struct hk_counters *c, const struct hk_udp_feed *f)
{
  hk_count(&c->lost, hk_udp_feed_lost(f));
  hk_count(&c->lost_points, hk_udp_feed_lost_points(f));
  hk_count(&c->repeated, f->repeated);
  hk_count(&c->reordered, f->reordered);
  hk_count(&c->too_late, f->too_late);
  hk_count(&c->bad_datagrams, f->malformed);
}

void hk_peer_feeds_give(struct hk_peer_feeds *s, struct hk_peer_feed *peer_feed, struct hk_counters *counters)
{
  pthread_mutex_lock(&peer_feed->lock);
  udp_feeds_add(counters, &peer_feed->feed);
  peer_feed->feed = (struct hk_udp_feed){ 0 };
  hk_mac_free(peer_feed->mac);
  peer_feed->mac = NULL;
  peer_feed->number = 0;
  pthread_mutex_unlock(&peer_feed->lock);
  pthread_mutex_lock(&s->lock);
  s->free[s->n_free++] = peer_feed->index;
  pthread_mutex_unlock(&s->lock);
}

void hk_peer_feeds_sum(struct hk_peer_feeds *s, struct hk_counters *sum)
{
  pthread_mutex_lock(&s->lock);
  const uint32_t high = s->high;
  pthread_mutex_unlock(&s->lock);
  for (uint32_t i = 0; i < high; i++) {
    pthread_mutex_lock(&s->peer_feeds[i].lock);
    udp_feeds_add(sum, &s->peer_feeds[i].feed);
    pthread_mutex_unlock(&s->peer_feeds[i].lock);
  }
}

uint64_t hk_peer_feed_open(struct hk_peer_feed *peer_feed, struct hk_source *source)
{
  uint64_t number;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
    return 0;
  number = (number & ~(uint64_t)0xffff) | peer_feed->index;
  pthread_mutex_lock(&peer_feed->lock);
  peer_feed->number = number;
  peer_feed->source = source;
  pthread_mutex_unlock(&peer_feed->lock);
  return number;
}

int hk_peer_feed_key(struct hk_peer_feed *peer_feed, uint8_t key[HK_MAC_KEY])
{
  if (getrandom(key, HK_MAC_KEY, GRND_NONBLOCK) != (ssize_t)HK_MAC_KEY)
    return -EIO;
  struct hk_mac *mac = hk_mac_new(key);
  if (!mac)
    return -ENOMEM;
  pthread_mutex_lock(&peer_feed->lock);
  if (peer_feed->number != 0) {
    hk_mac_free(peer_feed->mac);
    peer_feed->mac = mac;
    mac = NULL;
  }
  pthread_mutex_unlock(&peer_feed->lock);
  hk_mac_free(mac);
  return mac ? -EPERM : 0;
}

bool hk_peer_feed_fed(struct hk_peer_feed *peer_feed)
{
  pthread_mutex_lock(&peer_feed->lock);
  const bool fed = peer_feed->feed.highest > 0;
  pthread_mutex_unlock(&peer_feed->lock);
  return fed;
}

void hk_peer_feed_end(struct hk_peer_feed *peer_feed, uint64_t datagrams, uint64_t points)
{
  pthread_mutex_lock(&peer_feed->lock);
  hk_udp_feed_end(&peer_feed->feed, datagrams, points);
  pthread_mutex_unlock(&peer_feed->lock);
}

void hk_peer_feed_shut(struct hk_peer_feed *peer_feed)
{
  if (!peer_feed)
    return;
  pthread_mutex_lock(&peer_feed->lock);
  hk_mac_free(peer_feed->mac);
  peer_feed->mac = NULL;
  peer_feed->number = 0;
  peer_feed->source = NULL;
  pthread_mutex_unlock(&peer_feed->lock);
}

struct hk_peer_feed *hk_peer_feed_enter(struct hk_peer_feeds *s, uint64_t number)
{
  const uint32_t index = number & 0xffff;
  if (index >= s->n || number >> 16 == 0)
    return NULL;
  struct hk_peer_feed *peer_feed = &s->peer_feeds[index];
  pthread_mutex_lock(&peer_feed->lock);
  if (peer_feed->number == number)
    return peer_feed;
  pthread_mutex_unlock(&peer_feed->lock);
  return NULL;
}

void hk_peer_feed_leave(struct hk_peer_feed *peer_feed)
{
  pthread_mutex_unlock(&peer_feed->lock);
}
