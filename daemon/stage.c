/* The queue is a ring of columns. A chain is a circular list of cells whose tail the sensor's entry knows; sensors that have
 * one stand in a ring of their own and take turns. Cells are as many as points fit into the stage, so there is always one. */
#include "daemon/stage.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct point {
  int64_t time;
  double value;
  uint32_t slot;
  uint32_t source;
};

struct cell {
  struct point point;
  uint32_t next;
};

/* Of a sensor. */
struct entry {
  uint32_t pending;
  uint32_t tail;  /* 1 + the last cell of its chain; 0 = no chain */
  uint32_t round; /* in which `taken` was counted */
  uint32_t taken; /* of its points in the batch of that round */
};

struct source {
  uint32_t pending;
  uint32_t next_free;
  bool open;
};

struct hk_stage {
  uint32_t backlog;
  uint32_t mask;       /* of both rings */
  struct point *queue; /* ring */
  uint32_t head, queued;
  struct cell *cells;
  uint32_t free_cell, held; /* list of free cells; points in chains */
  uint32_t *chains;         /* ring of slots that have a chain */
  uint32_t first_chain, n_chains;
  struct entry *entries; /* by slot */
  uint32_t round;
  struct source *sources;
  uint32_t n_sources, free_source;
};

int hk_stage_new(struct hk_stage **out, uint32_t backlog, uint32_t max_sensors)
{
  struct hk_stage *s = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  uint32_t size = 1;
  while (size < backlog)
    size *= 2;
  s->backlog = backlog;
  s->mask = size - 1;
  s->free_source = NONE;
  s->queue = calloc(size, sizeof *s->queue);
  s->cells = calloc(backlog, sizeof *s->cells);
  s->chains = calloc(size, sizeof *s->chains);
  s->entries = calloc(max_sensors, sizeof *s->entries);
  if (!s->queue || !s->cells || !s->chains || !s->entries) {
    hk_stage_free(s);
    return -ENOMEM;
  }
  /* A cell that was never used stands for "the one after it is free next", so that memory is touched only when needed. */
  s->free_cell = 0;
  *out = s;
  return 0;
}

void hk_stage_free(struct hk_stage *s)
{
  if (!s)
    return;
  free(s->queue);
  free(s->cells);
  free(s->chains);
  free(s->entries);
  free(s->sources);
  free(s);
}

int hk_stage_open(struct hk_stage *s, uint32_t *out)
{
  if (s->free_source == NONE) {
    const uint32_t more = s->n_sources ? s->n_sources : 16;
    struct source *sources = realloc(s->sources, ((size_t)s->n_sources + more) * sizeof *sources);
    if (!sources)
      return -ENOMEM;
    s->sources = sources;
    for (uint32_t i = s->n_sources + more; i-- > s->n_sources;) {
      sources[i] = (struct source){ .next_free = s->free_source };
      s->free_source = i;
    }
    s->n_sources += more;
  }
  *out = s->free_source;
  s->free_source = s->sources[*out].next_free;
  s->sources[*out] = (struct source){ .open = true };
  return 0;
}

static void release(struct hk_stage *s, uint32_t source)
{
  s->sources[source].next_free = s->free_source;
  s->free_source = source;
}

void hk_stage_close(struct hk_stage *s, uint32_t source)
{
  s->sources[source].open = false;
  if (s->sources[source].pending == 0)
    release(s, source);
}

uint32_t hk_stage_pending(const struct hk_stage *s, uint32_t source)
{
  return s->sources[source].pending;
}

uint32_t hk_stage_pending_of(const struct hk_stage *s, uint32_t slot)
{
  return s->entries[slot].pending;
}

uint32_t hk_stage_waiting(const struct hk_stage *s)
{
  return s->queued + s->held;
}

uint32_t hk_stage_room(const struct hk_stage *s)
{
  return s->backlog - hk_stage_waiting(s);
}

void hk_stage_push(struct hk_stage *s, uint32_t source, uint32_t slot, int64_t time, double value)
{
  s->queue[(s->head + s->queued) & s->mask] = (struct point){ time, value, slot, source };
  s->queued++;
  s->entries[slot].pending++;
  s->sources[source].pending++;
}

static void put(struct hk_batch *batch, uint32_t *sources, const struct point *p)
{
  batch->slot[batch->n] = p->slot;
  batch->time[batch->n] = p->time;
  batch->value[batch->n] = p->value;
  sources[batch->n] = p->source;
  batch->n++;
}

/* Puts a point at the end of its sensor's chain. */
static void hold(struct hk_stage *s, struct entry *e, const struct point *p)
{
  const uint32_t index = s->free_cell;
  struct cell *cell = &s->cells[index];
  s->free_cell = cell->next ? cell->next - 1 : index + 1;
  cell->point = *p;
  if (e->tail == 0) {
    cell->next = index;
    s->chains[(s->first_chain + s->n_chains) & s->mask] = p->slot;
    s->n_chains++;
  } else {
    struct cell *tail = &s->cells[e->tail - 1];
    cell->next = tail->next;
    tail->next = index;
  }
  e->tail = index + 1;
  s->held++;
}

/* Takes the first point off a chain. */
static struct point pop_cell(struct hk_stage *s, struct entry *e)
{
  const uint32_t tail = e->tail - 1, head = s->cells[tail].next;
  struct cell *cell = &s->cells[head];
  if (head == tail)
    e->tail = 0;
  else
    s->cells[tail].next = cell->next;
  cell->next = s->free_cell + 1;
  s->free_cell = head;
  s->held--;
  return cell->point;
}

/* Takes points off one chain. */
static void unchain(struct hk_stage *s, struct entry *e, struct hk_batch *batch, uint32_t *sources, uint32_t limit)
{
  while (e->tail != 0 && e->taken < HK_BATCH_PER_SENSOR && batch->n < limit) {
    const struct point p = pop_cell(s, e);
    put(batch, sources, &p);
    e->taken++;
  }
}

static struct entry *entry_of(struct hk_stage *s, uint32_t slot)
{
  struct entry *e = &s->entries[slot];
  if (e->round != s->round) {
    e->round = s->round;
    e->taken = 0;
  }
  return e;
}

void hk_stage_fill(struct hk_stage *s, struct hk_batch *batch, uint32_t most, uint32_t *sources)
{
  const uint32_t room = most < batch->capacity ? most : batch->capacity;
  batch->n = 0;
  s->round++;
  /* Chains have at most half of the batch while others wait: sensors that flood share it, and delay nobody else. */
  const uint32_t limit = s->queued > 0 ? room / 2 : room;
  for (uint32_t turns = s->n_chains; turns > 0 && batch->n < limit; turns--) {
    const uint32_t slot = s->chains[s->first_chain];
    s->first_chain = (s->first_chain + 1) & s->mask;
    s->n_chains--;
    struct entry *e = entry_of(s, slot);
    unchain(s, e, batch, sources, limit);
    if (e->tail != 0) {
      s->chains[(s->first_chain + s->n_chains) & s->mask] = slot;
      s->n_chains++;
    }
  }
  while (s->queued > 0 && batch->n < room) {
    const struct point *p = &s->queue[s->head];
    struct entry *e = entry_of(s, p->slot);
    if (e->tail != 0 || e->taken == HK_BATCH_PER_SENSOR) {
      hold(s, e, p);
    } else {
      put(batch, sources, p);
      e->taken++;
    }
    s->head = (s->head + 1) & s->mask;
    s->queued--;
  }
}

/* A point has been dealt with. */
static void settle(struct hk_stage *s, uint32_t slot, uint32_t source)
{
  s->entries[slot].pending--;
  struct source *from = &s->sources[source];
  if (--from->pending == 0 && !from->open)
    release(s, source);
}

uint32_t hk_stage_purge(struct hk_stage *s, bool (*gone)(void *arg, uint32_t slot), void *arg)
{
  const uint32_t before = hk_stage_waiting(s), queued = s->queued;
  s->queued = 0;
  for (uint32_t i = 0; i < queued; i++) {
    const struct point p = s->queue[(s->head + i) & s->mask];
    if (gone(arg, p.slot))
      settle(s, p.slot, p.source);
    else
      s->queue[(s->head + s->queued++) & s->mask] = p;
  }
  for (uint32_t turns = s->n_chains; turns > 0; turns--) {
    const uint32_t slot = s->chains[s->first_chain];
    s->first_chain = (s->first_chain + 1) & s->mask;
    s->n_chains--;
    if (gone(arg, slot)) {
      while (s->entries[slot].tail != 0) {
        const struct point p = pop_cell(s, &s->entries[slot]);
        settle(s, slot, p.source);
      }
    } else {
      s->chains[(s->first_chain + s->n_chains) & s->mask] = slot;
      s->n_chains++;
    }
  }
  return before - hk_stage_waiting(s);
}

void hk_stage_done(struct hk_stage *s, const struct hk_batch *batch, const uint32_t *sources)
{
  for (uint32_t i = 0; i < batch->n; i++)
    settle(s, batch->slot[i], sources[i]);
}
