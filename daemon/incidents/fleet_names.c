#include "daemon/incidents/fleet_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#define LISTS_FIRST 1024u

static struct hk_fleet_node **list_of(const struct hk_fleet_names *f, struct hk_string name, bool group)
{
  return &f->lists[XXH3_64bits_withSeed(name.data, name.length, f->seed + group) & f->mask];
}

static struct hk_fleet_node *fleet_names_find(const struct hk_fleet_names *f, struct hk_string name, bool group)
{
  struct hk_fleet_node *n = *list_of(f, name, group);
  while (n && (n->group != group || n->name.length != name.length || memcmp(n->name.data, name.data, name.length) != 0))
    n = n->next;
  return n;
}

/* Twice as many lists. Without memory they just become longer. */
static void spread(struct hk_fleet_names *f)
{
  struct hk_fleet_node **lists = calloc(2 * ((size_t)f->mask + 1), sizeof(struct hk_fleet_node *));
  if (!lists)
    return;
  free(f->lists);
  f->lists = lists;
  f->mask = 2 * f->mask + 1;
  for (uint32_t i = 0; i < f->n_nodes; i++) {
    struct hk_fleet_node **list = list_of(f, f->nodes[i]->name, f->nodes[i]->group);
    f->nodes[i]->next = *list;
    *list = f->nodes[i];
  }
}

/* An array of pointers with room for one more than n: perhaps at another place. NULL: no memory, and it is as it was. */
static void *fleet_names_reserve(void *array, uint32_t n, uint32_t *room)
{
  if (n < *room)
    return array;
  const uint32_t more = *room ? 2 * *room : 64;
  void *grown = realloc(array, more * sizeof(void *));
  if (grown)
    *room = more;
  return grown;
}

static struct hk_fleet_node *node_new(struct hk_fleet_names *f, struct hk_string name, bool group)
{
  struct hk_fleet_node *n = calloc(1, sizeof *n);
  char *text = malloc(name.length + 1);
  struct hk_fleet_node **nodes = n && text ? fleet_names_reserve(f->nodes, f->n_nodes, &f->node_room) : NULL;
  if (!nodes) {
    free(n);
    free(text);
    return NULL;
  }
  f->nodes = nodes;
  if (name.length > 0)
    memcpy(text, name.data, name.length);
  text[name.length] = 0;
  n->name = (struct hk_string){ text, name.length };
  n->number = f->n_nodes;
  n->group = group;
  n->swept = INT64_MIN;
  struct hk_fleet_node **list = list_of(f, name, group);
  n->next = *list;
  *list = n;
  f->nodes[f->n_nodes++] = n;
  if (f->n_nodes > f->mask)
    spread(f);
  return n;
}

int hk_fleet_names_init(struct hk_fleet_names *f, uint32_t most)
{
  memset(f, 0, sizeof *f);
  f->most = most;
  f->mask = LISTS_FIRST - 1;
  if (getrandom(&f->seed, sizeof f->seed, 0) != sizeof f->seed)
    return -EIO;
  f->lists = calloc(LISTS_FIRST, sizeof(struct hk_fleet_node *));
  if (f->lists && node_new(f, hk_string(""), false))
    return 0;
  hk_fleet_names_free(f);
  return -ENOMEM;
}

void hk_fleet_names_free(struct hk_fleet_names *f)
{
  for (uint32_t i = 0; i < f->n_sensors; i++) {
    free(f->sensors[i]->groups);
    free(f->sensors[i]->what);
    free(f->sensors[i]);
  }
  for (uint32_t i = 0; i < f->n_nodes; i++) {
    free((char *)(uintptr_t)f->nodes[i]->name.data);
    free(f->nodes[i]->active);
    free(f->nodes[i]);
  }
  free(f->sensors);
  free(f->nodes);
  free(f->lists);
  memset(f, 0, sizeof *f);
}

struct hk_fleet_sensor *hk_fleet_find(const struct hk_fleet_names *f, struct hk_string name)
{
  const struct hk_fleet_node *n = fleet_names_find(f, name, false);
  return n ? n->sensor : NULL;
}

/* Bytes of a name before its last cut; 0: it has none. */
static uint32_t fleet_names_cut(struct hk_string name)
{
  uint32_t i = (uint32_t)name.length;
  while (i-- > 1)
    if (name.data[i] == '.' || name.data[i] == '/' || name.data[i] == ':')
      return i;
  return 0;
}

/* The node of a name, with all those above it. */
static struct hk_fleet_node *branch(struct hk_fleet_names *f, struct hk_string name)
{
  struct hk_fleet_node *below = NULL, *first = NULL;
  for (;;) {
    struct hk_fleet_node *n = fleet_names_find(f, name, false);
    const bool known = n != NULL;
    if (!n && !(n = node_new(f, name, false)))
      return NULL;
    if (below) {
      below->self.above = n;
      n->children++;
    } else {
      first = n;
    }
    /* a node whose upper ones could not be made, for want of memory, is joined to them now */
    if ((known && n->self.above) || name.length == 0)
      return first;
    below = n;
    name.length = fleet_names_cut(name);
  }
}

/* The group of a name. */
static struct hk_fleet_node *fleet_names_group_of(struct hk_fleet_names *f, struct hk_string name)
{
  char *text = malloc(name.length + 2);
  if (!text)
    return NULL;
  text[0] = '[';
  memcpy(text + 1, name.data, name.length);
  text[name.length + 1] = ']';
  const struct hk_string whole = { text, name.length + 2 };
  struct hk_fleet_node *n = fleet_names_find(f, whole, true);
  if (!n)
    n = node_new(f, whole, true);
  free(text);
  return n;
}

/* Makes a sensor that is in no group a member of these. */
static int fleet_names_join(struct hk_fleet_names *f, struct hk_fleet_sensor *s, const struct hk_string *groups, uint32_t n)
{
  struct hk_fleet_child *of_groups = n > 0 ? calloc(n, sizeof *of_groups) : NULL;
  bool whole = of_groups || n == 0;
  for (uint32_t i = 0; whole && i < n; i++)
    whole = (of_groups[i].above = fleet_names_group_of(f, groups[i])) != NULL;
  if (!whole) {
    free(of_groups);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < n; i++) {
    of_groups[i].above->children++;
    of_groups[i].above->sensors++;
  }
  s->groups = of_groups;
  s->n_groups = n;
  return 0;
}

int hk_fleet_learn(struct hk_fleet_names *f, struct hk_string name, const struct hk_string *groups, uint32_t n_groups,
                   struct hk_fleet_sensor **out)
{
  *out = hk_fleet_find(f, name);
  if (n_groups > HK_FLEET_GROUPS_MOST)
    return -EINVAL;
  if (*out && ((*out)->n_groups > 0 || n_groups == 0))
    return 0;
  if (*out) {
    f->unordered = true;
    return fleet_names_join(f, *out, groups, n_groups);
  }
  if (name.length == 0 || name.length > HK_FLEET_NAME_MOST)
    return -EINVAL;
  if (f->most > 0 && f->n_sensors >= f->most)
    return -ENOSPC;
  struct hk_fleet_sensor *s = calloc(1, sizeof *s);
  struct hk_fleet_sensor **sensors = fleet_names_reserve(f->sensors, f->n_sensors, &f->sensor_room);
  if (sensors)
    f->sensors = sensors;
  if (!s || !sensors || !(s->leaf = branch(f, name)) || fleet_names_join(f, s, groups, n_groups) != 0) {
    f->unordered = true; /* there may be nodes now that no sensor has */
    free(s);
    return -ENOMEM;
  }
  for (struct hk_fleet_node *n = s->leaf->self.above; n; n = n->self.above)
    n->sensors++;
  s->number = f->n_sensors;
  s->told_R = -1;
  s->leaf->sensor = s;
  f->sensors[f->n_sensors++] = s;
  *out = s;
  return 0;
}

/* --- numbers ------------------------------------------------------------------------------------------------------------ */

static void fleet_names_number(struct hk_fleet_node *n, uint32_t *next)
{
  if (n->number == UINT32_MAX)
    n->number = (*next)++;
}

void hk_fleet_order(struct hk_fleet_names *f)
{
  uint32_t next = 1; /* behind the root */
  if (!f->unordered)
    return;
  for (uint32_t i = 1; i < f->n_nodes; i++)
    f->nodes[i]->number = UINT32_MAX;
  for (uint32_t i = 0; i < f->n_sensors; i++) {
    const struct hk_fleet_sensor *s = f->sensors[i];
    for (struct hk_fleet_node *n = s->leaf; n; n = n->self.above)
      fleet_names_number(n, &next);
    for (uint32_t g = 0; g < s->n_groups; g++)
      fleet_names_number(s->groups[g].above, &next);
  }
  for (uint32_t i = 1; i < f->n_nodes; i++)
    fleet_names_number(f->nodes[i], &next);
  for (uint32_t i = 1; i < f->n_nodes; i++)
    while (f->nodes[i]->number != i) { /* each exchange brings one to its place */
      struct hk_fleet_node *n = f->nodes[i];
      f->nodes[i] = f->nodes[n->number];
      f->nodes[n->number] = n;
    }
  f->unordered = false;
}
