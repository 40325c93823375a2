/* Series: a cache of handles by the names that lines use, so that for a series that has come before no name is put together,
 * nothing is looked up under a lock, and no name is touched in memory.
 *
 * What is kept of a name is a hash of 128 bits: part of it says where to look, 63 bits are compared. Of a million names two are
 * taken for one with a chance below 10^-12; it is keyed with random bytes, so that nobody can prepare names that meet. A name is
 * the key of a line (measurement and tags) and the key of a field, hashed apart. A handle that is found may have gone stale: the
 * caller checks it (hk_handle_good).
 *
 * Bounded: a name has one place, a cache line of five entries; a sixth name there finds none, or in the end takes that of another
 * one. The table doubles, empty, while there is no place for more than one look in 32, up to 32 MiB. Whoever is not found is
 * looked up in the registry, at the usual cost.
 *
 *   hk_series_mark for all points of some lines, then hk_series_find: memory is fetched in between.
 *
 * Thread: the owner's. */
#ifndef HK_LINE_CACHE_H
#define HK_LINE_CACHE_H

#include "proto/line/line.h"

#include <stdint.h>

struct hk_series;

/* A name, hashed. */
struct hk_mark {
  uint64_t place;
  uint64_t check; /* not 0 */
};

/* 0 and *out, or a negative errno. */
int hk_series_new(struct hk_series **out);
void hk_series_free(struct hk_series *series); /* NULL is allowed */

/* Hashes the names of all points of a line, mark[0..line->n-1], and begins to fetch what is known of them. */
void hk_series_mark(const struct hk_series *series, const struct hk_line *line, struct hk_mark *mark);

/* What handle was put in for each of n names; HK_NO_HANDLE for none. */
void hk_series_find(struct hk_series *series, uint32_t n, const struct hk_mark *mark, uint32_t *handle);

/* Remembers a handle. */
void hk_series_put(struct hk_series *series, const struct hk_mark *mark, uint32_t handle);

/* Forgets all: handles repeat after 256 sensors in one slot, and no entry must live that long. */
void hk_series_clear(struct hk_series *series);

/* Names that it has room for; 12.8 bytes each. */
uint64_t hk_series_room(const struct hk_series *series);

#endif
