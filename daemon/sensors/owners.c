/* A hash table with linear probing; after a removal the following entries move up. */
#include "daemon/sensors/owners.h"

#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#define LEAST 64u

static uint32_t owners_home(const struct hk_owners *o, uint64_t owner)
{
  return (uint32_t)XXH3_64bits_withSeed(&owner, sizeof owner, o->key) & (o->room - 1);
}

/* The place of an owner, or for it. There is room. */
static uint32_t owners_find(const struct hk_owners *o, uint64_t owner)
{
  uint32_t at = owners_home(o, owner);
  while (o->place[at].owner != 0 && o->place[at].owner != owner)
    at = (at + 1) & (o->room - 1);
  return at;
}

static int owners_grow(struct hk_owners *o)
{
  struct hk_owners more = { .key = o->key, .room = o->room ? 2 * o->room : LEAST, .n = o->n };
  more.place = calloc(more.room, sizeof *more.place);
  if (!more.place)
    return -ENOMEM;
  for (uint32_t i = 0; i < o->room; i++)
    if (o->place[i].owner != 0)
      more.place[owners_find(&more, o->place[i].owner)] = o->place[i];
  free(o->place);
  *o = more;
  return 0;
}

int hk_owners_add(struct hk_owners *o, uint64_t owner)
{
  if (2 * (o->n + 1) > o->room && owners_grow(o) != 0)
    return -ENOMEM;
  struct hk_owners_place *p = &o->place[owners_find(o, owner)];
  o->n += p->count == 0;
  p->owner = owner;
  p->count++;
  return 0;
}

void hk_owners_remove(struct hk_owners *o, uint64_t owner)
{
  uint32_t hole = owners_find(o, owner);
  if (--o->place[hole].count > 0)
    return;
  o->n--;
  for (uint32_t at = (hole + 1) & (o->room - 1); o->place[at].owner != 0; at = (at + 1) & (o->room - 1)) {
    const uint32_t from = owners_home(o, o->place[at].owner);
    if (((at - from) & (o->room - 1)) < ((at - hole) & (o->room - 1))) /* it is searched for from after the hole on */
      continue;
    o->place[hole] = o->place[at];
    hole = at;
  }
  o->place[hole] = (struct hk_owners_place){ 0 };
}

uint32_t hk_owners_count(const struct hk_owners *o, uint64_t owner)
{
  return o->room ? o->place[owners_find(o, owner)].count : 0;
}

void hk_owners_free(struct hk_owners *o)
{
  free(o->place);
}
