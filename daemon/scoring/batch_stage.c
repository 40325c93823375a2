/* The number of a sensor's points in a batch is counted in 16 bits by slot: the round (one per batch) in the high bits, the
 * count in the low ones. A count of another round is 0. Rounds are numbered cyclically from 1 to ROUNDS; each round clears a
 * section of the counts, so that none is as old as a whole cycle. If the next point of a sensor must not go into the batch
 * (the sensor has its maximum, has a chain, or is barred), its count says so, and the slow path decides.
 * A chain is a circular list of cells, whose last cell is known by slot; sensors with a chain are in a ring and take turns. */
#include "daemon/scoring/batch_stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define ROUNDS 511u
#define CLOSED 127u /* a count: no more points in this batch */
#define COUNT_BITS 7
_Static_assert(HK_BATCH_PER_SENSOR <= CLOSED && (ROUNDS << COUNT_BITS | CLOSED) <= UINT16_MAX, "a count has 16 bits");

struct cell {
  int64_t time;
  double value;
  struct hk_source *source;
  int64_t decoded; /* ns: the stamp of its chunk */
  uint32_t slot;
  uint32_t next;
};

struct hk_stage {
  uint16_t *count; /* by slot */
  uint32_t n_slots;
  uint32_t round, section;      /* section: the next section of the counts to clear */
  struct hk_delivery *delivery; /* the delivery of the current batch */
  uint32_t limit;               /* maximum number of its points */
  struct cell *cells;
  uint32_t n_cells, free_cell; /* free_cell: 1 + the first of the list of cells that are free again; 0 = none */
  uint32_t fresh, held;        /* cells from fresh on were never used; number of points in chains */
  uint32_t *tail;              /* by slot: 1 + the last cell of its chain; 0 = no chain */
  uint32_t *chains;            /* ring of slots that have a chain */
  uint32_t mask, first_chain, n_chains;
  uint32_t unchained, held_at; /* as hk_stage_unchained, hk_stage_held_at */
  int64_t earliest;            /* ns: no point of a chain is before it */
  const uint32_t *barred;      /* slots of the registry: ours are these divided by `shards` */
  uint32_t n_barred, shards;
  uint64_t *is_barred; /* a bit for each slot */
  hk_counter *dropped;
};

int hk_stage_new(struct hk_stage **out, uint32_t chained, uint32_t n_slots, hk_counter *barred)
{
  struct hk_stage *s = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  uint32_t size = 1;
  while (size < chained)
    size *= 2;
  s->mask = size - 1;
  s->n_slots = n_slots;
  s->n_cells = chained;
  s->dropped = barred;
  s->count = calloc(n_slots, sizeof *s->count);
  s->tail = calloc(n_slots, sizeof *s->tail);
  s->cells = malloc(chained * sizeof *s->cells);
  s->chains = malloc(size * sizeof *s->chains);
  s->is_barred = calloc(n_slots / 64 + 1, sizeof *s->is_barred);
  if (!s->count || !s->tail || !s->cells || !s->chains || !s->is_barred) {
    hk_stage_free(s);
    return -ENOMEM;
  }
  *out = s;
  return 0;
}

/* Removes the first point of a chain. */
static struct cell pop_cell(struct hk_stage *s, uint32_t slot)
{
  const uint32_t tail = s->tail[slot] - 1, head = s->cells[tail].next;
  const struct cell cell = s->cells[head];
  if (head == tail)
    s->tail[slot] = 0;
  else
    s->cells[tail].next = cell.next;
  s->cells[head].next = s->free_cell;
  s->free_cell = head + 1;
  s->held--;
  return cell;
}

static uint32_t pop_chain(struct hk_stage *s)
{
  const uint32_t slot = s->chains[s->first_chain];
  s->first_chain = (s->first_chain + 1) & s->mask;
  s->n_chains--;
  return slot;
}

static void push_chain(struct hk_stage *s, uint32_t slot)
{
  s->chains[(s->first_chain + s->n_chains) & s->mask] = slot;
  s->n_chains++;
}

void hk_stage_free(struct hk_stage *s)
{
  if (!s)
    return;
  while (s->n_chains > 0) {
    const uint32_t slot = pop_chain(s);
    while (s->tail[slot] != 0)
      hk_source_done(pop_cell(s, slot).source, 1);
  }
  free(s->count);
  free(s->tail);
  free(s->cells);
  free(s->chains);
  free(s->is_barred);
  free(s);
}

/* Appends a point to its sensor's chain. Cells that were used before come first, so that memory is touched only when needed. */
static void batch_stage_hold(struct hk_stage *s, const struct cell *point)
{
  const uint32_t index = s->free_cell > 0 ? s->free_cell - 1 : s->fresh++, slot = point->slot;
  struct cell *cell = &s->cells[index];
  if (s->free_cell > 0)
    s->free_cell = cell->next;
  *cell = *point;
  if (s->tail[slot] == 0) {
    cell->next = index;
    push_chain(s, slot);
  } else {
    struct cell *tail = &s->cells[s->tail[slot] - 1];
    cell->next = tail->next;
    tail->next = index;
  }
  s->tail[slot] = index + 1;
  s->earliest = cell->time < s->earliest ? cell->time : s->earliest;
  if (s->held++ == 0)
    s->held_at = s->delivery->batch->n;
}

/* The next n points of the batch have this source. */
static void batch_stage_note(struct hk_delivery *p, struct hk_source *source, uint32_t n)
{
  if (p->n_runs > 0 && p->runs[p->n_runs - 1].source == source)
    p->runs[p->n_runs - 1].n += n;
  else
    p->runs[p->n_runs++] = (struct hk_run){ source, n };
}

/* Records when a point of the batch was decoded and sealed. */
static void stamp(struct hk_delivery *p, int64_t decoded, int64_t sealed)
{
  if (decoded < p->stamps.decoded) {
    p->stamps.decoded = decoded;
    p->stamps.sealed = sealed;
  }
}

static void close_slot(struct hk_stage *s, uint32_t slot)
{
  s->count[slot] = (uint16_t)(s->round << COUNT_BITS | CLOSED);
}

static void next_round(struct hk_stage *s, uint32_t slots)
{
  const uint32_t size = (s->n_slots + ROUNDS - 2) / (ROUNDS - 1), first = s->section * size;
  s->round = s->round % ROUNDS + 1;
  s->section = (s->section + 1) % (ROUNDS - 1);
  if (first < slots)
    memset(s->count + first, 0, (slots - first < size ? slots - first : size) * sizeof *s->count);
  for (uint32_t i = 0; i < s->n_barred; i++)
    close_slot(s, s->barred[i] / s->shards);
}

/* Moves as many points of a chain as allowed into the batch. */
static void unchain(struct hk_stage *s, uint32_t slot, uint32_t limit)
{
  struct hk_batch *b = s->delivery->batch;
  uint32_t taken = 0;
  for (; s->tail[slot] != 0 && taken < HK_BATCH_PER_SENSOR && b->n < limit; taken++) {
    const struct cell c = pop_cell(s, slot);
    b->slot[b->n] = slot;
    b->time[b->n] = c.time;
    b->value[b->n++] = c.value;
    batch_stage_note(s->delivery, c.source, 1);
    stamp(s->delivery, c.decoded, c.decoded); /* it has waited since it was decoded */
  }
  if (s->tail[slot] != 0)
    close_slot(s, slot); /* later points must wait in the chain */
  else
    s->count[slot] = (uint16_t)(s->round << COUNT_BITS | taken);
}

void hk_stage_begin(struct hk_stage *s, struct hk_delivery *delivery, uint32_t most, uint32_t slots, bool others)
{
  struct hk_batch *b = delivery->batch;
  s->delivery = delivery;
  s->limit = most < b->capacity ? most : b->capacity;
  b->n = delivery->n_runs = 0;
  delivery->stamps.decoded = INT64_MAX;
  next_round(s, slots);
  s->earliest = INT64_MAX;
  s->held_at = NONE;
  for (uint32_t turns = s->n_chains; turns > 0; turns--) {
    const uint32_t slot = pop_chain(s);
    unchain(s, slot, others ? s->limit / 2 : s->limit);
    if (s->tail[slot] == 0)
      continue;
    push_chain(s, slot);
    const int64_t head = s->cells[s->cells[s->tail[slot] - 1].next].time;
    s->earliest = head < s->earliest ? head : s->earliest;
  }
  s->unchained = b->n;
}

/* Number of the next points that may go straight into the batch; counts them. */
static uint32_t straight(struct hk_stage *s, const uint32_t *slot, uint32_t n)
{
  uint16_t *count = s->count;
  const uint16_t base = (uint16_t)(s->round << COUNT_BITS);
  for (uint32_t i = 0; i < n; i++) {
    uint16_t taken = (uint16_t)(count[slot[i]] - base);
    if (taken > CLOSED)
      taken = 0; /* of another round */
    if (taken >= HK_BATCH_PER_SENSOR)
      return i;
    count[slot[i]] = (uint16_t)(base + taken + 1);
  }
  return n;
}

/* Moves n points of the cursor's chunk to the batch; batch = NULL: takes one point for another use, and returns its source. */
static struct hk_source *advance(struct hk_cursor *c, uint32_t n, struct hk_delivery *to)
{
  struct hk_source *source = NULL;
  c->at += n;
  while (n > 0) {
    const struct hk_run *run = &c->chunk->runs[c->run];
    const uint32_t left = run->n - c->of_run, some = n < left ? n : left;
    source = run->source;
    if (to)
      batch_stage_note(to, source, some);
    c->of_run += some;
    n -= some;
    if (c->of_run == run->n) {
      c->run++;
      c->of_run = 0;
    }
  }
  return source;
}

static bool is_barred(const struct hk_stage *s, uint32_t slot)
{
  return s->is_barred[slot / 64] >> slot % 64 & 1;
}

static void batch_stage_drop(struct hk_stage *s, struct hk_source *source)
{
  hk_count(s->dropped, 1);
  hk_source_done(source, 1);
}

/* Takes a point that must not go into the batch. */
static void put_aside(struct hk_stage *s, struct hk_cursor *c)
{
  const uint32_t i = c->at;
  const struct cell point = {
    c->chunk->time[i], c->chunk->value[i], advance(c, 1, NULL), c->chunk->opened, c->chunk->slot[i], 0
  };
  if (is_barred(s, point.slot))
    batch_stage_drop(s, point.source);
  else
    batch_stage_hold(s, &point);
}

bool hk_stage_room(const struct hk_stage *s)
{
  return s->delivery->batch->n < s->limit;
}

bool hk_stage_take(struct hk_stage *s, struct hk_cursor *c)
{
  struct hk_batch *b = s->delivery->batch;
  struct hk_chunk *chunk = c->chunk;
  stamp(s->delivery, chunk->opened, chunk->sealed);
  while (c->at < chunk->n && b->n < s->limit) {
    const uint32_t left = chunk->n - c->at, room = s->limit - b->n;
    const uint32_t n = straight(s, chunk->slot + c->at, left < room ? left : room);
    memcpy(b->slot + b->n, chunk->slot + c->at, n * sizeof *b->slot);
    memcpy(b->time + b->n, chunk->time + c->at, n * sizeof *b->time);
    memcpy(b->value + b->n, chunk->value + c->at, n * sizeof *b->value);
    b->n += n;
    (void)advance(c, n, s->delivery);
    if (c->at == chunk->n || b->n == s->limit)
      break;
    if (s->held == s->n_cells)
      return false; /* chains are full: the point waits until they get shorter */
    put_aside(s, c);
  }
  if (c->at < chunk->n)
    return false;
  hk_chunk_clear(chunk);
  *c = (struct hk_cursor){ 0 };
  return true;
}

uint32_t hk_stage_unchained(const struct hk_stage *s)
{
  return s->unchained;
}

uint32_t hk_stage_held_at(const struct hk_stage *s)
{
  return s->held_at;
}

uint32_t hk_stage_chained(const struct hk_stage *s)
{
  return s->held;
}

int64_t hk_stage_earliest(const struct hk_stage *s)
{
  return s->held > 0 ? s->earliest : INT64_MAX;
}

bool hk_stage_has(const struct hk_stage *s, uint32_t slot)
{
  return s->tail[slot] != 0;
}

void hk_stage_bar(struct hk_stage *s, const uint32_t *slots, uint32_t n, uint32_t shards)
{
  s->barred = slots;
  s->n_barred = n;
  s->shards = shards;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t slot = slots[i] / shards;
    s->is_barred[slot / 64] |= (uint64_t)1 << slot % 64;
    close_slot(s, slot);
  }
  for (uint32_t turns = s->n_chains; turns > 0; turns--) {
    const uint32_t slot = pop_chain(s);
    if (!is_barred(s, slot)) {
      push_chain(s, slot);
      continue;
    }
    while (s->tail[slot] != 0)
      batch_stage_drop(s, pop_cell(s, slot).source);
  }
}

void hk_stage_unbar(struct hk_stage *s)
{
  for (uint32_t i = 0; i < s->n_barred; i++)
    s->is_barred[s->barred[i] / s->shards / 64] &= ~((uint64_t)1 << s->barred[i] / s->shards % 64);
  s->n_barred = 0;
}
