/* Makes and frees views, and matches names with their patterns. */
#include "daemon/publish/view_internal.h"

#include "daemon/base/glob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#define LOOKS 256u /* names checked in one call of hk_views_tend */

/* A view with at most this number of matches becomes narrow; one with considerably over twice as many becomes wide. A match
 * costs a narrow view as much as some ten points cost a wide one. */
static uint32_t few(uint32_t slots)
{
  return slots / 32;
}

/* --- names --- */

/* Names stay locked for reading from their first use until names_end. */
static void names_begin(struct hk_views *vs)
{
  if (!vs->reading)
    hk_registry_read(vs->registry);
  vs->reading = true;
}

static struct hk_string view_name_of(struct hk_views *vs, uint32_t slot)
{
  names_begin(vs);
  return hk_registry_name(vs->registry, slot);
}

void hk_views_names_end(struct hk_views *vs)
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
  for (uint32_t i = vs->first[slot]; i != HK_NO_WATCH; i = vs->watches[i].next_of_slot)
    if (vs->watches[i].view == v)
      return true;
  return false;
}

static int view_watch(struct hk_views *vs, struct hk_view *v, uint32_t slot)
{
  if (is_watched_by(vs, slot, v))
    return 0;
  if (vs->free_watch == HK_NO_WATCH) {
    const uint32_t n = vs->n_watches ? 2 * vs->n_watches : 64;
    struct hk_watch *watches = realloc(vs->watches, n * sizeof *watches);
    if (!watches)
      return -ENOMEM;
    vs->watches = watches;
    for (uint32_t i = n; i-- > vs->n_watches; vs->free_watch = i)
      watches[i].next_of_slot = vs->free_watch;
    vs->n_watches = n;
  }
  const uint32_t i = vs->free_watch;
  struct hk_watch *w = &vs->watches[i];
  vs->free_watch = w->next_of_slot;
  *w = (struct hk_watch){ v, slot, vs->first[slot], v->first_watch, HK_NO_WATCH };
  if (v->first_watch != HK_NO_WATCH)
    vs->watches[v->first_watch].previous_of_view = i;
  v->first_watch = vs->first[slot] = i;
  v->n_watches++;
  vs->crowded |= is_crowded(vs, v);
  hk_bit_set(vs->watched.maybe, slot);
  return 0;
}

static void unwatch(struct hk_views *vs, uint32_t i)
{
  struct hk_watch *w = &vs->watches[i];
  uint32_t *link = &vs->first[w->slot];
  while (*link != i)
    link = &vs->watches[*link].next_of_slot;
  *link = w->next_of_slot;
  if (w->previous_of_view != HK_NO_WATCH)
    vs->watches[w->previous_of_view].next_of_view = w->next_of_view;
  else
    w->view->first_watch = w->next_of_view;
  if (w->next_of_view != HK_NO_WATCH)
    vs->watches[w->next_of_view].previous_of_view = w->previous_of_view;
  w->view->n_watches--;
  if (vs->first[w->slot] == HK_NO_WATCH && hk_slot_bits_knows(&vs->watched, w->slot))
    hk_bit_clear(vs->watched.maybe, w->slot);
  w->next_of_slot = vs->free_watch;
  vs->free_watch = i;
}

int hk_views_grow(struct hk_views *vs)
{
  if (hk_slot_bits_grow(&vs->watched, hk_registry_slots(vs->registry)) != 0)
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
  return &vs->buckets[XXH3_64bits_withSecret(glob, length, vs->secret, sizeof vs->secret) & vs->mask];
}

/* A narrow view without wildcards. */
static bool view_is_name(const struct hk_view *v)
{
  return v->kind == HK_VIEW_NARROW && !v->glob;
}

int hk_views_look_narrow(struct hk_views *vs, uint32_t slot)
{
  const struct hk_string name = view_name_of(vs, slot);
  int status = 0;
  for (struct hk_view *v = *bucket(vs, name.data, name.length); v && status == 0; v = v->next_of_bucket)
    if (view_is_name(v) && v->wanted.glob.length == name.length && memcmp(v->pattern, name.data, name.length) == 0)
      status = view_watch(vs, v, slot);
  for (struct hk_view *v = vs->narrow_globs; v && status == 0; v = v->next)
    if (hk_glob_match(v->glob, name.data, name.length))
      status = view_watch(vs, v, slot);
  if (status == 0)
    hk_slot_bits_learn(&vs->watched, slot, vs->first[slot] != HK_NO_WATCH);
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
  while (v->first_watch != HK_NO_WATCH)
    unwatch(vs, v->first_watch);
  hk_slot_bits_free(&v->bits);
}

static void enter_kind(struct hk_views *vs, struct hk_view *v, enum hk_view_kind kind)
{
  v->kind = kind;
  v->first_watch = HK_NO_WATCH;
  v->looked = 0;
  if (kind != HK_VIEW_NARROW)
    list_add(&vs->through, v);
  else if (v->glob)
    list_add(&vs->narrow_globs, v);
  if (kind == HK_VIEW_NARROW)
    vs->n_narrow++;
}

void hk_views_limit(struct hk_views *vs, uint32_t most)
{
  vs->most = most;
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
  if (getrandom(vs->secret, sizeof vs->secret, 0) != (ssize_t)sizeof vs->secret) {
    hk_views_free(vs);
    return -EIO;
  }
  vs->registry = registry;
  vs->most = most;
  vs->mask = size - 1;
  vs->free_watch = HK_NO_WATCH;
  *out = vs;
  return 0;
}

void hk_views_free(struct hk_views *vs)
{
  if (!vs)
    return;
  hk_slot_bits_free(&vs->watched);
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

static bool view_same(const struct hk_view *v, const struct hk_wanted *w)
{
  return v->wanted.format == w->format && v->wanted.what == w->what && v->wanted.min_score == w->min_score &&
         v->wanted.glob.length == w->glob.length && memcmp(v->pattern, w->glob.data, w->glob.length) == 0;
}

/* A view of one sensor begins to watch it at once if the sensor is known, otherwise when a batch contains it. */
static int watch_name(struct hk_views *vs, struct hk_view *v)
{
  uint32_t slot;
  if (hk_views_grow(vs) != 0)
    return -ENOMEM;
  hk_registry_read(vs->registry);
  const int status = hk_registry_find(vs->registry, v->pattern, v->wanted.glob.length, &slot);
  hk_registry_read_end(vs->registry);
  return status == 0 && hk_slot_bits_knows(&vs->watched, slot) ? view_watch(vs, v, slot) : 0;
}

int hk_view_open(struct hk_views *vs, const struct hk_wanted *wanted, struct hk_view **out)
{
  const char *glob = wanted->glob.data;
  const size_t length = wanted->glob.length;
  struct hk_view **place = bucket(vs, glob, length);
  for (struct hk_view *v = *place; v; v = v->next_of_bucket)
    if (view_same(v, wanted)) {
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
    if (view_is_name(v) && (status = watch_name(vs, v)) != 0)
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

bool hk_view_matches(const struct hk_view *v, struct hk_string name)
{
  if (v->kind == HK_VIEW_WHOLE)
    return true;
  if (v->glob)
    return hk_glob_match(v->glob, name.data, name.length);
  return v->wanted.glob.length == name.length && memcmp(v->pattern, name.data, name.length) == 0;
}

void hk_views_each(struct hk_views *vs, void (*each)(void *arg, struct hk_view *view), void *arg)
{
  for (uint32_t i = 0; i <= vs->mask; i++)
    for (struct hk_view *v = vs->buckets[i]; v; v = v->next_of_bucket)
      each(arg, v);
}

/* --- wide views --- */

bool hk_views_look_wide(struct hk_views *vs, struct hk_view *v, uint32_t slot)
{
  if (!hk_bit(v->bits.known, slot)) {
    const struct hk_string name = view_name_of(vs, slot);
    hk_slot_bits_learn(&v->bits, slot, hk_glob_match(v->glob, name.data, name.length));
  }
  return hk_bit(v->bits.maybe, slot);
}

/* --- between batches --- */

/* Makes a wide view narrow if all its matches are known. Without memory it stays wide. */
static void view_narrow(struct hk_views *vs, struct hk_view *v)
{
  if (hk_views_grow(vs) != 0)
    return;
  const struct hk_slot_bits bits = v->bits;
  v->bits = (struct hk_slot_bits){ 0 };
  leave_kind(vs, v);
  enter_kind(vs, v, HK_VIEW_NARROW);
  int status = 0;
  for (uint32_t i = 0; i < bits.words; i++)
    for (uint64_t set = bits.maybe[i] & bits.known[i]; set != 0; set &= set - 1)
      status |= view_watch(vs, v, 64 * i + (uint32_t)__builtin_ctzll(set));
  struct hk_slot_bits old = bits;
  if (status == 0) {
    hk_slot_bits_free(&old);
    return;
  }
  leave_kind(vs, v);
  enter_kind(vs, v, HK_VIEW_WIDE);
  v->bits = old;
}

void hk_views_tend(struct hk_views *vs)
{
  const uint32_t slots = hk_registry_slots(vs->registry);
  uint32_t looks = 0;
  for (struct hk_view *v = vs->through, *next; v && looks < LOOKS; v = next) {
    next = v->next;
    if (v->kind != HK_VIEW_WIDE || v->looked >= slots || hk_slot_bits_grow(&v->bits, slots) != 0)
      continue;
    names_begin(vs);
    for (; v->looked < slots && looks < LOOKS; v->looked++, looks++)
      if (!hk_bit(v->bits.known, v->looked) && hk_registry_holds(vs->registry, v->looked))
        (void)hk_views_look_wide(vs, v, v->looked);
    uint32_t matches = 0;
    for (uint32_t i = 0; v->looked == slots && i < v->bits.words; i++)
      matches += (uint32_t)__builtin_popcountll(v->bits.maybe[i] & v->bits.known[i]);
    if (v->looked == slots && matches <= few(slots))
      view_narrow(vs, v);
  }
  hk_views_names_end(vs);
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
    hk_slot_bits_forget(&v->bits, slot);
  }
  for (uint32_t i; slot < vs->n_first && (i = vs->first[slot]) != HK_NO_WATCH; unwatch(vs, i))
    told(arg, vs->watches[i].view);
  hk_slot_bits_forget(&vs->watched, slot);
}
