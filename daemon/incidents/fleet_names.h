/* The names of a fleet as a tree: a sensor's name is cut at each '.', '/' and ':', and the text before a cut is a node above it.
 * The root is above all sensors, and each group above its members. Names and nodes are never forgotten, and are numbered in the
 * order in which they came: the same names with the same groups in the same order get the same numbers. Where a sensor got its
 * groups after its name, that holds again once hk_fleet_order was called.
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

/* A child's activity in the last window. */
struct hk_fleet_child {
  struct hk_fleet_node *above;    /* NULL: of the root */
  bool active;                    /* in the list of `above` */
  double S;                       /* its greatest severity */
  int64_t raised;                 /* ns: first alert, */
  struct hk_fleet_sensor *sensor; /* of this sensor */
};

/* An entry of a node's active children, by falling severity. */
struct hk_active_child {
  double S, fade; /* fade: 10^-(S - HK_TAIL_WEAKEST) */
  struct hk_fleet_child *child;
};

struct hk_fleet_node {
  struct hk_fleet_node *next; /* of the same hash */
  struct hk_string name;      /* "" the root; of a group with brackets around it; ends with 0 */
  uint32_t number;
  bool group;
  uint32_t children, sensors; /* children; a sensor that is not a node has none */
  struct hk_fleet_child self; /* as a child of the node above; of a group: not used */
  struct hk_active_child *active;
  uint32_t n_active, room;
  int64_t swept;                  /* ns: all in the list are young enough for this time */
  struct hk_fleet_sensor *sick;   /* a sensor of its incident; NULL: it has none */
  int64_t newcomer;               /* ns: when the incident took in its last sensor */
  struct hk_fleet_sensor *sensor; /* the sensor of this name, if there is one */
};

struct hk_fleet_sensor {
  struct hk_fleet_node *leaf; /* has its name */
  uint32_t number, n_groups;
  struct hk_fleet_child *groups; /* as a child of each of its groups */
  int64_t told_until;            /* ns: until when it is muted, unless */
  double told_R;                 /* R exceeds this by a margin; < 0: it was never reported */
  /* as a member of an open incident; NULL: of none */
  struct hk_incident *incident;
  struct hk_fleet_sensor *next;
  double S;                /* greatest severity */
  int64_t raised, instant; /* ns: first alert; estimated instant of the change */
  uint32_t channels;       /* bit i: channel i */
  uint8_t strongest;       /* channel of S */
  char *what;              /* what the alert of S said to people; NULL: nothing */
};

#define HK_FLEET_NAME_MOST 4096u  /* bytes of a name */
#define HK_FLEET_GROUPS_MOST 256u /* that a sensor is in */

struct hk_fleet_names {
  struct hk_fleet_node **lists, **nodes; /* by hash; by number: 0 is the root */
  struct hk_fleet_sensor **sensors;      /* by number */
  uint32_t mask, n_nodes, n_sensors, node_room, sensor_room, most;
  uint64_t seed;
  bool unordered; /* numbers of nodes are not in the order of sensors and their groups */
};

/* most: names of sensors; 0 = any number. 0, -ENOMEM or -EIO (no random numbers). */
int hk_fleet_names_init(struct hk_fleet_names *names, uint32_t most);
void hk_fleet_names_free(struct hk_fleet_names *names);

/* The sensor of a name; NULL: unknown. */
struct hk_fleet_sensor *hk_fleet_find(const struct hk_fleet_names *names, struct hk_string name);
/* The same; adds an unknown sensor, with these groups, and gives them to a known one that has none. 0; -ENOMEM; -ENOSPC: too
 * many; -EINVAL: the name is empty, or it or the list of groups is too long. */
int hk_fleet_learn(struct hk_fleet_names *names, struct hk_string name, const struct hk_string *groups, uint32_t n_groups,
                   struct hk_fleet_sensor **out);

/* Numbers the nodes as learning all sensors anew in their order, each with its groups, would. */
void hk_fleet_order(struct hk_fleet_names *names);

/* The children on the way from a sensor up: itself, the nodes above it but the root, then itself in each group. Start with NULL;
 * returns NULL after the last. *group: counts the groups, starts with 0. */
static inline struct hk_fleet_child *hk_fleet_up(struct hk_fleet_sensor *s, struct hk_fleet_child *child, uint32_t *group)
{
  if (!child)
    return &s->leaf->self;
  if (*group == 0 && child->above->name.length > 0)
    return &child->above->self;
  return *group < s->n_groups ? &s->groups[(*group)++] : NULL;
}

#endif
