/* Pieces are as long as a chunk, and are filled run by run. */
#include "daemon/scoring/derived_points.h"

#include "daemon/scoring/field_rows.h"
#include "daemon/scoring/group_rows.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/shard.h"
#include "daemon/sensors/companions.h"

#include <errno.h>

#define OF_ONE (HK_COMPANIONS + 2 * HK_GROUPS_OF_ONE) /* maximum number of points derived from one */
#define TIME 50000000                                 /* ns of a turn, */
#define LOOK 16                                       /* checked after this number of points */

int hk_derive_open(struct hk_derivation *d)
{
  d->made = hk_chunk_new(0);
  return d->made ? 0 : -ENOMEM;
}

void hk_derive_close(struct hk_derivation *d)
{
  for (uint32_t i = 0; d->from && i < d->from->n_runs; i++)
    hk_source_done(d->from->runs[i].source, d->from->runs[i].n);
  hk_chunk_free(d->from);
  hk_chunk_free(d->made);
}

/* Makes the points derived from point i, from place `at` of the piece on. Returns the place after them. */
static uint32_t derive(const struct hk_shard *s, const struct hk_chunk *from, uint32_t i, struct hk_chunk *to, uint32_t at)
{
  const uint32_t slot = hk_slot_outside(s, from->slot[i]);
  for (uint32_t companion = slot; (companion = hk_registry_next_companion(s->all->registry, companion)) != slot;
       at++) { /* companions get the same */
    to->slot[at] = hk_slot_within(s->all, companion);
    to->time[at] = from->time[i];
    to->value[at] = from->value[i];
  }
  const struct hk_columns columns = { to->slot, to->time, to->value };
  if (s->taking.derivation.fielded)
    hk_fields_put(s->machines.fields, from, i);
  if (s->taking.derivation.grouped)
    at = hk_groups_put(s->machines.groups, from, i, &columns, at);
  return s->taking.derivation.seconded ? hk_groups_put(s->machines.seconds, from, i, &columns, at) : at;
}

/* Makes the points derived from the next point, or the rest of them. False: the piece is full, and there are more. */
static bool derive_next(const struct hk_shard *s, struct hk_derivation *d, struct hk_chunk *to, uint32_t *at)
{
  const struct hk_columns columns = { to->slot, to->time, to->value };
  if (!d->making)
    *at = derive(s, d->from, d->at++, to, *at);
  d->making = d->fielded && !hk_fields_make(s->machines.fields, &columns, at, HK_CHUNK_POINTS);
  return !d->making;
}

/* Whether the turn has used its time, and rests. Machines with many sensors and rows may need half a minute for a chunk;
 * companions need almost nothing. */
static bool is_enough(struct hk_derivation *d)
{
  if ((!d->grouped && !d->seconded && !d->fielded) || d->making || d->at % LOOK != 0)
    return false;
  const int64_t now = hk_now();
  d->until = d->until != 0 ? d->until : now + TIME;
  d->rests = now > d->until;
  return d->rests;
}

/* Fills the piece from where the last one ended. False: there are no more points, or not in this turn. */
static bool derived_points_fill(const struct hk_shard *s, struct hk_derivation *d)
{
  const struct hk_chunk *from = d->from;
  struct hk_chunk *to = d->made;
  while ((d->at < from->n || d->making) && !d->rests && hk_chunk_room(to) >= OF_ONE) {
    const struct hk_run *run = &from->runs[d->run];
    uint32_t at = to->n;
    for (; d->of_run < run->n && HK_CHUNK_POINTS - at >= OF_ONE && !is_enough(d); d->of_run++)
      if (!derive_next(s, d, to, &at))
        break;
    hk_chunk_add(to, run->source, at - to->n);
    if (d->of_run == run->n) {
      d->run++;
      d->of_run = 0;
    }
  }
  to->opened = from->opened;
  to->sealed = from->sealed;
  return to->n > 0;
}

void hk_derive_begin(struct hk_shard *s, struct hk_chunk *chunk)
{
  struct hk_derivation *d = &s->taking.derivation;
  const bool grouped = !s->replaying && hk_groups_any(s->machines.groups),
             seconded = !s->replaying && hk_groups_any(s->machines.seconds);
  const bool fielded = !s->replaying && hk_groups_any(s->machines.fields), any = grouped || seconded || fielded;
  *d = (struct hk_derivation){
    .from = chunk, .made = d->made, .grouped = grouped, .seconded = seconded, .fielded = fielded, .any = any, .until = d->until
  };
  if (s->replaying || (!any && hk_registry_count_derived(s->all->registry) == 0))
    d->at = chunk->n; /* a replayed chunk includes the points derived from it */
  hk_derive_go_on(s);
}

void hk_derive_go_on(struct hk_shard *s)
{
  struct hk_derivation *d = &s->taking.derivation;
  if (derived_points_fill(s, d)) {
    hk_count(&s->counters.in, d->made->n);
    hk_count(&s->counters.derived, d->made->n);
    d->any = true;
    s->taking.cursor = (struct hk_cursor){ .chunk = d->made };
  } else if (!d->rests) {
    s->taking.cursor = (struct hk_cursor){ .chunk = d->from };
    d->from = NULL;
  }
}

bool hk_derive_within(const struct hk_shard *s)
{
  return s->taking.derivation.any && (s->taking.derivation.from || s->taking.cursor.chunk);
}
