/* A machine: the rows of sensors that are watched together. The rows of a group (cpu/group/group.h) give one score for whether
 * the sensors have changed; those of a field (cpu/field/field.h) give each member derived series. groups.h has the membership. */
#ifndef HK_SCORING_MACHINE_H
#define HK_SCORING_MACHINE_H

#include "cpu/field/binding.h"
#include "cpu/field/state.h"
#include "cpu/group/group.h"
#include "daemon/sensors/detector_rules.h"
#include "daemon/sensors/group_memory.h"
#include "proto/wire/message.h"

struct hk_groups;

/* What a machine adds to the counts of models in struct hk_groups_count. */
struct hk_machine_models {
  uint32_t lines, running, checks, poor;
  uint64_t explained;
};

/* The derived sensors of each member of a field. */
struct hk_machine_field {
  struct hk_field *model; /* NULL: the machine is a group's */
  struct hk_field_binding binding;
  struct hk_field_series kinds; /* kinds of derived sensors that each member has */
  uint32_t *series;             /* their handles: kinds.n for each member; HK_NO_HANDLE: none */
  uint32_t *tried;              /* for each member: the era in which they were last looked for without success */
  struct hk_field_row row;      /* the row that is being returned, */
  uint32_t at;                  /* up to this node */
  struct hk_machine_models counted;
};

/* Changes that a group has found and that are not published yet: n of them, in order. */
struct hk_machine_changes {
  struct hk_machine_change *list;
  uint32_t n, room;
  uint32_t cut; /* number of changes, from the first, that existed at the last hk_groups_save */
};

/* The alert of a group's series. */
struct hk_machine_alert {
  uint32_t number; /* of the last alert */
  bool stands;     /* it stands, as */
  struct hk_event standing;
};

struct hk_machine {
  struct hk_groups *owner; /* groups of the shard that its series is on */
  struct hk_group *group;  /* NULL: the machine is a field's */
  struct hk_group_rule rule;
  struct hk_machine_field field;
  uint32_t slot;      /* of its series, within the shard */
  uint32_t *handles;  /* of the members, by number; HK_NO_HANDLE: the number is free */
  uint32_t n_handles; /* capacity of this and of the lists of `field` */
  uint32_t staying;   /* members that are not being evicted */
  uint32_t places;    /* number of places that name it, except the series' own */
  uint64_t from;      /* replay: its rows hold the points before this position */
  bool gone;          /* the series is gone */
  bool ending;        /* the series is retired: no more points are made for it */
  bool told;          /* a score was made */
  struct hk_machine_changes changes;
  struct hk_machine_alert alert;
};

/* Where a machine's rows are computed. Used by models only. */
struct hk_machine_place {
  struct hk_pipelines_place place;
  char why[256]; /* out: why the host computes and not that place; else empty */
};

/* Makes a machine without members, of this group or field; state: rows to continue with, or NULL. Returns 0 and *out, -EINVAL:
 * rows of another group, -EBADMSG: damaged rows, or -ENOMEM. */
int hk_machine_new(struct hk_machine **out, const struct hk_machine_name *name, struct hk_machine_place *at, const void *state,
                   size_t size);
void hk_machine_free(struct hk_machine *machine);

/* Adds a member, which has a handle and a name. False: it failed. */
bool hk_machine_join(struct hk_machine *machine, uint32_t handle, struct hk_string name, uint32_t *member);
void hk_machine_leave(struct hk_machine *machine, uint32_t member);
/* Records a member's handle. False: no memory. */
bool hk_machine_number(struct hk_machine *machine, uint32_t number, uint32_t handle);
uint32_t hk_machine_members(const struct hk_machine *machine);
bool hk_machine_has(const struct hk_machine *machine, uint32_t member);

size_t hk_machine_state_size(const struct hk_machine *machine);
void hk_machine_write(const struct hk_machine *machine, void *state);

#endif
