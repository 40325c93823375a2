/* By slot: the last number, and the index of the sensor's alert in the list of standing alerts. Other threads read the list
 * under a lock. */
#include "daemon/sensors/alert_memory.h"
#include "daemon/base/grow.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* When a sensor's alerts were last raised, for the flap limit: as many as the limit may need. */
struct flaps {
  struct flaps *next, **link; /* list of all */
  int64_t time[HK_FLAP_MAX];  /* the oldest first */
  uint32_t n;
  uint32_t held; /* alerts held back since the last published one; 0: it does not flap */
};

/* A sensor's last segments. */
struct past {
  struct past *next, **link; /* list of all */
  struct hk_segments segments;
};

struct of_slot {
  uint64_t points, events; /* so far */
  uint32_t number;
  uint32_t place;      /* 1 + index in `standing`; 0: none */
  struct flaps *flaps; /* NULL: no alert was raised while there was a limit */
  struct past *past;   /* NULL: no segments are known */
};

struct hk_alerts {
  struct of_slot *slots; /* address space for all slots, memory for the touched ones */
  int64_t *changed;      /* likewise: hk_alerts_changed; other threads read it */
  struct flaps *flaps;   /* list */
  struct past *past;     /* list */
  pthread_mutex_t lock;  /* protects the following, and a slot's place; the shard's thread changes them under it */
  struct hk_standing *standing;
  uint32_t n_standing, capacity;
};

int hk_alerts_new(struct hk_alerts **out, uint32_t max_sensors)
{
  struct hk_alerts *a = calloc(1, sizeof *a);
  if (a) {
    a->slots = calloc(max_sensors, sizeof *a->slots);
    a->changed = calloc(max_sensors, sizeof *a->changed);
  }
  if (!a || !a->slots || !a->changed) {
    if (a) {
      free(a->slots);
      free(a->changed);
    }
    free(a);
    return -ENOMEM;
  }
  pthread_mutex_init(&a->lock, NULL);
  *out = a;
  return 0;
}

static struct flaps *flaps_new(struct hk_alerts *a)
{
  struct flaps *f = calloc(1, sizeof *f);
  if (!f)
    return NULL;
  f->next = a->flaps;
  f->link = &a->flaps;
  if (f->next)
    f->next->link = &f->next;
  a->flaps = f;
  return f;
}

static void flaps_free(struct flaps *f)
{
  if (!f)
    return;
  *f->link = f->next;
  if (f->next)
    f->next->link = f->link;
  free(f);
}

static struct past *past_new(struct hk_alerts *a)
{
  struct past *p = calloc(1, sizeof *p);
  if (!p)
    return NULL;
  p->next = a->past;
  p->link = &a->past;
  if (p->next)
    p->next->link = &p->next;
  a->past = p;
  return p;
}

static void past_free(struct past *p)
{
  if (!p)
    return;
  *p->link = p->next;
  if (p->next)
    p->next->link = p->link;
  free(p);
}

void hk_alerts_free(struct hk_alerts *a)
{
  if (!a)
    return;
  while (a->flaps)
    flaps_free(a->flaps);
  while (a->past)
    past_free(a->past);
  free(a->slots);
  free(a->changed);
  free(a->standing);
  pthread_mutex_destroy(&a->lock);
  free(a);
}

static struct hk_standing *standing_of(const struct hk_alerts *a, uint32_t slot)
{
  return a->slots[slot].place > 0 ? &a->standing[a->slots[slot].place - 1] : NULL;
}

static int alerts_grow(struct hk_alerts *a)
{
  struct hk_standing *standing = hk_grow(a->standing, a->capacity, &a->capacity, sizeof *standing, 64);
  if (!standing)
    return -ENOMEM;
  a->standing = standing;
  return 0;
}

static int stand(struct hk_alerts *a, const struct hk_standing *s)
{
  pthread_mutex_lock(&a->lock);
  const int status = a->n_standing == a->capacity ? alerts_grow(a) : 0;
  if (status == 0) {
    a->standing[a->n_standing++] = *s;
    a->slots[s->event.slot].place = a->n_standing;
  }
  pthread_mutex_unlock(&a->lock);
  return status;
}

static void alerts_fall(struct hk_alerts *a, uint32_t slot)
{
  const uint32_t place = a->slots[slot].place;
  if (place == 0)
    return;
  pthread_mutex_lock(&a->lock);
  a->standing[place - 1] = a->standing[--a->n_standing];
  a->slots[a->standing[place - 1].event.slot].place = place;
  a->slots[slot].place = 0;
  pthread_mutex_unlock(&a->lock);
}

/* --- the flap limit --------------------------------------------------------------------------------------------------- */

/* An alert is raised. True: it is held back, or, if that begins with it, published as flapping. */
static bool raise_too_many(struct flaps *f, struct hk_event *e, uint32_t limit, int64_t within)
{
  const bool quiet = f->n == 0 || e->time - f->time[f->n - 1] > within;
  const bool many = f->n >= limit && e->time - f->time[f->n - limit] <= within;
  if (f->n == HK_FLAP_MAX)
    memmove(f->time, f->time + 1, --f->n * sizeof *f->time);
  f->time[f->n++] = e->time;
  if (f->held > 0 && !quiet) {
    f->held++;
    return true;
  }
  e->held = f->held;
  f->held = many;
  if (many)
    e->kind = HK_EVENT_FLAPPING;
  return false;
}

/* Whether a backend continues an alert whose end was published without it. The daemon's own events, also of groups, follow
 * from this memory. */
static bool is_over(const struct hk_alerts *a, const struct hk_event *e)
{
  const struct hk_standing *standing = standing_of(a, e->slot);
  const bool backends = e->index != UINT32_MAX && e->channel != HK_CHANNEL_GROUP;
  return backends && e->number <= a->slots[e->slot].number && (!standing || standing->event.number != e->number);
}

bool hk_alerts_pass(struct hk_alerts *a, struct hk_event *e, uint32_t limit, int64_t within)
{
  struct of_slot *s = &a->slots[e->slot];
  const struct hk_standing *standing = standing_of(a, e->slot);
  const bool segments = hk_segments_concerns(e);
  if (segments && (s->past || (s->past = past_new(a)))) /* without memory events lack their segments */
    hk_segments_take(&s->past->segments, e);
  if (e->kind == HK_EVENT_CORRECTED || e->kind == HK_EVENT_CLEARED) {
    if (standing && standing->event.number == e->number) {
      e->marks = standing->event.marks;
      e->held = standing->event.held;
      if (e->novelty.channel == 0)
        e->novelty = standing->event.novelty;
      if (!segments) {
        e->similar = standing->event.similar;
        e->similar_from = standing->event.similar_from;
        e->likeness = standing->event.likeness;
      }
    }
    return !is_over(a, e) && (!s->flaps || s->flaps->held == 0);
  }
  if (e->kind != HK_EVENT_RAISED || (limit == 0 && !s->flaps))
    return true;
  if (!s->flaps && !(s->flaps = flaps_new(a)))
    return true; /* better one alert too many */
  if (limit > 0) {
    const bool passes = !raise_too_many(s->flaps, e, limit, within);
    if (!passes || e->kind == HK_EVENT_FLAPPING)
      s->number = e->number; /* the number of a published alert is recorded by hk_alerts_note, which may fail */
    return passes;
  }
  e->held = s->flaps->held; /* none is held back any more */
  flaps_free(s->flaps);
  s->flaps = NULL;
  return true;
}

/* --- published events ------------------------------------------------------------------------------------------------- */

static void alerts_change(struct hk_alerts *a, uint32_t slot, int64_t time)
{
  __atomic_store_n(&a->changed[slot], time, __ATOMIC_RELAXED);
}

int64_t hk_alerts_changed(const struct hk_alerts *a, uint32_t slot)
{
  return __atomic_load_n(&a->changed[slot], __ATOMIC_RELAXED);
}

int hk_alerts_note(struct hk_alerts *a, const struct hk_event *e)
{
  const struct hk_standing raised = { .event = *e };
  a->slots[e->slot].events += (e->kind >= HK_EVENT_RAISED && e->kind <= HK_EVENT_CLEARED) || e->kind == HK_EVENT_FLAPPING;
  switch (e->kind) {
  case HK_EVENT_RAISED:
    alerts_fall(a, e->slot);
    if (stand(a, &raised) != 0)
      return -ENOMEM; /* its number stays unknown, so that its end is still published */
    a->slots[e->slot].number = e->number;
    alerts_change(a, e->slot, e->time);
    return 0;
  case HK_EVENT_CORRECTED:
    pthread_mutex_lock(&a->lock);
    if (a->slots[e->slot].place > 0)
      standing_of(a, e->slot)->event = *e;
    pthread_mutex_unlock(&a->lock);
    return 0;
  case HK_EVENT_CLEARED:
    alerts_fall(a, e->slot);
    return 0;
  default:
    return 0;
  }
}

int hk_alerts_acknowledge(struct hk_alerts *a, uint32_t slot, uint32_t number, struct hk_string by, int64_t when,
                          struct hk_event *told, char before[HK_WHO_MAX + 1])
{
  struct hk_standing *s = standing_of(a, slot);
  if (!s || (number > 0 && s->event.number != number))
    return -ENOENT;
  if (s->acknowledged != 0) {
    *told = s->event;
    told->time = s->acknowledged;
    strcpy(before, s->by);
    return -EALREADY;
  }
  pthread_mutex_lock(&a->lock);
  s->acknowledged = when;
  memcpy(s->by, by.data, by.length);
  s->by[by.length] = 0;
  pthread_mutex_unlock(&a->lock);
  *told = s->event;
  told->index = UINT32_MAX;
  told->kind = HK_EVENT_ACKNOWLEDGED;
  told->time = when;
  return 0;
}

int hk_standing_order(const void *left, const void *right)
{
  const struct hk_standing_key *a = left, *b = right;
  if (a->acknowledged != b->acknowledged)
    return a->acknowledged ? 1 : -1;
  if (a->severity != b->severity)
    return a->severity < b->severity ? 1 : -1;
  return a->time < b->time ? 1 : a->time > b->time ? -1 : 0;
}

/* Inserts an alert into the n chosen ones, in order; returns their new number, at most `most`. */
static uint32_t alerts_choose(struct hk_standing *out, uint32_t n, uint32_t most, const struct hk_standing *one)
{
  const struct hk_standing_key key = hk_standing_key(one);
  uint32_t at = n;
  while (at > 0) {
    const struct hk_standing_key before = hk_standing_key(&out[at - 1]);
    if (hk_standing_order(&before, &key) <= 0)
      break;
    at--;
  }
  if (at == most)
    return n;
  n += n < most;
  memmove(&out[at + 1], &out[at], (n - 1 - at) * sizeof *out);
  out[at] = *one;
  return n;
}

uint32_t hk_alerts_show(struct hk_alerts *a, struct hk_standing *out, uint32_t most, struct hk_alerts_sum *sum)
{
  uint32_t n = 0;
  *sum = (struct hk_alerts_sum){ 0 };
  pthread_mutex_lock(&a->lock);
  sum->standing = a->n_standing;
  for (uint32_t i = 0; i < a->n_standing; i++) {
    sum->of_channel[a->standing[i].event.channel]++;
    sum->acknowledged += a->standing[i].acknowledged != 0;
    n = alerts_choose(out, n, most, &a->standing[i]);
  }
  pthread_mutex_unlock(&a->lock);
  return n;
}

uint32_t hk_alerts_keys(struct hk_alerts *a, struct hk_standing_key *out, uint32_t most)
{
  pthread_mutex_lock(&a->lock);
  const uint32_t n = a->n_standing < most ? a->n_standing : most;
  for (uint32_t i = 0; i < n; i++)
    out[i] = hk_standing_key(&a->standing[i]);
  pthread_mutex_unlock(&a->lock);
  return n;
}

bool hk_alerts_copy(struct hk_alerts *a, uint32_t slot, struct hk_standing *out)
{
  pthread_mutex_lock(&a->lock);
  const struct hk_standing *s = standing_of(a, slot);
  if (s)
    *out = *s;
  pthread_mutex_unlock(&a->lock);
  return s != NULL;
}

bool hk_alerts_clear(struct hk_alerts *a, uint32_t slot, struct hk_event *cleared)
{
  if (a->slots[slot].place == 0)
    return false;
  *cleared = standing_of(a, slot)->event;
  cleared->index = UINT32_MAX;
  cleared->kind = HK_EVENT_CLEARED;
  alerts_fall(a, slot);
  return true;
}

void hk_alerts_silent(struct hk_alerts *a, uint32_t slot, int64_t now)
{
  struct hk_standing *s = standing_of(a, slot);
  if (!s)
    return;
  pthread_mutex_lock(&a->lock);
  s->silent = now;
  pthread_mutex_unlock(&a->lock);
}

uint32_t hk_alerts_long_silent(const struct hk_alerts *a, int64_t since, uint32_t *slots, uint32_t most)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < a->n_standing && n < most; i++)
    if (a->standing[i].silent != 0 && a->standing[i].silent <= since)
      slots[n++] = a->standing[i].event.slot;
  return n;
}

/* Sets what is known of a slot whose alert does not stand. Under the lock: others read its place. */
static void alerts_put(struct hk_alerts *a, uint32_t slot, struct of_slot known)
{
  pthread_mutex_lock(&a->lock);
  a->slots[slot] = known;
  pthread_mutex_unlock(&a->lock);
}

void hk_alerts_forget(struct hk_alerts *a, uint32_t slot)
{
  alerts_fall(a, slot);
  flaps_free(a->slots[slot].flaps);
  past_free(a->slots[slot].past);
  alerts_put(a, slot, (struct of_slot){ 0 });
  alerts_change(a, slot, 0);
}

const struct hk_standing *hk_alerts_standing(const struct hk_alerts *a, uint32_t *n)
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

void hk_alerts_reach(struct hk_alerts *a, uint32_t slot, uint64_t sequence, uint32_t number)
{
  if (a->slots[slot].events < sequence)
    a->slots[slot].events = sequence;
  if (a->slots[slot].number < number)
    a->slots[slot].number = number;
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
  if (s->flaps) {
    out->raised = s->flaps->n;
    out->held = s->flaps->held;
    memcpy(out->time, s->flaps->time, sizeof out->time);
  }
  if (s->past)
    out->segments = s->past->segments;
}

int hk_alerts_set(struct hk_alerts *a, uint32_t slot, const struct hk_alerts_memory *m)
{
  struct hk_standing standing = m->standing;
  flaps_free(a->slots[slot].flaps);
  past_free(a->slots[slot].past);
  struct flaps *flaps = m->raised > 0 ? flaps_new(a) : NULL;
  struct past *past = m->segments.n > 0 ? past_new(a) : NULL;
  alerts_put(a, slot,
             (struct of_slot){ .points = m->points, .events = m->events, .number = m->number, .flaps = flaps, .past = past });
  if (past)
    past->segments = m->segments;
  if (flaps) {
    flaps->n = m->raised;
    flaps->held = m->held;
    memcpy(flaps->time, m->time, sizeof flaps->time);
  }
  standing.event.slot = slot;
  alerts_change(a, slot, m->stands ? standing.event.time : 0);
  return (m->raised > 0 && !flaps) || (m->segments.n > 0 && !past) ? -ENOMEM : m->stands ? stand(a, &standing) : 0;
}
