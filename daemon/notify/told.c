#include "daemon/notify/told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define PLACES (2 * HK_TOLD_MOST)

uint64_t hk_told_key(const struct hk_logged *l)
{
  const uint64_t key = XXH3_64bits_withSeed(l->name.data, l->name.length, (uint64_t)l->handle << 32 | l->event.number);
  return key ? key : 1;
}

static uint32_t told_find(const struct hk_told *t, uint64_t key)
{
  uint32_t i = (uint32_t)key & (PLACES - 1);
  while (t->place[i].key != 0 && t->place[i].key != key)
    i = (i + 1) & (PLACES - 1);
  return i;
}

int hk_told_open(struct hk_told *t)
{
  *t = (struct hk_told){ .place = calloc(PLACES, sizeof *t->place) };
  return t->place ? 0 : -ENOMEM;
}

void hk_told_close(struct hk_told *t)
{
  free(t->place);
  t->place = NULL;
}

void hk_told_clear(struct hk_told *t)
{
  memset(t->place, 0, PLACES * sizeof *t->place);
  t->n = t->hushed = 0;
  t->overflowed = false;
}

void hk_told_add(struct hk_told *t, const struct hk_logged *l)
{
  const uint64_t key = hk_told_key(l);
  const uint32_t i = told_find(t, key);
  if (t->place[i].key == 0) {
    if (t->n == HK_TOLD_MOST) {
      t->overflowed = true;
      return;
    }
    t->n++;
  } else {
    t->hushed -= t->place[i].position == 0;
  }
  t->place[i] = (struct hk_told_place){ key, l->position };
}

bool hk_told_has(const struct hk_told *t, const struct hk_logged *l)
{
  return t->place[told_find(t, hk_told_key(l))].key != 0;
}

uint64_t hk_told_position(const struct hk_told *t, const struct hk_logged *l)
{
  const struct hk_told_place *p = &t->place[told_find(t, hk_told_key(l))];
  return p->key != 0 ? p->position : 0;
}

void hk_told_hush(struct hk_told *t, const struct hk_logged *l)
{
  struct hk_told_place *p = &t->place[told_find(t, hk_told_key(l))];
  t->hushed += p->key != 0 && p->position != 0;
  p->position = 0; /* the key of an empty place */
}

bool hk_told_stands(const struct hk_told *t, uint64_t key)
{
  const struct hk_told_place *p = &t->place[told_find(t, key)];
  return p->key != 0 && p->position != 0;
}

bool hk_told_knows(const struct hk_told *t, uint64_t key)
{
  return t->place[told_find(t, key)].key != 0;
}

/* Entries after it move up, so that they are found. */
void hk_told_remove(struct hk_told *t, const struct hk_logged *l)
{
  uint32_t hole = told_find(t, hk_told_key(l));
  if (t->place[hole].key == 0)
    return;
  t->n--;
  t->hushed -= t->place[hole].position == 0;
  for (uint32_t i = (hole + 1) & (PLACES - 1); t->place[i].key != 0; i = (i + 1) & (PLACES - 1)) {
    const uint32_t home = (uint32_t)t->place[i].key & (PLACES - 1);
    if (((i - home) & (PLACES - 1)) < ((i - hole) & (PLACES - 1)))
      continue;
    t->place[hole] = t->place[i];
    hole = i;
  }
  t->place[hole].key = 0;
}
