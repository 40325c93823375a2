/* Views: subscriptions, and their selection of results and events of a batch.
 *
 * Equal subscriptions share a view. There are three ways to select a view's results of a batch:
 *
 *   whole   every sensor: no lookup. If every result is wanted, too, the selection is the batch itself;
 *   wide    many sensors: a bit per slot tells whether the name matches; one pass over the batch for each view;
 *   narrow  few sensors: all narrow views share one bit per slot (some view wants this sensor) and a table from slots to
 *   views. One pass over the batch for all of them, whatever their number, and work for each hit.
 *
 * A name is matched once for each view, when a batch first has its sensor, so neither a subscription nor a new sensor stops
 * the loop for long. Until then its bit means "perhaps". A glob without wildcards is narrow from the start and is found by a
 * hash of the name; one with wildcards starts wide, becomes narrow when all sensors have been checked and few match, and wide
 * again when many match.
 *
 * Thread: the publisher's. */
#ifndef HK_VIEW_H
#define HK_VIEW_H

#include "cpu/backend.h"
#include "daemon/config/config.h"
#include "daemon/publish/slot_bits.h"
#include "daemon/sensors/registry.h"

struct hk_views;
struct hk_subscriber;

struct hk_wanted {
  enum hk_protocol format; /* binary or text */
  uint32_t what;           /* sum of enum hankel_what */
  float min_score;
  struct hk_string glob;
  uint64_t since; /* with HANKEL_POSITIONS: the subscriber's own, not part of the view */
};

/* Whether events of a kind are wanted. Some kinds are only sent to subscriptions with details, because others may not know
 * them. */
static inline bool hk_wants_event(const struct hk_wanted *w, uint8_t kind)
{
  const bool new = kind == HK_EVENT_FLAPPING || kind == HK_EVENT_ACKNOWLEDGED;
  if (kind == HK_EVENT_STALE || kind == HK_EVENT_BACK)
    return w->what & HANKEL_NOTICES;
  return w->what & HANKEL_EVENTS && (!new || w->what &HANKEL_DETAILS || w->format == HK_PROTOCOL_TEXT);
}

/* Whether anything from the event log is wanted. */
static inline bool hk_wants_logged(const struct hk_wanted *w)
{
  return w->what & (HANKEL_EVENTS | HANKEL_INCIDENTS);
}

/* Indices of the chosen results or events, ascending. */
struct hk_choice {
  const uint32_t *index; /* NULL: 0..n-1 */
  uint32_t n;
};
static inline uint32_t hk_choice_at(const struct hk_choice *choice, uint32_t i)
{
  return choice->index ? choice->index[i] : i;
}

/* A growing array of indices. */
struct hk_indices {
  uint32_t *at;
  uint32_t n, capacity;
};

enum hk_view_kind { HK_VIEW_WHOLE, HK_VIEW_WIDE, HK_VIEW_NARROW };

struct hk_view {
  struct hk_wanted wanted;           /* the glob is `pattern` */
  struct hk_subscriber *subscribers; /* the publisher's list; NULL for a new view */

  /* The rest is kept by view.c and view_select.c. */
  enum hk_view_kind kind;
  struct hk_view *next_of_bucket;
  struct hk_view *next, *previous;   /* whole and wide: views that pass over each batch; narrow with wildcards: views */
  struct hk_glob *glob;              /* NULL: whole, or without wildcards */
  struct hk_slot_bits bits;          /* wide */
  uint32_t looked;                   /* wide: number of slots, from the first, checked without regard to batches */
  uint32_t first_watch, n_watches;   /* narrow */
  struct hk_indices results, events; /* narrow: selected from the present batch */
  struct hk_view *next_hit;
  bool hit;
  char pattern[];
};

/* registry must outlive the views. most: greatest number of views. Returns 0, or a negative errno. */
int hk_views_new(struct hk_views **out, struct hk_registry *registry, uint32_t most);
void hk_views_limit(struct hk_views *views, uint32_t most); /* existing views stay */
void hk_views_free(struct hk_views *views);                 /* NULL is allowed; no view may be left */
uint32_t hk_views_count(const struct hk_views *views);

/* Finds or creates the view of a subscription. Returns 0 and *out, or -ENOSPC: too many views, -EINVAL: glob, -ENOMEM. */
int hk_view_open(struct hk_views *views, const struct hk_wanted *wanted, struct hk_view **out);
void hk_view_close(struct hk_views *views, struct hk_view *view);
/* Whether a view wants the sensor of this name. */
bool hk_view_matches(const struct hk_view *view, struct hk_string name);
/* Calls `each` for every view. */
void hk_views_each(struct hk_views *views, void (*each)(void *arg, struct hk_view *view), void *arg);

/* Checks some unchecked sensors of views, for a short time. Called after each batch. */
void hk_views_tend(struct hk_views *views);

/* A slot is about to be freed: forgets its name, and calls `told` for each view whose subscribers may have received the name. */
void hk_views_forget(struct hk_views *views, uint32_t slot, void (*told)(void *arg, struct hk_view *view), void *arg);

#endif
