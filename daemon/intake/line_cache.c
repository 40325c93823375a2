/* A table of buckets, each a cache line. See line_cache.h. */
#include "daemon/intake/line_cache.h"

#include "proto/wire/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define ENTRIES 5u
#define BUCKETS_LEAST 64u       /* of a new table */
#define BUCKETS_MOST (1u << 19) /* 32 MiB */
#define STAY 8u                 /* a name must be put so often before it replaces another one */
#define CROWDED 32u             /* a table grows when more than one lookup in so many finds its place full */
#define HUGE_PAGE (2u << 20)

struct bucket {
  uint64_t check[ENTRIES]; /* 0: free */
  uint32_t handle[ENTRIES];
  uint32_t refused; /* names that were not stored because the bucket was full */
};
_Static_assert(sizeof(struct bucket) == 64, "a bucket is a cache line");

struct hk_line_cache {
  struct bucket *table;
  uint32_t mask;                                                        /* buckets - 1 */
  uint32_t most;                                                        /* maximum number of buckets */
  uint64_t looks, crowded;                                              /* since the counts were last reset */
  uint8_t of_key[XXH3_SECRET_SIZE_MIN], of_field[XXH3_SECRET_SIZE_MIN]; /* secrets of the two hashes */
};

/* Makes a zeroed table, on huge pages if it is large enough: at random places, every lookup would also miss the TLB. */
static struct bucket *table_new(uint32_t buckets)
{
  const size_t size = buckets * sizeof(struct bucket), alignment = size < HUGE_PAGE ? sizeof(struct bucket) : HUGE_PAGE;
  struct bucket *table = aligned_alloc(alignment, size);
  if (!table)
    return NULL;
  if (size >= HUGE_PAGE)
    (void)madvise(table, size, MADV_HUGEPAGE); /* without huge pages, small ones do */
  memset(table, 0, size);
  return table;
}

int hk_line_cache_new(struct hk_line_cache **out)
{
  struct hk_line_cache *s = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  s->table = table_new(BUCKETS_LEAST);
  s->mask = BUCKETS_LEAST - 1;
  s->most = BUCKETS_MOST;
  int status = s->table ? 0 : -ENOMEM;
  if (status == 0 && (getrandom(s->of_key, sizeof s->of_key, 0) != (ssize_t)sizeof s->of_key ||
                      getrandom(s->of_field, sizeof s->of_field, 0) != (ssize_t)sizeof s->of_field))
    status = -EIO;
  if (status == 0)
    *out = s;
  else
    hk_line_cache_free(s);
  return status;
}

void hk_line_cache_free(struct hk_line_cache *s)
{
  if (!s)
    return;
  free(s->table);
  free(s);
}

void hk_line_cache_hash(const struct hk_line_cache *s, const struct hk_line *line, struct hk_line_key *name)
{
  const XXH128_hash_t key = XXH3_128bits_withSecret(line->key, line->key_length, s->of_key, sizeof s->of_key);
  for (uint32_t i = 0; i < line->n; i++) {
    const struct hk_line_point *p = &line->points[i];
    const uint64_t field = XXH3_64bits_withSecret(p->field, p->field_length, s->of_field, sizeof s->of_field);
    name[i] = (struct hk_line_key){ key.low64 + field, (key.high64 ^ field) | 1 };
    __builtin_prefetch(&s->table[name[i].place & s->mask]);
  }
}

void hk_line_cache_find(struct hk_line_cache *s, uint32_t n, const struct hk_line_key *name, uint32_t *handle)
{
  for (uint32_t i = 0; i < n; i++) {
    const struct bucket *b = &s->table[name[i].place & s->mask];
    uint32_t found =
        0; /* bits that differ from HK_NO_HANDLE; at most one entry has any. No branches: they could not be predicted */
    for (uint32_t k = 0; k < ENTRIES; k++)
      found |= (b->handle[k] ^ HK_NO_HANDLE) & -(uint32_t)(b->check[k] == name[i].check);
    handle[i] = found ^ HK_NO_HANDLE;
  }
  s->looks += n;
  if (s->looks >= hk_line_cache_room(s))
    s->looks = s->crowded = 0;
}

/* Makes a larger, empty table: the registry has what it lacks. Without memory the old one stays. */
static void line_cache_grow(struct hk_line_cache *s)
{
  const uint32_t buckets = 2 * (s->mask + 1);
  struct bucket *table = table_new(buckets);
  if (!table) {
    s->most = s->mask + 1;
    return;
  }
  free(s->table);
  s->table = table;
  s->mask = buckets - 1;
  s->looks = s->crowded = 0;
}

void hk_line_cache_put(struct hk_line_cache *s, const struct hk_line_key *name, uint32_t handle)
{
  if (s->crowded > hk_line_cache_room(s) / CROWDED && s->mask + 1 < s->most)
    line_cache_grow(s);
  struct bucket *b = &s->table[name->place & s->mask];
  uint32_t at = ENTRIES;
  for (uint32_t k = 0; k < ENTRIES; k++) {
    if (b->check[k] == name->check || (b->check[k] == 0 && at == ENTRIES))
      at = k;
  }
  if (at == ENTRIES) { /* when names come in turn, the oldest is needed next: so most attempts replace none */
    s->crowded++;
    if (++b->refused % STAY != 0)
      return;
    at = b->refused / STAY % ENTRIES;
  }
  b->check[at] = name->check;
  b->handle[at] = handle;
}

void hk_line_cache_clear(struct hk_line_cache *s)
{
  memset(s->table, 0, (s->mask + 1) * sizeof *s->table);
  s->looks = s->crowded = 0;
}

uint64_t hk_line_cache_room(const struct hk_line_cache *s)
{
  return (uint64_t)ENTRIES * (s->mask + 1);
}
