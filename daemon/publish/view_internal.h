/* Internals of views, shared by view.c (lifetime, and matching of names) and view_select.c (selection). */
#ifndef HK_VIEW_INTERNAL_H
#define HK_VIEW_INTERNAL_H

#include "daemon/publish/view.h"

#include <xxhash.h>

#define HK_NO_WATCH UINT32_MAX

/* A narrow view wants a sensor. */
struct hk_watch {
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
  uint8_t secret[XXH3_SECRET_SIZE_MIN + 56]; /* secret of the hash, so that a peer cannot craft colliding globs */
  struct hk_view *through;                   /* whole and wide views: each passes over every batch */
  struct hk_view *narrow_globs;              /* narrow views with wildcards: each is matched with every new name */
  struct hk_slot_bits watched;               /* slots that a narrow view wants */
  uint32_t *first, n_first;                  /* first watch of each slot */
  struct hk_watch *watches;                  /* in use, or in the list of free watches */
  uint32_t n_watches, free_watch;            /* size of the array; HK_NO_WATCH: none */
  struct hk_view *hits;                      /* narrow views that want something of the present batch */
  uint32_t *results, *events;                /* indices selected from the present batch */
  uint32_t capacity;                         /* of each */
  bool crowded;                              /* a narrow view now watches many sensors */
  bool reading;                              /* the registry's names are being read */
};

/* Ends the reading of the registry's names, which checks of sensors start. */
void hk_views_names_end(struct hk_views *views);
/* Checks whether a wide view wants a sensor, unless known. The view's bits must have room for the slot. */
bool hk_views_look_wide(struct hk_views *views, struct hk_view *view, uint32_t slot);
/* Finds the narrow views that want an unchecked sensor. The table must have room for the slot. Returns 0 or -ENOMEM. */
int hk_views_look_narrow(struct hk_views *views, uint32_t slot);
/* Makes room in the table for all slots of the registry. Returns 0 or -ENOMEM. */
int hk_views_grow(struct hk_views *views);

#endif
