/* By slot: the last number, and where in the list of standing alerts the sensor's is. */
#include "daemon/alerts.h"

#include <errno.h>
#include <stdlib.h>

struct of_slot {
  uint64_t points, events; /* so far */
  uint32_t number;
  uint32_t place; /* 1 + index in `standing`; 0 = none stands */
};

struct hk_alerts {
  struct of_slot *slots;     /* address space for all, memory for those touched */
  struct hk_event *standing; /* the latest event of each */
  uint32_t n_standing, capacity;
};

int hk_alerts_new(struct hk_alerts **out, uint32_t max_sensors)
{
  struct hk_alerts *a = calloc(1, sizeof *a);
  if (!a || !(a->slots = calloc(max_sensors, sizeof *a->slots))) {
    free(a);
    return -ENOMEM;
  }
  *out = a;
  return 0;
}

void hk_alerts_free(struct hk_alerts *a)
{
  if (!a)
    return;
  free(a->slots);
  free(a->standing);
  free(a);
}

static int stand(struct hk_alerts *a, const struct hk_event *e)
{
  if (a->n_standing == a->capacity) {
    const uint32_t capacity = a->capacity ? 2 * a->capacity : 64;
    struct hk_event *standing = realloc(a->standing, capacity * sizeof *standing);
    if (!standing)
      return -ENOMEM;
    a->standing = standing;
    a->capacity = capacity;
  }
  a->standing[a->n_standing++] = *e;
  a->slots[e->slot].place = a->n_standing;
  return 0;
}

static void fall(struct hk_alerts *a, uint32_t slot)
{
  const uint32_t place = a->slots[slot].place;
  if (place == 0)
    return;
  const struct hk_event last = a->standing[--a->n_standing];
  a->standing[place - 1] = last;
  a->slots[last.slot].place = place;
  a->slots[slot].place = 0;
}

int hk_alerts_note(struct hk_alerts *a, const struct hk_event *e)
{
  a->slots[e->slot].events += e->kind >= HK_EVENT_RAISED && e->kind <= HK_EVENT_CLEARED;
  switch (e->kind) {
  case HK_EVENT_RAISED:
    a->slots[e->slot].number = e->number;
    fall(a, e->slot);
    return stand(a, e);
  case HK_EVENT_CORRECTED:
    if (a->slots[e->slot].place > 0)
      a->standing[a->slots[e->slot].place - 1] = *e;
    return 0;
  case HK_EVENT_CLEARED:
    fall(a, e->slot);
    return 0;
  default:
    return 0;
  }
}

bool hk_alerts_clear(struct hk_alerts *a, uint32_t slot, struct hk_event *cleared)
{
  if (a->slots[slot].place == 0)
    return false;
  *cleared = a->standing[a->slots[slot].place - 1];
  cleared->index = UINT32_MAX;
  cleared->kind = HK_EVENT_CLEARED;
  fall(a, slot);
  return true;
}

void hk_alerts_forget(struct hk_alerts *a, uint32_t slot)
{
  fall(a, slot);
  a->slots[slot] = (struct of_slot){ 0 };
}

const struct hk_event *hk_alerts_standing(const struct hk_alerts *a, uint32_t *n)
{
  *n = a->n_standing;
  return a->standing;
}

uint32_t hk_alerts_number(const struct hk_alerts *a, uint32_t slot)
{
  return a->slots[slot].number;
}

uint64_t hk_alerts_sequence(const struct hk_alerts *a, uint32_t slot)
{
  return a->slots[slot].events;
}

void hk_alerts_reach(struct hk_alerts *a, uint32_t slot, uint64_t sequence)
{
  if (a->slots[slot].events < sequence)
    a->slots[slot].events = sequence;
}

void hk_alerts_count(struct hk_alerts *a, uint32_t n, const uint32_t *slot, uint64_t *sequence)
{
  for (uint32_t i = 0; i < n; i++)
    sequence[i] = ++a->slots[slot[i]].points;
}

void hk_alerts_get(const struct hk_alerts *a, uint32_t slot, struct hk_alerts_memory *out)
{
  const struct of_slot *s = &a->slots[slot];
  *out = (struct hk_alerts_memory){ .points = s->points, .events = s->events, .number = s->number, .stands = s->place > 0 };
  if (out->stands)
    out->standing = a->standing[s->place - 1];
}

int hk_alerts_set(struct hk_alerts *a, uint32_t slot, const struct hk_alerts_memory *m)
{
  struct hk_event standing = m->standing;
  a->slots[slot] = (struct of_slot){ .points = m->points, .events = m->events, .number = m->number };
  standing.slot = slot;
  return m->stands ? stand(a, &standing) : 0;
}
