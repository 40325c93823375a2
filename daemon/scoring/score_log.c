/* See score_log.h. Blocks are only appended to, and a block's size is published after the entries, so it is read without a
 * lock, while its count of readers prevents its reuse. The lock is held briefly: by readers for each block, by the shard for
 * each new one. */
#include "daemon/scoring/score_log.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TOGETHER 256u       /* slots compared at a time */
#define FORGOTTEN INT64_MIN /* time of an entry that separates the slot's next sensor from an earlier one */

struct block {
  uint32_t slot[HK_SCORE_BLOCK];
  float score[HK_SCORE_BLOCK];
  int64_t time[HK_SCORE_BLOCK];
};
_Static_assert(sizeof(struct block) == HK_SCORE_BLOCK_BYTES, "as much as the header says");

/* State of a block. */
struct about {
  _Atomic uint32_t n; /* number of entries */
  uint32_t readers;   /* under the lock */
};

struct hk_score_log {
  pthread_mutex_t lock;
  uint32_t blocks;
  uint64_t newest; /* number of the block that is appended to, at index number % blocks. Changed under the lock */
  uint64_t oldest; /* number of the first readable block; under the lock */
  bool broken;     /* an entry could not be appended: earlier ones are no longer read */
  struct about *about;
  struct block *block;
};

struct hk_score_log *hk_score_log_new(uint64_t bytes)
{
  struct hk_score_log *log = calloc(1, sizeof *log);
  if (!log)
    return NULL;
  const uint64_t blocks = (bytes > HK_SCORE_LOG_LEAST ? bytes : HK_SCORE_LOG_LEAST) / HK_SCORE_BLOCK_BYTES;
  log->blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX;
  log->about = calloc(log->blocks, sizeof *log->about);
  log->block = calloc(log->blocks, sizeof *log->block);
  if (log->about && log->block && pthread_mutex_init(&log->lock, NULL) == 0)
    return log;
  free(log->about);
  free(log->block);
  free(log);
  return NULL;
}

void hk_score_log_free(struct hk_score_log *log)
{
  if (!log)
    return;
  pthread_mutex_destroy(&log->lock);
  free(log->about);
  free(log->block);
  free(log);
}

/* --- the shard's thread ------------------------------------------------------------------------------------------------- */

/* Begins the next block. False: it has a reader. */
static bool score_log_turn(struct hk_score_log *log)
{
  pthread_mutex_lock(&log->lock);
  struct about *next = &log->about[(log->newest + 1) % log->blocks];
  const bool free = next->readers == 0;
  if (free) {
    log->newest++;
    if (log->broken)
      log->oldest = log->newest;
    else if (log->newest - log->oldest == log->blocks)
      log->oldest++;
    atomic_store_explicit(&next->n, 0, memory_order_relaxed);
  }
  log->broken = !free;
  pthread_mutex_unlock(&log->lock);
  return free;
}

/* Makes room for at most n entries and returns their number; *at: where. 0: none at present. */
static uint32_t room(struct hk_score_log *log, uint32_t n, struct block **block, uint32_t *at)
{
  uint32_t used = atomic_load_explicit(&log->about[log->newest % log->blocks].n, memory_order_relaxed);
  if (log->broken || used == HK_SCORE_BLOCK) {
    if (!score_log_turn(log))
      return 0;
    used = 0;
  }
  *block = &log->block[log->newest % log->blocks];
  *at = used;
  return n < HK_SCORE_BLOCK - used ? n : HK_SCORE_BLOCK - used;
}

static void appended(struct hk_score_log *log, uint32_t n)
{
  atomic_store_explicit(&log->about[log->newest % log->blocks].n, n, memory_order_release);
}

void hk_score_log_put(struct hk_score_log *log, const struct hk_batch *b)
{
  struct block *to;
  uint32_t at;
  for (uint32_t i = 0, n; i < b->n && (n = room(log, b->n - i, &to, &at)) > 0; i += n) {
    memcpy(to->slot + at, b->slot + i, n * sizeof *to->slot);
    memcpy(to->score + at, b->score + i, n * sizeof *to->score);
    memcpy(to->time + at, b->time + i, n * sizeof *to->time);
    appended(log, at + n);
  }
}

void hk_score_log_forget(struct hk_score_log *log, uint32_t slot)
{
  struct block *to;
  uint32_t at;
  if (room(log, 1, &to, &at) == 0)
    return; /* no present entry will be read */
  to->slot[at] = slot;
  to->score[at] = NAN;
  to->time[at] = FORGOTTEN;
  appended(log, at + 1);
}

/* --- any thread ---------------------------------------------------------------------------------------------------------- */

/* The number of the newest block at present. */
static uint64_t score_log_newest(struct hk_score_log *log)
{
  pthread_mutex_lock(&log->lock);
  const uint64_t number = log->newest;
  pthread_mutex_unlock(&log->lock);
  return number;
}

/* Prevents the reuse of a block. Not for the next block to be reused, so that the shard rarely finds readers there. False: the
 * block no longer exists. */
static bool score_log_hold(struct hk_score_log *log, uint64_t number)
{
  pthread_mutex_lock(&log->lock);
  const bool there = number >= log->oldest && log->newest - number + 1 < log->blocks && !log->broken;
  if (there)
    log->about[number % log->blocks].readers++;
  pthread_mutex_unlock(&log->lock);
  return there;
}

static void let_go(struct hk_score_log *log, uint64_t number)
{
  pthread_mutex_lock(&log->lock);
  log->about[number % log->blocks].readers--;
  pthread_mutex_unlock(&log->lock);
}

/* Written so that compilers vectorise the comparison. */
static bool any_is(const uint32_t *slots, uint32_t n, uint32_t slot)
{
  uint32_t found = 0;
  for (uint32_t i = 0; i < n; i++)
    found |= slots[i] == slot;
  return found;
}

/* Collects scores of a slot, newest first, from the end of `out` on. */
struct reading {
  uint32_t slot;
  struct hk_scored *out;
  uint32_t left; /* number of free places of `out` */
};

/* False: there are no more entries to read. */
static bool read_block(struct reading *r, const struct block *block, uint32_t n)
{
  while (n > 0) {
    const uint32_t begin = (n - 1) / TOGETHER * TOGETHER;
    if (!any_is(block->slot + begin, n - begin, r->slot)) {
      n = begin;
      continue;
    }
    while (n > begin) {
      n--;
      if (block->slot[n] != r->slot)
        continue;
      if (block->time[n] == FORGOTTEN || r->left == 0)
        return false;
      if (!isnan(block->score[n]))
        r->out[--r->left] = (struct hk_scored){ block->time[n], block->score[n] };
    }
  }
  return r->left > 0;
}

uint32_t hk_score_log_read(struct hk_score_log *log, uint32_t slot, struct hk_scored *out, uint32_t most)
{
  struct reading r = { slot, out, most };
  bool more = most > 0;
  for (uint64_t number = score_log_newest(log); more && score_log_hold(log, number); number--) {
    const uint32_t at = (uint32_t)(number % log->blocks);
    more = read_block(&r, &log->block[at], atomic_load_explicit(&log->about[at].n, memory_order_acquire)) && number > 0;
    let_go(log, number);
  }
  memmove(out, out + r.left, (most - r.left) * sizeof *out);
  return most - r.left;
}
