/* Feeds are found by name and by number through lists, each for a range of hashes. The hash of names is keyed, so that no peer
 * can prepare colliding names; numbers are consecutive. */
#include "daemon/durable/named_feeds.h"

#include "daemon/base/log.h"
#include "daemon/durable/journal_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#define LISTS 65536u
#define SWEPT 1000000000ll /* ns between two searches for feeds to forget, when there is no room for a new one */

struct hk_feeds {
  pthread_rwlock_t lock; /* protects everything below */
  uint32_t shards, n;    /* n: number of feeds */
  uint32_t last;         /* last number that was given, or read from a file */
  uint32_t most;         /* limit for one owner; 0: any number */
  int64_t expiry, swept; /* ns */
  uint64_t refused, expired;
  uint64_t seed;
  struct hk_feed **by_name, **by_number; /* the first in each list */
  struct hk_journal *const *journals;    /* NULL: none */
};

int hk_feeds_new(struct hk_feeds **out, uint32_t shards)
{
  struct hk_feeds *f = calloc(1, sizeof *f);
  if (!f)
    return -ENOMEM;
  pthread_rwlock_init(&f->lock, NULL);
  f->shards = shards;
  f->by_name = calloc(LISTS, sizeof(struct hk_feed *)); /* address space; memory as it is touched */
  f->by_number = calloc(LISTS, sizeof(struct hk_feed *));
  const bool random = getrandom(&f->seed, sizeof f->seed, 0) == sizeof f->seed;
  if (!f->by_name || !f->by_number || !random) {
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
  for (uint32_t i = 0; f->by_number && i < LISTS; i++)
    for (struct hk_feed *feed = f->by_number[i], *next; feed; feed = next) {
      next = feed->next_of_number;
      feed_free(feed);
    }
  free(f->by_name);
  free(f->by_number);
  pthread_rwlock_destroy(&f->lock);
  free(f);
}

/* --- under the lock ----------------------------------------------------------------------------------------------------- */

static struct hk_feed **feeds_list_of(const struct hk_feeds *f, struct hk_string name)
{
  return &f->by_name[XXH3_64bits_withSeed(name.data, name.length, f->seed) % LISTS];
}

static struct hk_feed *feeds_find(const struct hk_feeds *f, struct hk_string name)
{
  struct hk_feed *feed = *feeds_list_of(f, name);
  while (feed && (feed->name.length != name.length || memcmp(feed->name.data, name.data, name.length) != 0))
    feed = feed->next_of_name;
  return feed;
}

static struct hk_feed *feeds_get(const struct hk_feeds *f, uint32_t number)
{
  struct hk_feed *feed = f->by_number[number % LISTS];
  while (feed && feed->number != number)
    feed = feed->next_of_number;
  return feed;
}

/* Makes the feed of an unused number. NULL: no memory. */
static struct hk_feed *feeds_make(struct hk_feeds *f, const struct hk_record_feed *about)
{
  const struct hk_string name = about->name;
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
  feed->number = about->number;
  feed->shards = f->shards;
  feed->name = (struct hk_string){ text, name.length };
  feed->owner = about->owner;
  feed->used = about->used;
  pthread_mutex_init(&feed->lock, NULL);
  struct hk_feed **named = feeds_list_of(f, name), **numbered = &f->by_number[about->number % LISTS];
  feed->next_of_name = *named;
  feed->next_of_number = *numbered;
  *named = *numbered = feed;
  f->n++;
  return feed;
}

/* Removes a feed without holds from the lists, and frees it. */
static void feeds_drop(struct hk_feeds *f, struct hk_feed *feed)
{
  struct hk_feed **named = feeds_list_of(f, feed->name), **numbered = &f->by_number[feed->number % LISTS];
  while (*named != feed)
    named = &(*named)->next_of_name;
  while (*numbered != feed)
    numbered = &(*numbered)->next_of_number;
  *named = feed->next_of_name;
  *numbered = feed->next_of_number;
  f->n--;
  feed_free(feed);
}

static bool has_points(const struct hk_feed *feed)
{
  return feed->received > 0 || feed->horizon > 0;
}

/* Whether a feed may be forgotten. */
static bool may_go(const struct hk_feeds *f, struct hk_feed *feed, int64_t now)
{
  if (atomic_load_explicit(&feed->holds, memory_order_acquire) > 0)
    return false;
  if (feed->used > now) /* the clock was set back */
    feed->used = now;
  for (uint32_t i = 0; i < feed->shards; i++)
    if (feed->part[i].taken != feed->received || feed->part[i].committed != feed->received)
      return false;
  if (feed->horizon > feed->received)
    return false;
  return !has_points(feed) || (f->expiry > 0 && now - feed->used >= f->expiry);
}

static uint32_t feeds_sweep(struct hk_feeds *f, int64_t now)
{
  uint32_t expired = 0;
  f->swept = hk_now();
  for (uint32_t list = 0; f->n > 0 && list < LISTS; list++)
    for (struct hk_feed *feed = f->by_number[list], *next; feed; feed = next) {
      next = feed->next_of_number;
      if (!may_go(f, feed, now))
        continue;
      expired += has_points(feed);
      /* A journal without memory for the record keeps the feed: a restart restores it, to be forgotten again. */
      for (uint32_t i = 0; f->journals && i < f->shards; i++)
        (void)hk_record_feed_gone(f->journals[i], feed->number);
      feeds_drop(f, feed);
    }
  f->expired += expired;
  return expired;
}

/* Whether there is room for another feed of this owner. Returns 0, -ENOSPC or -EDQUOT. */
static int feeds_room_for(const struct hk_feeds *f, uint64_t owner)
{
  uint32_t owned = 0;
  if (f->n >= HK_FEEDS_MAX || f->last == UINT32_MAX)
    return -ENOSPC;
  if (f->most == 0 || owner == 0 || f->n < f->most)
    return 0;
  for (uint32_t list = 0; list < LISTS; list++)
    for (const struct hk_feed *feed = f->by_number[list]; feed; feed = feed->next_of_number)
      owned += feed->owner == owner;
  return owned < f->most ? 0 : -EDQUOT;
}

/* Makes a feed, which is written to the journals before any of its points. */
static int feeds_add(struct hk_feeds *f, struct hk_string name, uint64_t owner, struct hk_feed **out)
{
  const int64_t now = hk_wall();
  int status = feeds_room_for(f, owner);
  if (status != 0 && hk_now() - f->swept >= SWEPT) {
    (void)feeds_sweep(f, now);
    status = feeds_room_for(f, owner);
  }
  if (status != 0) {
    f->refused++;
    return status;
  }
  const struct hk_record_feed record = { ++f->last, name, owner, now };
  for (uint32_t i = 0; f->journals && i < f->shards; i++)
    if (hk_record_feed(f->journals[i], &record) != 0)
      return -ENOMEM; /* a journal that has it nevertheless names a feed that never existed */
  *out = feeds_make(f, &record);
  return *out ? 0 : -ENOMEM;
}

/* --- all feeds ---------------------------------------------------------------------------------------------------------- */

void hk_feeds_journal(struct hk_feeds *f, struct hk_journal *const *journals)
{
  pthread_rwlock_wrlock(&f->lock);
  f->journals = journals;
  pthread_rwlock_unlock(&f->lock);
}

void hk_feeds_limit(struct hk_feeds *f, uint32_t most, int64_t expiry)
{
  pthread_rwlock_wrlock(&f->lock);
  f->most = most;
  f->expiry = expiry;
  pthread_rwlock_unlock(&f->lock);
}

uint32_t hk_feeds_expire(struct hk_feeds *f, int64_t now)
{
  pthread_rwlock_wrlock(&f->lock);
  const uint32_t expired = feeds_sweep(f, now);
  pthread_rwlock_unlock(&f->lock);
  return expired;
}

int hk_feeds_take(struct hk_feeds *f, struct hk_string name, uint64_t owner, struct hk_wake *loop, struct hk_feed **out,
                  uint64_t *turn)
{
  int status = 0;
  pthread_rwlock_wrlock(&f->lock);
  struct hk_feed *feed = feeds_find(f, name);
  if (!feed)
    status = feeds_add(f, name, owner, &feed);
  if (feed) {
    hk_feed_hold(feed);
    feed->owner = feed->owner ? feed->owner : owner;
  }
  pthread_rwlock_unlock(&f->lock);
  if (status != 0)
    return status;
  pthread_mutex_lock(&feed->lock);
  *turn = ++feed->turn;
  feed->loop = loop;
  feed->used = hk_wall();
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
  feed->used = hk_wall();
  pthread_mutex_unlock(&feed->lock);
  hk_feed_release(feed);
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

bool hk_feed_settled(struct hk_feed *feed, uint64_t turn)
{
  bool settled = true;
  pthread_mutex_lock(&feed->lock);
  const bool mine = feed->turn == turn;
  if (mine)
    atomic_store(&feed->awaited, true); /* before the check, so that points taken after it wake the connection */
  for (uint32_t i = 0; i < feed->shards; i++)
    settled &= atomic_load(&feed->part[i].taken) >= feed->received;
  if (mine && settled)
    atomic_store(&feed->awaited, false);
  pthread_mutex_unlock(&feed->lock);
  return settled || !mine;
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

bool hk_feed_is_committed(struct hk_feed *feed)
{
  pthread_mutex_lock(&feed->lock);
  const uint64_t received = feed->received;
  pthread_mutex_unlock(&feed->lock);
  return hk_feed_committed(feed) >= received;
}

void hk_feed_taken(struct hk_feed *feed, uint32_t shard, uint64_t upto)
{
  struct hk_wake *loop;
  /* after a restart a shard may have more points of the feed than the others, and a repeated mark is lower */
  if (atomic_load_explicit(&feed->part[shard].taken, memory_order_relaxed) >= upto)
    return;
  atomic_store(&feed->part[shard].taken, upto);
  if (atomic_load(&feed->awaited) && (loop = atomic_load_explicit(&feed->loop, memory_order_acquire)) != NULL)
    hk_wake_up(loop, HK_WAKE_WORK);
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

int hk_feeds_each(struct hk_feeds *f, int (*each)(void *arg, struct hk_feed *feed), void *arg)
{
  int status = 0;
  pthread_rwlock_rdlock(&f->lock);
  for (uint32_t list = 0; f->n > 0 && list < LISTS; list++)
    for (struct hk_feed *feed = f->by_number[list]; feed && status == 0; feed = feed->next_of_number)
      status = each(arg, feed);
  pthread_rwlock_unlock(&f->lock);
  return status;
}

static int feeds_feed_note(void *shard, struct hk_feed *feed)
{
  struct hk_feed_part *part = &feed->part[*(const uint32_t *)shard];
  part->noted = atomic_load_explicit(&part->taken, memory_order_acquire);
  return 0;
}

void hk_feeds_note(struct hk_feeds *f, uint32_t shard)
{
  (void)hk_feeds_each(f, feeds_feed_note, &shard);
}

static int feed_commit_noted(void *shard, struct hk_feed *feed)
{
  const uint32_t number = *(const uint32_t *)shard;
  hk_feed_commit(feed, number, feed->part[number].noted);
  return 0;
}

void hk_feeds_commit_noted(struct hk_feeds *f, uint32_t shard)
{
  (void)hk_feeds_each(f, feed_commit_noted, &shard);
}

void hk_feeds_commit(struct hk_feeds *f, uint32_t number, uint32_t shard, uint64_t upto)
{
  pthread_rwlock_rdlock(&f->lock);
  struct hk_feed *feed = feeds_get(f, number);
  if (feed)
    hk_feed_commit(feed, shard, upto);
  pthread_rwlock_unlock(&f->lock);
}

struct hk_feeds_survey hk_feeds_survey(struct hk_feeds *f)
{
  pthread_rwlock_rdlock(&f->lock);
  const struct hk_feeds_survey survey = { f->n, f->refused, f->expired };
  pthread_rwlock_unlock(&f->lock);
  return survey;
}

/* --- restoring ---------------------------------------------------------------------------------------------------------- */

/* A feed of which only a shard's position was read so far. Its record is in the journal of another shard, which is read later: a
 * kill can come between the writes of the two journals, and the next run writes no record of a feed that it knows. */
static bool is_nameless(const struct hk_feed *feed)
{
  return feed->name.length == 0;
}

/* A file has this number, which is not given again. */
static void feeds_saw(struct hk_feeds *f, uint32_t number)
{
  f->last = f->last < number ? number : f->last;
}

/* Makes the feed of a record. so_far: its nameless form, whose positions it takes over; NULL: none was read. */
static int feeds_make_again(struct hk_feeds *f, const struct hk_record_feed *record, struct hk_feed *so_far)
{
  struct hk_feed *feed = feeds_make(f, record);
  if (!feed)
    return -ENOMEM;
  if (!so_far)
    return 0;
  for (uint32_t i = 0; i < HK_SHARDS_MAX; i++)
    feed->part[i].committed = feed->part[i].taken = so_far->part[i].committed;
  feed->used = feed->used < so_far->used ? so_far->used : feed->used;
  feeds_drop(f, so_far);
  return 0;
}

int hk_feeds_restore(struct hk_feeds *f, const struct hk_record_feed *record)
{
  if (record->number == 0)
    return -EBADMSG;
  int status = 0;
  pthread_rwlock_wrlock(&f->lock);
  struct hk_feed *there = feeds_get(f, record->number), *same = feeds_find(f, record->name);
  feeds_saw(f, record->number);
  if (there && !is_nameless(there)) {
    status = there == same ? 0 : -EBADMSG;
    if (status == 0 && there->used < record->used)
      there->used = record->used;
  } else if (!same || same->number < record->number) { /* else it is from before the name was forgotten */
    if (same)
      feeds_drop(f, same);
    status = feeds_make_again(f, record, there);
  }
  pthread_rwlock_unlock(&f->lock);
  return status;
}

void hk_feeds_restore_gone(struct hk_feeds *f, uint32_t number)
{
  pthread_rwlock_wrlock(&f->lock);
  struct hk_feed *feed = feeds_get(f, number);
  feeds_saw(f, number);
  if (feed)
    feeds_drop(f, feed);
  pthread_rwlock_unlock(&f->lock);
}

void hk_feeds_restore_used(struct hk_feeds *f, uint32_t number, int64_t now)
{
  struct hk_feed *feed = feeds_get(f, number);
  if (feed)
    feed->used = now;
}

void hk_feeds_restore_part(struct hk_feeds *f, uint32_t number, uint32_t shard, uint64_t upto)
{
  struct hk_feed *feed = feeds_get(f, number);
  if (!feed && number > 0) {
    feeds_saw(f, number);
    feed = feeds_make(f, &(struct hk_record_feed){ .number = number, .name = { "", 0 } }); /* no memory: the feed starts over */
  }
  if (feed && shard < HK_SHARDS_MAX && feed->part[shard].committed < upto)
    feed->part[shard].committed = feed->part[shard].taken = upto;
}

/* Completes the restoring of one feed. */
static void feed_restored(struct hk_feed *feed, uint32_t of, int64_t now)
{
  uint64_t least = UINT64_MAX, most = 0;
  for (uint32_t k = 0; k < of; k++) {
    const uint64_t upto = feed->part[k].committed;
    least = upto < least ? upto : least;
    most = upto > most ? upto : most;
    feed->part[k].had = upto;
  }
  for (uint32_t k = 0; of != feed->shards && k < HK_SHARDS_MAX; k++)
    feed->part[k].committed = feed->part[k].taken = k < feed->shards ? least : 0;
  feed->received = least;
  feed->horizon = most;
  feed->before = of;
  if (feed->used == 0)
    feed->used = now;
}

void hk_feeds_restored(struct hk_feeds *f, uint32_t of)
{
  const int64_t now = hk_wall();
  for (uint32_t list = 0; list < LISTS; list++)
    for (struct hk_feed *feed = f->by_number[list], *next; feed; feed = next) {
      next = feed->next_of_number;
      if (is_nameless(feed)) /* no file has its record: it is from before it was forgotten */
        feeds_drop(f, feed);
      else
        feed_restored(feed, of, now);
    }
}
