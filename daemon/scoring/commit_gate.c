#include "daemon/scoring/commit_gate.h"
#include "daemon/durable/commit_thread.h"
#include "daemon/durable/disk_health.h"

void hk_commit_gate_begin(struct hk_commit_gate *g, uint64_t position, struct hk_journal *journal)
{
  g->position = position;
  atomic_store_explicit(&g->journal, journal, memory_order_release);
}

/* Writes a chunk to the journal. marks: room for HK_CHUNK_MARKS. */
static struct hk_record_points record_of(const struct hk_chunk *c, struct hk_record_mark *marks)
{
  for (uint32_t i = 0; i < c->n_marks; i++)
    marks[i] = (struct hk_record_mark){ hk_feed_number(c->marks[i].feed), 0, c->marks[i].upto };
  return (struct hk_record_points){ c->n, c->n_marks, marks, c->time, c->value, c->slot };
}

void hk_commit_gate_take(struct hk_commit_gate *g, const struct hk_chunk *c)
{
  struct hk_journal *journal = atomic_load_explicit(&g->journal, memory_order_acquire);
  uint64_t position = g->position + c->n;
  struct hk_record_mark marks[HK_CHUNK_MARKS];
  const struct hk_record_points points = record_of(c, marks);
  if (journal && hk_record_points(journal, &points, &position) != 0) {
    hk_durable_give_up(g->durable, "no memory for its journal");
    (void)hk_record_points(journal, &points, &position); /* without the disk it needs no additional memory */
  }
  g->position = position;
  for (uint32_t i = 0; i < c->n_marks; i++) {
    hk_feed_taken(c->marks[i].feed, g->shard, c->marks[i].upto);
    if (!journal)
      hk_feed_commit(c->marks[i].feed, g->shard, c->marks[i].upto);
  }
  if (journal)
    hk_durable_nudge(g->durable);
}

void hk_commit_gate_pass(struct hk_commit_gate *g, const struct hk_chunk *c)
{
  g->position += c->n;
  for (uint32_t i = 0; i < c->n_marks; i++)
    for (uint32_t k = 0; k < c->marks[i].feed->shards; k++)
      hk_feed_taken(c->marks[i].feed, k, c->marks[i].upto);
}

void hk_commit_gate_passed(struct hk_commit_gate *g, const struct hk_chunk *c)
{
  (void)g;
  for (uint32_t i = 0; i < c->n_marks; i++)
    for (uint32_t k = 0; k < c->marks[i].feed->shards; k++)
      hk_feed_commit(c->marks[i].feed, k, c->marks[i].upto);
}

bool hk_commit_gate_has_room(const struct hk_commit_gate *g)
{
  const struct hk_journal *journal = atomic_load_explicit(&g->journal, memory_order_acquire);
  return !journal || hk_journal_room(journal);
}

/* Whether a delivery may be published. */
static bool commit_gate_covered(const struct hk_commit_gate *g, const struct hk_delivery *p)
{
  const struct hk_journal *journal = atomic_load_explicit(&g->journal, memory_order_acquire);
  return !journal ||
         (hk_journal_committed(journal) >= p->position && (p->events == 0 || hk_eventlog_shown(g->durable->events) >= p->events));
}

bool hk_commit_gate_holds(struct hk_commit_gate *g, struct hk_delivery *p)
{
  if (g->n == 0 && commit_gate_covered(g, p))
    return false;
  if (p->device) /* the device may be abandoned meanwhile, but must not be freed before its batches are published */
    atomic_fetch_add_explicit(&p->device->lent, 1, memory_order_relaxed);
  g->held[(g->first + g->n++) % HK_HELD] = p;
  return true;
}

static struct hk_delivery *pop(struct hk_commit_gate *g)
{
  struct hk_delivery *p = g->held[g->first];
  g->first = (g->first + 1) % HK_HELD;
  g->n--;
  return p;
}

struct hk_delivery *hk_commit_gate_next(struct hk_commit_gate *g)
{
  return g->n > 0 && commit_gate_covered(g, g->held[g->first]) ? pop(g) : NULL;
}

void hk_commit_gate_drop(struct hk_commit_gate *g)
{
  while (g->n > 0) {
    struct hk_delivery *p = pop(g);
    for (uint32_t i = 0; i < p->n_runs; i++)
      hk_source_done(p->runs[i].source, p->runs[i].n);
    if (p->device)
      atomic_fetch_sub_explicit(&p->device->lent, 1, memory_order_release);
  }
}
