/* The names of a fleet as a tree: a sensor's name is cut at each '.', '/' and ':', and what stands before a cut is a node above
 * it; the root is above all, and so is each of its groups. Names and nodes are never forgotten, and have numbers in the order in
 * which they came: the same names in the same order give the same numbers.
 *
 * Thread: one at a time. */
#ifndef HK_FLEET_NAMES_H
#define HK_FLEET_NAMES_H

#include "proto/wire/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hk_incident;
struct hk_fleet_node;
struct hk_fleet_sensor;

/* What a child of a node showed in the last window. */
struct hk_fleet_child {
  struct hk_fleet_node *above;    /* NULL: of the root */
  bool active;                    /* in the list of `above` */
  double S;                       /* its greatest severity */
  int64_t raised;                 /* ns: first alert, */
  struct hk_fleet_sensor *sensor; /* of this sensor */
};

/* Of the list of a node's active children, the gravest first. */
struct hk_active_child {
  double S, fade; /* fade: 10^-(S - HK_TAIL_WEAKEST) */
  struct hk_fleet_child *child;
};

struct hk_fleet_node {
  struct hk_fleet_node *next; /* of the same hash */
  struct hk_string name;      /* "" the root; of a group with brackets around it; ends with 0 */
  uint32_t number;
  bool group;
  uint32_t children, sensors; /* below it; a sensor that is no node has none */
  struct hk_fleet_child self; /* as a child of the node above; of a group: not used */
  struct hk_active_child *active;
  uint32_t n_active, room;
  int64_t swept;                  /* ns: all in the list are young enough for this time */
  struct hk_fleet_sensor *sick;   /* a sensor of its incident; NULL: it is not sick */
  int64_t newcomer;               /* ns: when that took in the last one */
  struct hk_fleet_sensor *sensor; /* the sensor of this name, if there is one */
};

struct hk_fleet_sensor {
  struct hk_fleet_node *leaf; /* has its name */
  uint32_t number, n_groups;
  struct hk_fleet_child *groups; /* as a child of each of its groups */
  int64_t told_until;            /* ns: it is silent so long, unless */
  double told_R;                 /* R is higher than this by so much; < 0: it was never told */
  /* as a member of an open incident; NULL: of none */
  struct hk_incident *incident;
  struct hk_fleet_sensor *next;
  double S;                /* greatest severity */
  int64_t raised, instant; /* ns: first alert; estimated instant of the change */
  uint32_t channels;       /* bit i: channel i */
  uint8_t strongest;       /* channel of S */
};

#define HK_FLEET_NAME_MOST 4096u  /* bytes of a name */
#define HK_FLEET_GROUPS_MOST 256u /* that a sensor is in */

struct hk_fleet_names {
  struct hk_fleet_node **lists, **nodes; /* by hash; by number: 0 is the root */
  struct hk_fleet_sensor **sensors;      /* by number */
  uint32_t mask, n_nodes, n_sensors, node_room, sensor_room, most;
  uint64_t seed;
};

/* most: names of sensors; 0 = any number. 0, -ENOMEM or -EIO (no random numbers). */
int hk_fleet_names_init(struct hk_fleet_names *names, uint32_t most);
void hk_fleet_names_free(struct hk_fleet_names *names);

/* The sensor of a name; NULL: unknown. */
struct hk_fleet_sensor *hk_fleet_find(const struct hk_fleet_names *names, struct hk_string name);
/* The same; it is made if it is not there, with these groups. 0; -ENOMEM; -ENOSPC: there are too many; -EINVAL: the name
 * is empty, or it or the list of groups is too long. */
int hk_fleet_learn(struct hk_fleet_names *names, struct hk_string name, const struct hk_string *groups, uint32_t n_groups,
                   struct hk_fleet_sensor **out);

/* The children on the way from a sensor up: itself, the nodes above it but the root, then itself in each group. Begin with NULL;
 * returns NULL behind the last. *group: counts the groups, begins with 0. */
static inline struct hk_fleet_child *hk_fleet_up(struct hk_fleet_sensor *s, struct hk_fleet_child *child, uint32_t *group)
{
  if (!child)
    return &s->leaf->self;
  if (*group == 0 && child->above->name.length > 0)
    return &child->above->self;
  return *group < s->n_groups ? &s->groups[(*group)++] : NULL;
}

#endif
