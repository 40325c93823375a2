#include "daemon/incidents/incident_ends.h"

#include "daemon/base/grow.h"

bool hk_ends_reserve(struct hk_incident_ends *e)
{
  struct hk_incident_end **of = hk_grow(e->of, e->n, &e->room, sizeof *of, 64);
  if (of)
    e->of = of;
  return of != NULL;
}

static bool ends_before(const struct hk_incident_end *a, const struct hk_incident_end *b)
{
  return a->time < b->time || (a->time == b->time && a->number < b->number);
}

static void ends_place(struct hk_incident_ends *e, struct hk_incident_end *i, uint32_t place)
{
  e->of[place] = i;
  i->place = place;
}

/* Puts one into the gap at a place, or above it. */
static void ends_rise(struct hk_incident_ends *e, struct hk_incident_end *i, uint32_t place)
{
  for (uint32_t above; place > 0 && ends_before(i, e->of[above = (place - 1) / 2]); place = above)
    ends_place(e, e->of[above], place);
  ends_place(e, i, place);
}

/* Puts one into the gap at a place, or below it. */
static void ends_sink(struct hk_incident_ends *e, struct hk_incident_end *i, uint32_t place)
{
  for (uint32_t below; (below = 2 * place + 1) < e->n; place = below) {
    below += below + 1 < e->n && ends_before(e->of[below + 1], e->of[below]);
    if (!ends_before(e->of[below], i))
      break;
    ends_place(e, e->of[below], place);
  }
  ends_place(e, i, place);
}

void hk_ends_put(struct hk_incident_ends *e, struct hk_incident_end *i, int64_t time)
{
  i->time = time;
  i->number = ++e->put;
  ends_rise(e, i, e->n++);
}

void hk_ends_take(struct hk_incident_ends *e, const struct hk_incident_end *i)
{
  const uint32_t place = i->place;
  struct hk_incident_end *last = e->of[--e->n];
  if (last == i)
    return;
  if (place > 0 && ends_before(last, e->of[(place - 1) / 2]))
    ends_rise(e, last, place);
  else
    ends_sink(e, last, place);
}

struct hk_incident_end *hk_ends_first(const struct hk_incident_ends *e)
{
  return e->n > 0 ? e->of[0] : NULL;
}
