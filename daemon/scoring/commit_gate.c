/* What a shard has to do with its journal: points that it takes go in, and results come out when those are on the disk.
 *
 * A batch that came back is held until all points that it may hold are committed, and the events that came of it, too; so nobody
 * has seen a score or an event that a crash takes back. Batches are shown in the order in which they came back. With no journal
 * nothing is held. */
#include "daemon/scoring/commit_gate.h"
#include "daemon/durable/commit_thread.h"
#include "daemon/durable/disk_health.h"
#include "daemon/scoring/hand_over.h"
#include "daemon/scoring/shard.h"

#include "daemon/durable/durable.h"

#include <stdlib.h>

/* What the journal gets of a chunk. marks: room for HK_CHUNK_MARKS. */
static struct hk_record_points record_of(const struct hk_chunk *c, struct hk_record_mark *marks)
{
  for (uint32_t i = 0; i < c->n_marks; i++)
    marks[i] = (struct hk_record_mark){ hk_feed_number(c->marks[i].feed), 0, c->marks[i].upto };
  return (struct hk_record_points){ c->n, c->n_marks, marks, c->time, c->value, c->slot };
}

void hk_shard_journal(struct hk_shard *s, const struct hk_chunk *c)
{
  struct hk_durable *d = s->all->durable;
  struct hk_journal *journal = atomic_load_explicit(&s->journal, memory_order_acquire);
  uint64_t position = s->position + c->n;
  struct hk_record_mark marks[HK_CHUNK_MARKS];
  const struct hk_record_points points = record_of(c, marks);
  if (journal && hk_record_points(journal, &points, &position) != 0) {
    hk_durable_give_up(d, "no memory for its journal");
    (void)hk_record_points(journal, &points, &position); /* without the disk it needs no more memory than it has */
  }
  s->position = position;
  for (uint32_t i = 0; i < c->n_marks; i++) {
    hk_feed_taken(c->marks[i].feed, s->number, c->marks[i].upto);
    if (!journal)
      hk_feed_commit(c->marks[i].feed, s->number, c->marks[i].upto);
  }
  if (journal)
    hk_durable_nudge(d);
}

bool hk_shard_takes(const struct hk_shard *s)
{
  const struct hk_journal *journal = atomic_load_explicit(&s->journal, memory_order_acquire);
  return !journal || hk_journal_room(journal);
}

/* Whether a parcel may be shown. */
static bool covered(const struct hk_shard *s, const struct hk_parcel *p)
{
  const struct hk_journal *journal = atomic_load_explicit(&s->journal, memory_order_acquire);
  return !journal ||
         (hk_journal_committed(journal) >= p->position && (p->events == 0 || hk_eventlog_shown(s->all->events) >= p->events));
}

static void show(struct hk_shard *s, struct hk_parcel *p)
{
  s->gone++;
  hk_shard_hand_over(s, p, false);
}

void hk_shard_show(struct hk_shard *s, struct hk_parcel *p)
{
  if (s->n_held == 0 && covered(s, p)) {
    show(s, p);
    return;
  }
  if (p->device) /* which may be abandoned meanwhile, and must not go before its batches are shown */
    atomic_fetch_add_explicit(&p->device->lent, 1, memory_order_relaxed);
  s->held[(s->first_held + s->n_held++) % HK_HELD] = p;
}

static struct hk_parcel *pop(struct hk_shard *s)
{
  struct hk_parcel *p = s->held[s->first_held];
  s->first_held = (s->first_held + 1) % HK_HELD;
  s->n_held--;
  return p;
}

bool hk_shard_show_held(struct hk_shard *s)
{
  bool any = false;
  while (s->n_held > 0 && covered(s, s->held[s->first_held])) {
    struct hk_parcel *p = pop(s);
    struct hk_device *device = p->device;
    show(s, p);
    if (device)
      atomic_fetch_sub_explicit(&device->lent, 1, memory_order_release);
    any = true;
  }
  return any;
}

void hk_shard_drop_held(struct hk_shard *s)
{
  while (s->n_held > 0) {
    struct hk_parcel *p = pop(s);
    for (uint32_t i = 0; i < p->n_runs; i++)
      hk_source_done(p->runs[i].source, p->runs[i].n);
    if (p->device)
      atomic_fetch_sub_explicit(&p->device->lent, 1, memory_order_release);
  }
}
