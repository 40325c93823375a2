/* Maps names to numbers with a hash table that is at most half full. */
#include "daemon/cli/csv_names.h"

#include <stdlib.h>
#include <string.h>

static uint32_t csv_names_hash(const char *name)
{
  uint32_t h = 2166136261u;
  for (; *name; name++)
    h = (h ^ (unsigned char)*name) * 16777619u;
  return h ^ h >> 15;
}

static uint32_t *csv_names_find(const struct hk_csv_names *names, const char *name)
{
  const uint32_t mask = 2 * names->room - 1;
  uint32_t at = csv_names_hash(name) & mask;
  while (names->place[at] && strcmp(names->name[names->place[at] - 1], name) != 0)
    at = (at + 1) & mask;
  return &names->place[at];
}

static int csv_names_grow(struct hk_csv_names *names)
{
  const uint32_t room = names->room > 0 ? 2 * names->room : 64;
  char **name = realloc(names->name, room * sizeof *name);
  if (!name)
    return -1;
  names->name = name;
  uint32_t *place = calloc(2 * (size_t)room, sizeof *place);
  if (!place)
    return -1;
  free(names->place);
  names->place = place;
  names->room = room;
  for (uint32_t i = 0; i < names->n; i++)
    *csv_names_find(names, names->name[i]) = i + 1;
  return 0;
}

uint32_t hk_csv_names_number(struct hk_csv_names *names, const char *name)
{
  if (names->n == names->room && csv_names_grow(names) < 0)
    return UINT32_MAX;
  uint32_t *place = csv_names_find(names, name);
  if (*place)
    return *place - 1;
  if (!(names->name[names->n] = strdup(name)))
    return UINT32_MAX;
  *place = ++names->n;
  return names->n - 1;
}

void hk_csv_names_free(struct hk_csv_names *names)
{
  for (uint32_t i = 0; i < names->n; i++)
    free(names->name[i]);
  free(names->name);
  free(names->place);
  *names = (struct hk_csv_names){ 0 };
}
