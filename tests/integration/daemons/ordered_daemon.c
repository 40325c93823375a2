/* hankeld in which things come in an order that is forced, as soon as the file $HANKELD_ORDERED is there; it says which:
 *
 *   review, then evict      the chunk of which points of machines are made rests until the review of a reload waits for its
 *                           end and, then, an eviction has begun; for three sweeps at most
 *   wait                    no chunk is begun while it says so, as if a reload waited for ever: a shard that stalls
 *   the first feed waits    the loop that has points of a feed first while it says so hands no chunk on
 *   the derived rest        once a snapshot has a machine or field its next slices wait for a second, as if sensors were being
 *                           forgotten, and no other snapshot is begun behind it
 *
 * Nothing else is changed: a chunk may rest at any time, before it is handed on and behind that, and a sweep come back at any
 * time. The calls are caught by the linker (--wrap). */
#include "daemon/intake/chunk_pool.h"
#include "daemon/scoring/evict.h"
#include "daemon/scoring/group_restore.h"
#include "daemon/scoring/shard.h"
#include "daemon/scoring/snapshot_slices.h"
#include "daemon/scoring/snapshot_thread.h"
#include "daemon/server/program.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWEEPS 3500000000 /* ns: three, one a second */
#define REST 1000000000   /* ns */

void __real_hk_derive_go_on(struct hk_shard *shard);
void __wrap_hk_derive_go_on(struct hk_shard *shard);
bool __real_hk_shard_reload_turn(struct hk_shard *shard);
bool __wrap_hk_shard_reload_turn(struct hk_shard *shard);
bool __real_hk_chunk_pool_seal(struct hk_chunk_pool *pool);
bool __wrap_hk_chunk_pool_seal(struct hk_chunk_pool *pool);
bool __real_hk_groups_save(struct hk_groups *groups, uint32_t within, struct hk_buffer *to, struct hk_groups_saved *out);
bool __wrap_hk_groups_save(struct hk_groups *groups, uint32_t within, struct hk_buffer *to, struct hk_groups_saved *out);
void __real_hk_saver_turn(struct hk_saver *saver);
void __wrap_hk_saver_turn(struct hk_saver *saver);
bool __real_hk_shard_forgets(const struct hk_shard *shard);
bool __wrap_hk_shard_forgets(const struct hk_shard *shard);

/* Whether that order is given now. */
static bool ordered(const char *order)
{
  char line[32] = "";
  FILE *file = fopen(getenv("HANKELD_ORDERED"), "re");
  const bool any = file && fgets(line, sizeof line, file);
  if (file)
    fclose(file);
  return any && strcmp(line, order) == 0;
}

void __wrap_hk_derive_go_on(struct hk_shard *s)
{
  static int64_t waits; /* ns: since when the review does; one shard is enough */
  static bool over;
  if (!over && s->reload.review.waits && waits == 0)
    waits = hk_now();
  over |= waits != 0 && (s->evictions.first || hk_now() - waits > SWEEPS);
  if (!over && ordered("review, then evict"))
    s->taking.derivation.rests = true;
  else
    __real_hk_derive_go_on(s);
}

bool __wrap_hk_shard_reload_turn(struct hk_shard *s)
{
  static bool held;
  const bool any = __real_hk_shard_reload_turn(s), before = held;
  held = ordered("wait");
  if (held || before)
    s->reload.review.waits = held;
  return any;
}

bool __wrap_hk_chunk_pool_seal(struct hk_chunk_pool *o)
{
  static struct hk_chunk_pool *_Atomic first;
  struct hk_chunk_pool *nobody = NULL;
  const bool waits = ordered("the first feed waits");
  if (waits && o->filling.shards > 0 && o->filling.chunk[0]->n_marks > 0)
    atomic_compare_exchange_strong(&first, &nobody, o);
  return (!waits || atomic_load(&first) != o) && __real_hk_chunk_pool_seal(o);
}

/* ns: until when slices wait. */
static _Atomic int64_t rest;

bool __wrap_hk_groups_save(struct hk_groups *g, uint32_t within, struct hk_buffer *b, struct hk_groups_saved *out)
{
  const bool saved = __real_hk_groups_save(g, within, b, out);
  if (saved && ordered("the derived rest"))
    rest = hk_now() + REST;
  return saved;
}

bool __wrap_hk_shard_forgets(const struct hk_shard *s)
{
  return __real_hk_shard_forgets(s) || hk_now() < rest;
}

void __wrap_hk_saver_turn(struct hk_saver *v)
{
  if (rest == 0 || hk_now() < rest || hk_saver_condition(v).running)
    __real_hk_saver_turn(v);
}

int main(int argc, char **argv)
{
  if (!getenv("HANKELD_ORDERED")) {
    fprintf(stderr, "HANKELD_ORDERED is not set\n");
    return 1;
  }
  return hk_program(argc, argv, hk_backend_kinds);
}
