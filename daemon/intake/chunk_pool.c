/* Empty chunks form a stack. When it is empty, it is refilled with the chunks that the shards have returned. */
#include "daemon/intake/chunk_pool.h"

#include "daemon/base/log.h"

#include <errno.h>
#include <stdlib.h>

#define SEALED 2 /* if so many chunks wait for a shard, points are kept for a fuller chunk */

static void chunk_pool_collect(struct hk_chunk_pool *o)
{
  struct hk_chunk *c;
  for (uint32_t i = 0; i < o->filling.shards; i++)
    while ((c = hk_ring_take(&o->lanes[i]->emptied)) != NULL)
      o->empty[o->n_empty++] = c;
}

/* Takes an empty chunk; NULL: there is none. */
static struct hk_chunk *take_empty(struct hk_chunk_pool *o)
{
  if (o->n_empty == 0)
    chunk_pool_collect(o);
  return o->n_empty > 0 ? o->empty[--o->n_empty] : NULL;
}

/* Hands a chunk or a token to its shard. The ring has room for all chunks. */
static void hand(struct hk_chunk_pool *o, uint32_t shard, struct hk_chunk *chunk)
{
  chunk->sealed = hk_now();
  (void)hk_ring_put(&o->lanes[shard]->sealed, chunk);
  hk_wake_up(o->lanes[shard]->shard, HK_WAKE_WORK);
}

static struct hk_chunk *full(void *arg, uint32_t shard)
{
  struct hk_chunk_pool *o = arg;
  hand(o, shard, o->filling.chunk[shard]);
  return take_empty(o); /* there is an empty one: see hk_chunk_pool_room */
}

uint32_t hk_chunk_pool_chunks(uint32_t points, uint32_t n_shards)
{
  return points / HK_CHUNK_POINTS + 1 + 2 * n_shards; /* an open one for each shard, and a second one */
}

int hk_chunk_pool_open(struct hk_chunk_pool *o, struct hk_lane *lanes, uint32_t n_shards, uint32_t stride, uint32_t loop,
                       uint32_t points)
{
  const uint32_t n = hk_chunk_pool_chunks(points, n_shards);
  o->filling = (struct hk_filling){ .shards = n_shards, .full = full, .arg = o };
  o->empty = calloc(n, sizeof(struct hk_chunk *));
  if (!o->empty)
    return -ENOMEM;
  for (uint32_t i = 0; i < n_shards; i++)
    o->lanes[i] = &lanes[i * stride];
  for (uint32_t i = 0; i < n; i++) {
    struct hk_chunk *c = hk_chunk_new(loop);
    if (!c)
      return -ENOMEM;
    if (i < n_shards)
      o->filling.chunk[i] = c;
    else
      o->empty[o->n_empty++] = c;
  }
  return 0;
}

static void free_chunk(struct hk_chunk *c)
{
  for (uint32_t i = 0; c && i < c->n_runs; i++)
    hk_source_done(c->runs[i].source, c->runs[i].n);
  hk_chunk_free(c);
}

void hk_chunk_pool_close(struct hk_chunk_pool *o)
{
  struct hk_chunk *c;
  for (uint32_t i = 0; i < o->filling.shards && o->lanes[i]; i++) {
    free_chunk(o->filling.chunk[i]);
    while ((c = hk_ring_take(&o->lanes[i]->sealed)) != NULL)
      if (c != &o->lanes[i]->token)
        free_chunk(c);
    while ((c = hk_ring_take(&o->lanes[i]->emptied)) != NULL)
      free_chunk(c);
  }
  while (o->n_empty > 0)
    free_chunk(o->empty[--o->n_empty]);
  free(o->empty);
}

uint32_t hk_chunk_pool_room(struct hk_chunk_pool *o)
{
  /* A full chunk is handed over at once, and another one must take its place. So each shard may need one chunk for a few
   * points, and another for each chunk's capacity. */
  chunk_pool_collect(o);
  for (uint32_t i = 0; i < o->filling.shards; i++)
    if (o->filling.chunk[i]->n_marks == HK_CHUNK_MARKS)
      return 0;
  if (o->n_empty >= o->filling.shards)
    return (o->n_empty - o->filling.shards + 1) * HK_CHUNK_POINTS;
  uint32_t least = HK_CHUNK_POINTS;
  for (uint32_t i = 0; i < o->filling.shards; i++)
    if (hk_chunk_room(o->filling.chunk[i]) < least)
      least = hk_chunk_room(o->filling.chunk[i]);
  return least - 1;
}

static void chunk_pool_seal(struct hk_chunk_pool *o, uint32_t shard, struct hk_chunk *next)
{
  hand(o, shard, o->filling.chunk[shard]);
  o->filling.chunk[shard] = next;
}

bool hk_chunk_pool_seal(struct hk_chunk_pool *o)
{
  bool all = true;
  for (uint32_t i = 0; i < o->filling.shards; i++) {
    struct hk_lane *lane = o->lanes[i];
    struct hk_chunk *next = NULL;
    if (!hk_chunk_empty(o->filling.chunk[i]) && (o->tokens_due[i] > 0 || hk_ring_count(&lane->sealed) < SEALED) &&
        (next = take_empty(o)) != NULL)
      chunk_pool_seal(o, i, next);
    for (; hk_chunk_empty(o->filling.chunk[i]) && o->tokens_due[i] > 0; o->tokens_due[i]--)
      hand(o, i, &lane->token);
    all &= hk_chunk_empty(o->filling.chunk[i]);
  }
  return all;
}

bool hk_chunk_pool_returned(const struct hk_chunk_pool *o)
{
  for (uint32_t i = 0; i < o->filling.shards; i++)
    if (!hk_ring_empty(&o->lanes[i]->emptied))
      return true;
  return false;
}

void hk_chunk_pool_token(struct hk_chunk_pool *o, uint32_t shard)
{
  o->tokens_due[shard]++;
}
