/* Line cache: handles by the names that lines use. For a name in the cache, no sensor name is composed, no lock is taken, and the
 * name is not read from memory.
 *
 * A name is the key of a line (measurement and tags) and the key of a field; the two are hashed separately. The cache keeps a
 * hash of 128 bits of it: one part selects the place, 63 bits are compared. Among a million names, two are mistaken for each
 * other with a probability below 10^-12. The hash is keyed with random bytes, so that nobody can construct names that collide. A
 * handle from the cache may be stale: the caller checks it (hk_handle_good).
 *
 * The cache is bounded. A name has one place, a cache line of five entries; a sixth name there is not stored, or after several
 * attempts replaces another one. The table doubles, and becomes empty, up to 32 MiB, when more than one lookup in 32 finds its
 * place full. The caller looks up missing names in the registry, at the usual cost.
 *
 *   hk_line_cache_hash for all points of some lines, then hk_line_cache_find: memory is fetched in between.
 *
 * Thread: the owner's. */
#ifndef HK_LINE_CACHE_H
#define HK_LINE_CACHE_H

#include "proto/line/line.h"

#include <stdint.h>

struct hk_line_cache;

/* A name, hashed. */
struct hk_line_key {
  uint64_t place;
  uint64_t check; /* not 0 */
};

/* 0 and *out, or a negative errno. */
int hk_line_cache_new(struct hk_line_cache **out);
void hk_line_cache_free(struct hk_line_cache *cache); /* NULL is allowed */

/* Hashes the names of all points of a line, name[0..line->n-1], and begins to fetch their entries. */
void hk_line_cache_hash(const struct hk_line_cache *cache, const struct hk_line *line, struct hk_line_key *name);

/* Finds the handles of n names; HK_NO_HANDLE: not in the cache. */
void hk_line_cache_find(struct hk_line_cache *cache, uint32_t n, const struct hk_line_key *name, uint32_t *handle);

/* Stores a handle. */
void hk_line_cache_put(struct hk_line_cache *cache, const struct hk_line_key *name, uint32_t handle);

/* Empties the cache: handles repeat after 256 sensors in one slot, and no entry may be that old. */
void hk_line_cache_clear(struct hk_line_cache *cache);

/* Capacity in names; 12.8 bytes each. */
uint64_t hk_line_cache_room(const struct hk_line_cache *cache);

#endif
