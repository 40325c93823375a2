/* Feeds by number are an array whose entries stay where they are; by name they are found through a list under each of some
 * thousand hashes, keyed so that nobody can prepare names that collide. */
#include "daemon/durable/feeds.h"

#include "daemon/durable/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#define LISTS 4096u

struct entry {
  struct hk_feed *feed;
  uint32_t next; /* number of the next in its list; 0: the last */
};

struct hk_feeds {
  pthread_rwlock_t lock; /* of all below */
  uint32_t shards, n;    /* n: the highest number */
  uint64_t seed;
  struct entry *entries;              /* by number, from 1 on */
  uint32_t lists[LISTS];              /* number of the first in each */
  struct hk_journal *const *journals; /* NULL: there are none */
};

int hk_feeds_new(struct hk_feeds **out, uint32_t shards)
{
  struct hk_feeds *f = calloc(1, sizeof *f);
  if (!f)
    return -ENOMEM;
  pthread_rwlock_init(&f->lock, NULL);
  f->shards = shards;
  f->entries = calloc(HK_FEEDS_MAX + 1, sizeof *f->entries); /* address space; memory as it is touched */
  const bool random = getrandom(&f->seed, sizeof f->seed, 0) == sizeof f->seed;
  if (!f->entries || !random) {
    hk_feeds_free(f);
    return random ? -ENOMEM : -EIO;
  }
  *out = f;
  return 0;
}

static void feed_free(struct hk_feed *feed)
{
  if (!feed)
    return;
  pthread_mutex_destroy(&feed->lock);
  free((char *)(uintptr_t)feed->name.data);
  free(feed);
}

void hk_feeds_free(struct hk_feeds *f)
{
  if (!f)
    return;
  for (uint32_t i = 1; f->entries && i <= f->n; i++)
    feed_free(f->entries[i].feed);
  free(f->entries);
  pthread_rwlock_destroy(&f->lock);
  free(f);
}

static uint32_t list_of(const struct hk_feeds *f, struct hk_string name)
{
  return (uint32_t)(XXH3_64bits_withSeed(name.data, name.length, f->seed) % LISTS);
}

/* Under the lock. */
static struct hk_feed *find(const struct hk_feeds *f, struct hk_string name)
{
  for (uint32_t i = f->lists[list_of(f, name)]; i != 0; i = f->entries[i].next) {
    struct hk_feed *feed = f->entries[i].feed;
    if (feed->name.length == name.length && memcmp(feed->name.data, name.data, name.length) == 0)
      return feed;
  }
  return NULL;
}

/* Under the lock, for writing: makes the feed of a number that is free. NULL: no memory. */
static struct hk_feed *make(struct hk_feeds *f, uint32_t number, struct hk_string name)
{
  struct hk_feed *feed = aligned_alloc(_Alignof(struct hk_feed), sizeof *feed);
  char *text = malloc(name.length + 1);
  if (!feed || !text) {
    free(feed);
    free(text);
    return NULL;
  }
  memset(feed, 0, sizeof *feed);
  memcpy(text, name.data, name.length);
  text[name.length] = 0;
  feed->number = number;
  feed->shards = f->shards;
  feed->name = (struct hk_string){ text, name.length };
  pthread_mutex_init(&feed->lock, NULL);
  const uint32_t list = list_of(f, name);
  f->entries[number] = (struct entry){ feed, f->lists[list] };
  f->lists[list] = number;
  if (f->n < number)
    f->n = number;
  return feed;
}

/* A new feed, which the journals hear of before any of its points. */
static int add(struct hk_feeds *f, struct hk_string name, struct hk_feed **out)
{
  const struct hk_record_feed record = { f->n + 1, name };
  if (f->n == HK_FEEDS_MAX)
    return -ENOSPC;
  for (uint32_t i = 0; f->journals && i < f->shards; i++)
    if (hk_record_feed(f->journals[i], &record) != 0)
      return -ENOMEM; /* a journal that has it all the same names a feed that never was; the number is given to the next one */
  *out = make(f, record.number, name);
  return *out ? 0 : -ENOMEM;
}

void hk_feeds_journal(struct hk_feeds *f, struct hk_journal *const *journals)
{
  pthread_rwlock_wrlock(&f->lock);
  f->journals = journals;
  pthread_rwlock_unlock(&f->lock);
}

int hk_feeds_take(struct hk_feeds *f, struct hk_string name, struct hk_wake *loop, struct hk_feed **out, uint64_t *turn)
{
  int status = 0;
  pthread_rwlock_wrlock(&f->lock);
  struct hk_feed *feed = find(f, name);
  if (!feed)
    status = add(f, name, &feed);
  pthread_rwlock_unlock(&f->lock);
  if (status != 0)
    return status;
  pthread_mutex_lock(&feed->lock);
  *turn = ++feed->turn;
  feed->loop = loop;
  pthread_mutex_unlock(&feed->lock);
  *out = feed;
  return 0;
}

void hk_feed_give_up(struct hk_feed *feed, uint64_t turn)
{
  pthread_mutex_lock(&feed->lock);
  if (feed->turn == turn) {
    feed->turn++;
    feed->loop = NULL;
  }
  pthread_mutex_unlock(&feed->lock);
}

bool hk_feed_enter(struct hk_feed *feed, uint64_t turn)
{
  pthread_mutex_lock(&feed->lock);
  if (feed->turn == turn)
    return true;
  pthread_mutex_unlock(&feed->lock);
  return false;
}

void hk_feed_leave(struct hk_feed *feed)
{
  pthread_mutex_unlock(&feed->lock);
}

uint64_t hk_feed_committed(const struct hk_feed *feed)
{
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < feed->shards; i++) {
    const uint64_t committed = atomic_load_explicit(&feed->part[i].committed, memory_order_acquire);
    least = committed < least ? committed : least;
  }
  return least;
}

void hk_feed_taken(struct hk_feed *feed, uint32_t shard, uint64_t upto)
{
  /* after a restart a shard may have more of it than the others, and what comes again says less */
  if (atomic_load_explicit(&feed->part[shard].taken, memory_order_relaxed) < upto)
    atomic_store_explicit(&feed->part[shard].taken, upto, memory_order_release);
}

void hk_feed_commit(struct hk_feed *feed, uint32_t shard, uint64_t upto)
{
  struct hk_wake *loop = atomic_load_explicit(&feed->loop, memory_order_acquire);
  if (atomic_load_explicit(&feed->part[shard].committed, memory_order_relaxed) >= upto)
    return;
  atomic_store_explicit(&feed->part[shard].committed, upto, memory_order_release);
  if (loop)
    hk_wake_up(loop, HK_WAKE_WORK);
}

void hk_feeds_note(struct hk_feeds *f, uint32_t shard)
{
  pthread_rwlock_rdlock(&f->lock);
  for (uint32_t i = 1; i <= f->n; i++)
    if (f->entries[i].feed)
      f->entries[i].feed->part[shard].noted = atomic_load_explicit(&f->entries[i].feed->part[shard].taken, memory_order_acquire);
  pthread_rwlock_unlock(&f->lock);
}

void hk_feeds_commit_noted(struct hk_feeds *f, uint32_t shard)
{
  pthread_rwlock_rdlock(&f->lock);
  for (uint32_t i = 1; i <= f->n; i++)
    if (f->entries[i].feed)
      hk_feed_commit(f->entries[i].feed, shard, f->entries[i].feed->part[shard].noted);
  pthread_rwlock_unlock(&f->lock);
}

struct hk_feed *hk_feeds_get(struct hk_feeds *f, uint32_t number)
{
  pthread_rwlock_rdlock(&f->lock);
  struct hk_feed *feed = number >= 1 && number <= f->n ? f->entries[number].feed : NULL;
  pthread_rwlock_unlock(&f->lock);
  return feed;
}

uint32_t hk_feeds_count(struct hk_feeds *f)
{
  pthread_rwlock_rdlock(&f->lock);
  const uint32_t n = f->n;
  pthread_rwlock_unlock(&f->lock);
  return n;
}

int hk_feeds_restore(struct hk_feeds *f, uint32_t number, struct hk_string name)
{
  int status = 0;
  pthread_rwlock_wrlock(&f->lock);
  const struct hk_feed *there = number >= 1 && number <= HK_FEEDS_MAX ? f->entries[number].feed : NULL, *same = find(f, name);
  if (number < 1 || number > HK_FEEDS_MAX || there != same)
    status = -EBADMSG;
  else if (!there && !make(f, number, name))
    status = -ENOMEM;
  pthread_rwlock_unlock(&f->lock);
  return status;
}

void hk_feeds_restore_part(struct hk_feeds *f, uint32_t number, uint32_t shard, uint64_t upto)
{
  struct hk_feed *feed = hk_feeds_get(f, number);
  if (feed && shard < HK_SHARDS_MAX && feed->part[shard].committed < upto)
    feed->part[shard].committed = feed->part[shard].taken = upto;
}

void hk_feeds_restored(struct hk_feeds *f, uint32_t of)
{
  for (uint32_t i = 1; i <= f->n; i++) {
    struct hk_feed *feed = f->entries[i].feed;
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t k = 0; feed && k < of; k++) {
      const uint64_t upto = feed->part[k].committed;
      least = upto < least ? upto : least;
      most = upto > most ? upto : most;
    }
    for (uint32_t k = 0; feed && k < of; k++)
      feed->part[k].had = feed->part[k].committed;
    for (uint32_t k = 0; feed && of != f->shards && k < HK_SHARDS_MAX; k++)
      feed->part[k].committed = feed->part[k].taken = k < f->shards ? least : 0;
    if (feed) {
      feed->received = least;
      feed->horizon = most;
      feed->before = of;
    }
  }
}
