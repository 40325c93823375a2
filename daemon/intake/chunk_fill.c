/* A full chunk is handed to its shard at once, so an open chunk always has room for a point. */
#include "daemon/intake/chunk_fill.h"
#include "proto/wire/columns.h"

#include <string.h>

#define PIECE 1024u

/* Counts the next n points of a shard's chunk, which were filled in. */
static void put_in(struct hk_filling *f, uint32_t shard, struct hk_source *source, uint32_t n)
{
  hk_chunk_add(f->chunk[shard], source, n);
  if (hk_chunk_room(f->chunk[shard]) == 0)
    f->chunk[shard] = f->full(f->arg, shard);
}

static void chunk_fill_note(struct hk_decoded *sum, const struct hk_decoded *more)
{
  if (sum->ahead == 0) {
    sum->slot = more->slot;
    sum->time = more->time;
  }
  sum->n += more->n;
  sum->ahead += more->ahead;
}

static struct hk_decoded fill_one(struct hk_filling *f, struct hk_source *source, const struct hk_decoder *d,
                                  const struct hk_points *p, uint32_t first)
{
  struct hk_decoded sum = { 0 };
  for (uint32_t n; first < p->n; first += n) {
    const struct hk_chunk *c = f->chunk[0];
    n = p->n - first < hk_chunk_room(c) ? p->n - first : hk_chunk_room(c);
    const struct hk_columns to = { c->slot + c->n, c->time + c->n, c->value + c->n };
    const struct hk_decoded more = hk_decode(d, p, first, n, to);
    chunk_fill_note(&sum, &more);
    put_in(f, 0, source, more.n);
  }
  return sum;
}

/* Copies each of n points to the chunk of its shard. at: the place of the next point in each chunk; the chunk's own count is
 * updated later. */
static void scatter(struct hk_filling *f, struct hk_source *source, uint32_t n, const struct hk_columns *from, uint32_t *at)
{
  /* Divides by multiplying by the reciprocal, rounded up: exact for slots of 24 bits and up to 256 shards. */
  const uint64_t reciprocal = (1ull << 32) / f->shards + 1;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t local = (uint32_t)(from->slot[i] * reciprocal >> 32), shard = from->slot[i] - local * f->shards;
    const struct hk_chunk *c = f->chunk[shard];
    const uint32_t place = at[shard]++;
    c->slot[place] = local;
    c->time[place] = from->time[i];
    c->value[place] = from->value[i];
    if (place + 1 == HK_CHUNK_POINTS) {
      put_in(f, shard, source, HK_CHUNK_POINTS - c->n);
      at[shard] = f->chunk[shard]->n;
    }
  }
}

/* Finds the place of the next point in each shard's chunk. */
static void chunk_fill_begin(const struct hk_filling *f, uint32_t *at)
{
  for (uint32_t i = 0; i < f->shards; i++)
    at[i] = f->chunk[i]->n;
}

static void chunk_fill_end(struct hk_filling *f, struct hk_source *source, const uint32_t *at)
{
  for (uint32_t i = 0; i < f->shards; i++)
    put_in(f, i, source, at[i] - f->chunk[i]->n);
}

static struct hk_decoded fill_several(struct hk_filling *f, struct hk_source *source, const struct hk_decoder *d,
                                      const struct hk_points *p, uint32_t first)
{
  struct hk_decoded sum = { 0 };
  uint32_t slot[PIECE], at[HK_SHARDS_MAX];
  int64_t time[PIECE];
  double value[PIECE];
  const struct hk_columns piece = { slot, time, value };
  chunk_fill_begin(f, at);
  for (uint32_t n; first < p->n; first += n) {
    n = p->n - first < PIECE ? p->n - first : PIECE;
    const struct hk_decoded more = hk_decode(d, p, first, n, piece);
    chunk_fill_note(&sum, &more);
    scatter(f, source, more.n, &piece, at);
  }
  chunk_fill_end(f, source, at);
  return sum;
}

struct hk_decoded hk_fill_points(struct hk_filling *f, struct hk_source *source, const struct hk_decoder *d,
                                 const struct hk_points *p, uint32_t first)
{
  return f->shards == 1 ? fill_one(f, source, d, p, first) : fill_several(f, source, d, p, first);
}

void hk_fill_slots(struct hk_filling *f, struct hk_source *source, uint32_t n, const struct hk_columns *from)
{
  uint32_t at[HK_SHARDS_MAX];
  if (f->shards > 1) {
    chunk_fill_begin(f, at);
    scatter(f, source, n, from, at);
    chunk_fill_end(f, source, at);
    return;
  }
  for (uint32_t first = 0, piece; first < n; first += piece) {
    const struct hk_chunk *c = f->chunk[0];
    piece = n - first < hk_chunk_room(c) ? n - first : hk_chunk_room(c);
    memcpy(c->slot + c->n, from->slot + first, piece * sizeof *c->slot);
    memcpy(c->time + c->n, from->time + first, piece * sizeof *c->time);
    memcpy(c->value + c->n, from->value + first, piece * sizeof *c->value);
    put_in(f, 0, source, piece);
  }
}

uint32_t hk_fill_room(const struct hk_filling *f)
{
  uint32_t least = HK_CHUNK_POINTS;
  for (uint32_t i = 0; i < f->shards; i++)
    least = hk_chunk_room(f->chunk[i]) < least ? hk_chunk_room(f->chunk[i]) : least;
  return least;
}

void hk_fill_make_room(struct hk_filling *f, uint32_t n)
{
  for (uint32_t i = 0; i < f->shards; i++)
    if (hk_chunk_room(f->chunk[i]) < n)
      f->chunk[i] = f->full(f->arg, i);
}

void hk_fill_mark(struct hk_filling *f, struct hk_feed *feed, uint64_t upto)
{
  for (uint32_t i = 0; i < f->shards; i++)
    (void)hk_chunk_mark(f->chunk[i], feed, upto);
}
