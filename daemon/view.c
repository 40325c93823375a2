/* Scores are compared a block at a time, without a branch; what follows is work for each hit. */
#include "daemon/view.h"

#include "daemon/glob.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define BLOCK 64u
#define LOOKS 1024u /* names looked at in one call of hk_views_tend */
#define NO_WATCH UINT32_MAX

/* Few: a view with no more matches becomes narrow, one with over twice as many and some wide. A narrow view pays for each hit
 * what a wide one pays for some ten points. */
static uint32_t few(uint32_t slots)
{
  return slots / 32;
}

/* A narrow view wants a sensor. */
struct watch {
  struct hk_view *view;
  uint32_t slot;
  uint32_t next_of_slot;
  uint32_t next_of_view, previous_of_view;
};

struct hk_views {
  struct hk_registry *registry;
  uint32_t n, most, n_narrow;
  struct hk_view **buckets; /* by the glob */
  uint32_t mask;
  struct hk_view *through;        /* whole and wide: each goes through every batch */
  struct hk_view *narrow_globs;   /* narrow with wildcards: each looks at every new name */
  struct hk_sieve watched;        /* slots that a narrow view wants */
  uint32_t *first, n_first;       /* of the watches by slot */
  struct watch *watches;          /* in use, or in the list of free ones */
  uint32_t n_watches, free_watch; /* size of the array; NO_WATCH: none */
  struct hk_view *hits;           /* narrow views that want something of the present batch */
  uint32_t *results, *events;     /* indices chosen of the present batch */
  uint32_t capacity;              /* of each */
  bool crowded;                   /* a narrow view has come to watch many */
  bool reading;                   /* the registry's names */
};

/* --- sets of slots --- */

static bool bit(const uint64_t *bits, uint32_t slot)
{
  return bits[slot / 64] >> slot % 64 & 1;
}
static void set_bit(uint64_t *bits, uint32_t slot)
{
  bits[slot / 64] |= (uint64_t)1 << slot % 64;
}
static void clear_bit(uint64_t *bits, uint32_t slot)
{
  bits[slot / 64] &= ~((uint64_t)1 << slot % 64);
}

/* Room for so many slots; what is new may match. */
static int sieve_grow(struct hk_sieve *s, uint32_t slots)
{
  const uint32_t needed = slots / 64 + 1, words = needed > s->words ? needed + needed / 2 : s->words;
  if (words == s->words)
    return 0;
  uint64_t *maybe = realloc(s->maybe, words * sizeof *maybe);
  if (!maybe)
    return -ENOMEM;
  s->maybe = maybe;
  uint64_t *known = realloc(s->known, words * sizeof *known);
  if (!known)
    return -ENOMEM;
  s->known = known;
  memset(maybe + s->words, 0xff, (words - s->words) * sizeof *maybe);
  memset(known + s->words, 0, (words - s->words) * sizeof *known);
  s->words = words;
  return 0;
}

static void sieve_free(struct hk_sieve *s)
{
  free(s->maybe);
  free(s->known);
  *s = (struct hk_sieve){ 0 };
}

static bool sieve_knows(const struct hk_sieve *s, uint32_t slot)
{
  return slot / 64 < s->words && bit(s->known, slot);
}

static void sieve_learn(struct hk_sieve *s, uint32_t slot, bool matches)
{
  set_bit(s->known, slot);
  s->n_known++;
  if (!matches)
    clear_bit(s->maybe, slot);
}

static void sieve_forget(struct hk_sieve *s, uint32_t slot)
{
  if (!sieve_knows(s, slot))
    return;
  clear_bit(s->known, slot);
  set_bit(s->maybe, slot);
  s->n_known--;
}

/* --- names --- */

/* Names are read from the first time they are needed to names_end. */
static void names_begin(struct hk_views *vs)
{
  if (!vs->reading)
    hk_registry_read(vs->registry);
  vs->reading = true;
}

static struct hk_string name_of(struct hk_views *vs, uint32_t slot)
{
  names_begin(vs);
  return hk_registry_name(vs->registry, slot);
}

static void names_end(struct hk_views *vs)
{
  if (vs->reading)
    hk_registry_read_end(vs->registry);
  vs->reading = false;
}

/* --- narrow views: watches --- */

static bool is_crowded(const struct hk_views *vs, const struct hk_view *v)
{
  return v->n_watches > 2 * few(hk_registry_slots(vs->registry)) + 64;
}

static bool is_watched_by(const struct hk_views *vs, uint32_t slot, const struct hk_view *v)
{
  for (uint32_t i = vs->first[slot]; i != NO_WATCH; i = vs->watches[i].next_of_slot)
    if (vs->watches[i].view == v)
      return true;
  return false;
}

static int watch(struct hk_views *vs, struct hk_view *v, uint32_t slot)
{
  if (is_watched_by(vs, slot, v))
    return 0;
  if (vs->free_watch == NO_WATCH) {
    const uint32_t n = vs->n_watches ? 2 * vs->n_watches : 64;
    struct watch *watches = realloc(vs->watches, n * sizeof *watches);
    if (!watches)
      return -ENOMEM;
    vs->watches = watches;
    for (uint32_t i = n; i-- > vs->n_watches; vs->free_watch = i)
      watches[i].next_of_slot = vs->free_watch;
    vs->n_watches = n;
  }
  const uint32_t i = vs->free_watch;
  struct watch *w = &vs->watches[i];
  vs->free_watch = w->next_of_slot;
  *w = (struct watch){ v, slot, vs->first[slot], v->first_watch, NO_WATCH };
  if (v->first_watch != NO_WATCH)
    vs->watches[v->first_watch].previous_of_view = i;
  v->first_watch = vs->first[slot] = i;
  v->n_watches++;
  vs->crowded |= is_crowded(vs, v);
  set_bit(vs->watched.maybe, slot);
  return 0;
}

static void unwatch(struct hk_views *vs, uint32_t i)
{
  struct watch *w = &vs->watches[i];
  uint32_t *link = &vs->first[w->slot];
  while (*link != i)
    link = &vs->watches[*link].next_of_slot;
  *link = w->next_of_slot;
  if (w->previous_of_view != NO_WATCH)
    vs->watches[w->previous_of_view].next_of_view = w->next_of_view;
  else
    w->view->first_watch = w->next_of_view;
  if (w->next_of_view != NO_WATCH)
    vs->watches[w->next_of_view].previous_of_view = w->previous_of_view;
  w->view->n_watches--;
  if (vs->first[w->slot] == NO_WATCH && sieve_knows(&vs->watched, w->slot))
    clear_bit(vs->watched.maybe, w->slot);
  w->next_of_slot = vs->free_watch;
  vs->free_watch = i;
}

/* Room for all slots of the registry in the table. */
static int table_grow(struct hk_views *vs)
{
  if (sieve_grow(&vs->watched, hk_registry_slots(vs->registry)) != 0)
    return -ENOMEM;
  const uint32_t slots = 64 * vs->watched.words;
  if (slots == vs->n_first)
    return 0;
  uint32_t *first = realloc(vs->first, slots * sizeof *first);
  if (!first)
    return -ENOMEM;
  memset(first + vs->n_first, 0xff, (slots - vs->n_first) * sizeof *first);
  vs->first = first;
  vs->n_first = slots;
  return 0;
}

static struct hk_view **bucket(const struct hk_views *vs, const char *glob, size_t length)
{
  return &vs->buckets[XXH3_64bits_withSeed(glob, length, (uintptr_t)vs) & vs->mask];
}

/* A narrow view without wildcards. */
static bool is_name(const struct hk_view *v)
{
  return v->kind == HK_VIEW_NARROW && !v->glob;
}

/* Finds out which narrow views want a sensor that nobody has looked at. */
static int look_narrow(struct hk_views *vs, uint32_t slot)
{
  const struct hk_string name = name_of(vs, slot);
  int status = 0;
  for (struct hk_view *v = *bucket(vs, name.data, name.length); v && status == 0; v = v->next_of_bucket)
    if (is_name(v) && v->wanted.glob.length == name.length && memcmp(v->pattern, name.data, name.length) == 0)
      status = watch(vs, v, slot);
  for (struct hk_view *v = vs->narrow_globs; v && status == 0; v = v->next)
    if (hk_glob_match(v->glob, name.data, name.length))
      status = watch(vs, v, slot);
  if (status == 0)
    sieve_learn(&vs->watched, slot, vs->first[slot] != NO_WATCH);
  return status;
}

/* --- the lists and kinds of views --- */

static void list_add(struct hk_view **list, struct hk_view *v)
{
  v->previous = NULL;
  v->next = *list;
  if (*list)
    (*list)->previous = v;
  *list = v;
}

static void list_remove(struct hk_view **list, struct hk_view *v)
{
  if (v->previous)
    v->previous->next = v->next;
  else
    *list = v->next;
  if (v->next)
    v->next->previous = v->previous;
}

/* Takes a view out of the structures of its kind. */
static void leave_kind(struct hk_views *vs, struct hk_view *v)
{
  if (v->kind != HK_VIEW_NARROW)
    list_remove(&vs->through, v);
  else if (v->glob)
    list_remove(&vs->narrow_globs, v);
  if (v->kind == HK_VIEW_NARROW)
    vs->n_narrow--;
  while (v->first_watch != NO_WATCH)
    unwatch(vs, v->first_watch);
  sieve_free(&v->sieve);
}

static void enter_kind(struct hk_views *vs, struct hk_view *v, enum hk_view_kind kind)
{
  v->kind = kind;
  v->first_watch = NO_WATCH;
  v->looked = 0;
  if (kind != HK_VIEW_NARROW)
    list_add(&vs->through, v);
  else if (v->glob)
    list_add(&vs->narrow_globs, v);
  if (kind == HK_VIEW_NARROW)
    vs->n_narrow++;
}

int hk_views_new(struct hk_views **out, struct hk_registry *registry, uint32_t most)
{
  struct hk_views *vs = calloc(1, sizeof *vs);
  uint32_t size = 16;
  while (size < most)
    size *= 2;
  if (!vs || !(vs->buckets = calloc(size, sizeof *vs->buckets))) {
    free(vs);
    return -ENOMEM;
  }
  vs->registry = registry;
  vs->most = most;
  vs->mask = size - 1;
  vs->free_watch = NO_WATCH;
  *out = vs;
  return 0;
}

void hk_views_free(struct hk_views *vs)
{
  if (!vs)
    return;
  sieve_free(&vs->watched);
  free(vs->first);
  free(vs->watches);
  free(vs->results);
  free(vs->events);
  free(vs->buckets);
  free(vs);
}

uint32_t hk_views_count(const struct hk_views *vs)
{
  return vs->n;
}

static bool same(const struct hk_view *v, const struct hk_wanted *w)
{
  return v->wanted.format == w->format && v->wanted.what == w->what && v->wanted.min_score == w->min_score &&
         v->wanted.glob.length == w->glob.length && memcmp(v->pattern, w->glob.data, w->glob.length) == 0;
}

/* A view of one sensor begins to watch it, where it is known already; else it does when a batch has it. */
static int watch_name(struct hk_views *vs, struct hk_view *v)
{
  uint32_t slot;
  if (table_grow(vs) != 0)
    return -ENOMEM;
  hk_registry_read(vs->registry);
  const int status = hk_registry_find(vs->registry, v->pattern, v->wanted.glob.length, &slot);
  hk_registry_read_end(vs->registry);
  return status == 0 && sieve_knows(&vs->watched, slot) ? watch(vs, v, slot) : 0;
}

int hk_view_open(struct hk_views *vs, const struct hk_wanted *wanted, struct hk_view **out)
{
  const char *glob = wanted->glob.data;
  const size_t length = wanted->glob.length;
  struct hk_view **place = bucket(vs, glob, length);
  for (struct hk_view *v = *place; v; v = v->next_of_bucket)
    if (same(v, wanted)) {
      *out = v;
      return 0;
    }
  if (vs->n == vs->most)
    return -ENOSPC;
  struct hk_view *v = calloc(1, sizeof *v + length);
  if (!v)
    return -ENOMEM;
  size_t stars = 0, marks = 0;
  for (size_t i = 0; i < length; i++) {
    stars += glob[i] == '*';
    marks += glob[i] == '?';
  }
  int status = length > HK_GLOB_MAX ? -EINVAL : 0;
  if (status == 0 && stars + marks > 0 && stars < length)
    status = hk_glob_new(&v->glob, glob, length);
  v->wanted = *wanted;
  v->wanted.glob.data = memcpy(v->pattern, glob, length);
  if (status == 0) {
    enter_kind(vs, v, stars == length ? HK_VIEW_WHOLE : v->glob ? HK_VIEW_WIDE : HK_VIEW_NARROW);
    if (is_name(v) && (status = watch_name(vs, v)) != 0)
      leave_kind(vs, v);
  }
  if (status != 0) {
    hk_glob_free(v->glob);
    free(v);
    return status;
  }
  v->next_of_bucket = *place;
  *place = v;
  vs->n++;
  *out = v;
  return 0;
}

void hk_view_close(struct hk_views *vs, struct hk_view *v)
{
  struct hk_view **link = bucket(vs, v->pattern, v->wanted.glob.length);
  while (*link != v)
    link = &(*link)->next_of_bucket;
  *link = v->next_of_bucket;
  leave_kind(vs, v);
  vs->n--;
  hk_glob_free(v->glob);
  free(v->results.at);
  free(v->events.at);
  free(v);
}

/* --- choosing --- */

/* Which results a view wants by their scores: those from `least` on, and perhaps those without one. */
struct limits {
  float least;
  bool unscored;
};

static struct limits limits_of(const struct hk_wanted *w, bool dropped)
{
  const bool any = w->what & (HANKEL_SCORES | HANKEL_UNSCORED);
  if (dropped)
    return (struct limits){ any ? -INFINITY : INFINITY, any };
  return (struct limits){ w->what & HANKEL_SCORES ? w->min_score : INFINITY, w->what & HANKEL_UNSCORED };
}

static inline uint32_t keeps(struct limits l, float score)
{
  return (uint32_t)(score >= l.least) | ((uint32_t)(score != score) & l.unscored);
}

/* Bit i: whether the limits keep score[i] of a block. */
static uint64_t keeps_of_block(struct limits limits, const float *score)
{
  uint8_t keep[BLOCK];
  uint64_t mask = 0;
  for (uint32_t i = 0; i < BLOCK; i++)
    keep[i] = (uint8_t)keeps(limits, score[i]);
  for (uint32_t i = 0; i < BLOCK; i += 8) {
    uint64_t bytes; /* the product has byte k's bit at 56 + k */
    memcpy(&bytes, keep + i, sizeof bytes);
    mask |= (bytes * 0x0102040810204080u >> 56) << i;
  }
  return mask;
}

/* Indices of the results that are within the limits and whose slots are in the set (NULL: any). out has room for all. */
static uint32_t sift(const struct hk_batch *b, struct limits limits, const uint64_t *set, uint32_t *out)
{
  uint32_t n = 0, at = 0;
  for (; b->n - at >= BLOCK; at += BLOCK) {
    uint64_t mask = keeps_of_block(limits, b->score + at);
    if (mask == UINT64_MAX && !set) {
      for (uint32_t i = 0; i < BLOCK; i++)
        out[n + i] = at + i;
      n += BLOCK;
      continue;
    }
    for (; mask != 0; mask &= mask - 1) {
      const uint32_t i = at + (uint32_t)__builtin_ctzll(mask);
      out[n] = i;
      n += set ? bit(set, b->slot[i]) : 1;
    }
  }
  for (; at < b->n; at++) {
    out[n] = at;
    n += keeps(limits, b->score[at]) & (uint32_t)(set ? bit(set, b->slot[at]) : 1);
  }
  return n;
}

static bool look_wide(struct hk_views *vs, struct hk_view *v, uint32_t slot)
{
  if (!bit(v->sieve.known, slot)) {
    const struct hk_string name = name_of(vs, slot);
    sieve_learn(&v->sieve, slot, hk_glob_match(v->glob, name.data, name.length));
  }
  return bit(v->sieve.maybe, slot);
}

static uint32_t wants_event(const struct hk_view *v, const struct hk_event *e)
{
  return v->wanted.what & (e->kind >= HK_EVENT_STALE ? HANKEL_NOTICES : HANKEL_EVENTS);
}

/* What a whole or wide view wants of a batch. */
static void choose(struct hk_views *vs, struct hk_view *v, const struct hk_batch *b, bool dropped, struct hk_choice *results,
                   struct hk_choice *events)
{
  const struct limits limits = limits_of(&v->wanted, dropped);
  const bool wide = v->kind == HK_VIEW_WIDE,
             any = b->kind == HK_BATCH_POINTS && v->wanted.what & (HANKEL_SCORES | HANKEL_UNSCORED);
  *results = (struct hk_choice){ vs->results, 0 };
  *events = (struct hk_choice){ vs->events, 0 };
  if (any && !wide && limits.least <= 0 && limits.unscored)
    *results = (struct hk_choice){ NULL, b->n };
  else if (any && !dropped)
    results->n = sift(b, limits, wide ? v->sieve.maybe : NULL, vs->results);
  else if (any)
    for (uint32_t i = 0; i < b->n; i++) {
      vs->results[results->n] = i;
      results->n += bit(v->sieve.maybe, b->slot[i]);
    }
  if (wide && v->sieve.n_known < hk_registry_slots(vs->registry)) {
    const uint32_t n = results->n;
    results->n = 0;
    for (uint32_t i = 0; i < n; i++) {
      vs->results[results->n] = vs->results[i];
      results->n += look_wide(vs, v, b->slot[vs->results[i]]);
    }
  }
  if (results->n == b->n)
    results->index = NULL;
  for (uint32_t i = 0; !dropped && i < b->n_events; i++)
    if (wants_event(v, &b->event[i]) && (!wide || look_wide(vs, v, b->event[i].slot)))
      vs->events[events->n++] = i;
}

/* Adds an index to those that a narrow view wants. */
static int hit(struct hk_views *vs, struct hk_view *v, struct hk_indices *indices, uint32_t i)
{
  if (indices->n == indices->capacity) {
    const uint32_t capacity = indices->capacity ? 2 * indices->capacity : 16;
    uint32_t *at = realloc(indices->at, capacity * sizeof *at);
    if (!at)
      return -ENOMEM;
    indices->at = at;
    indices->capacity = capacity;
  }
  indices->at[indices->n++] = i;
  if (!v->hit) {
    v->hit = true;
    v->next_hit = vs->hits;
    vs->hits = v;
  }
  return 0;
}

/* Hands out what narrow views want of a batch. 0 or -ENOMEM. */
static int hit_all(struct hk_views *vs, const struct hk_batch *b, bool dropped)
{
  int status = table_grow(vs);
  if (status != 0)
    return status;
  uint32_t n = 0;
  if (b->kind == HK_BATCH_POINTS)
    for (uint32_t i = 0; i < b->n; i++) {
      vs->results[n] = i;
      n += bit(vs->watched.maybe, b->slot[i]);
    }
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t i = vs->results[k], slot = b->slot[i];
    if (!bit(vs->watched.known, slot))
      status |= look_narrow(vs, slot);
    for (uint32_t w = vs->first[slot]; w != NO_WATCH; w = vs->watches[w].next_of_slot) {
      struct hk_view *v = vs->watches[w].view;
      const struct limits limits = limits_of(&v->wanted, dropped);
      if (dropped ? limits.unscored : keeps(limits, b->score[i]))
        status |= hit(vs, v, &v->results, i);
    }
  }
  for (uint32_t i = 0; !dropped && i < b->n_events; i++) {
    const uint32_t slot = b->event[i].slot;
    if (!bit(vs->watched.known, slot))
      status |= look_narrow(vs, slot);
    for (uint32_t w = vs->first[slot]; w != NO_WATCH; w = vs->watches[w].next_of_slot)
      if (wants_event(vs->watches[w].view, &b->event[i]))
        status |= hit(vs, vs->watches[w].view, &vs->watches[w].view->events, i);
  }
  return status != 0 ? -ENOMEM : 0;
}

/* Room for the indices of a batch. */
static int reserve(struct hk_views *vs, const struct hk_batch *b)
{
  const uint32_t needed = b->n > b->n_events ? b->n : b->n_events, capacity = needed > b->capacity ? needed : b->capacity;
  if (needed <= vs->capacity)
    return 0;
  free(vs->results);
  free(vs->events);
  vs->results = malloc(capacity * sizeof *vs->results);
  vs->events = malloc(capacity * sizeof *vs->events);
  vs->capacity = vs->results && vs->events ? capacity : 0;
  return vs->capacity ? 0 : -ENOMEM;
}

int hk_views_choose(struct hk_views *vs, const struct hk_batch *b, bool dropped,
                    void (*chosen)(void *arg, struct hk_view *view, const struct hk_choice *results,
                                   const struct hk_choice *events),
                    void *arg)
{
  if (vs->n == 0)
    return 0;
  int status = reserve(vs, b);
  for (struct hk_view *v = status == 0 ? vs->through : NULL; v; v = v->next) {
    struct hk_choice results, events;
    if (v->kind == HK_VIEW_WIDE && sieve_grow(&v->sieve, hk_registry_slots(vs->registry)) != 0) {
      status = -ENOMEM;
      continue;
    }
    choose(vs, v, b, dropped, &results, &events);
    names_end(vs);
    if (results.n + events.n > 0)
      chosen(arg, v, &results, &events);
  }
  if (status != 0 || vs->n_narrow == 0)
    return status;
  status = hit_all(vs, b, dropped);
  names_end(vs);
  for (struct hk_view *v = vs->hits; v; v = v->next_hit) {
    const struct hk_choice results = { v->results.at, v->results.n }, events = { v->events.at, v->events.n };
    chosen(arg, v, &results, &events);
    v->hit = false;
    v->results.n = v->events.n = 0;
  }
  vs->hits = NULL;
  return status;
}

/* --- between batches --- */

/* Makes a wide view, all of whose matches are known, narrow. Without memory it stays wide. */
static void narrow(struct hk_views *vs, struct hk_view *v)
{
  if (table_grow(vs) != 0)
    return;
  const struct hk_sieve sieve = v->sieve;
  v->sieve = (struct hk_sieve){ 0 };
  leave_kind(vs, v);
  enter_kind(vs, v, HK_VIEW_NARROW);
  int status = 0;
  for (uint32_t i = 0; i < sieve.words; i++)
    for (uint64_t set = sieve.maybe[i] & sieve.known[i]; set != 0; set &= set - 1)
      status |= watch(vs, v, 64 * i + (uint32_t)__builtin_ctzll(set));
  struct hk_sieve old = sieve;
  if (status == 0) {
    sieve_free(&old);
    return;
  }
  leave_kind(vs, v);
  enter_kind(vs, v, HK_VIEW_WIDE);
  v->sieve = old;
}

void hk_views_tend(struct hk_views *vs)
{
  const uint32_t slots = hk_registry_slots(vs->registry);
  uint32_t looks = 0;
  for (struct hk_view *v = vs->through, *next; v && looks < LOOKS; v = next) {
    next = v->next;
    if (v->kind != HK_VIEW_WIDE || v->looked >= slots || sieve_grow(&v->sieve, slots) != 0)
      continue;
    names_begin(vs);
    for (; v->looked < slots && looks < LOOKS; v->looked++, looks++)
      if (!bit(v->sieve.known, v->looked) && hk_registry_holds(vs->registry, v->looked))
        (void)look_wide(vs, v, v->looked);
    uint32_t matches = 0;
    for (uint32_t i = 0; v->looked == slots && i < v->sieve.words; i++)
      matches += (uint32_t)__builtin_popcountll(v->sieve.maybe[i] & v->sieve.known[i]);
    if (v->looked == slots && matches <= few(slots))
      narrow(vs, v);
  }
  names_end(vs);
  for (struct hk_view *v = vs->crowded ? vs->narrow_globs : NULL, *next; v; v = next) {
    next = v->next;
    if (is_crowded(vs, v)) {
      leave_kind(vs, v);
      enter_kind(vs, v, HK_VIEW_WIDE);
    }
  }
  vs->crowded = false;
}

void hk_views_forget(struct hk_views *vs, uint32_t slot, void (*told)(void *arg, struct hk_view *view), void *arg)
{
  for (struct hk_view *v = vs->through; v; v = v->next) {
    told(arg, v);
    sieve_forget(&v->sieve, slot);
  }
  for (uint32_t i; slot / 64 < vs->watched.words && (i = vs->first[slot]) != NO_WATCH; unwatch(vs, i))
    told(arg, vs->watches[i].view);
  sieve_forget(&vs->watched, slot);
}
