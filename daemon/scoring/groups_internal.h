/* Internals of groups, for their own files: groups.c has the membership of machines, group_rows.c makes points of rows and events
 * of changes, group_restore.c does snapshots and replay. */
#ifndef HK_GROUPS_INTERNAL_H
#define HK_GROUPS_INTERNAL_H

#include "daemon/base/log.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/machine.h"
#include "daemon/sensors/detector_rules.h"

#include "daemon/scoring/shard.h"

#define HK_GROUPS_SERIES UINT32_MAX
#define HK_GROUPS_UNSETTLED (UINT32_MAX - 1)

/* A slot's place in groups. It is valid as long as the slot has the same handle, and its machine's series exists, or the era is
 * unchanged. */
struct hk_groups_place {
  struct hk_machine *machine; /* NULL: the slot belongs to no machine */
  uint32_t handle;
  uint32_t member; /* its number there; SERIES: it is the machine's series; UNSETTLED: replay has not reached `from` yet */
  uint32_t era;    /* when it was found to belong to no machine */
  bool leaving;
  bool missing; /* replay: its machine has no series yet */
};

struct hk_groups {
  struct hk_shard *shard;
  struct hk_sections *sections, *next; /* next: of a reload under way; NULL: none */
  uint32_t slots;
  struct hk_groups_place *place; /* by slot within the shard; NULL: no group yet */
  uint32_t used;                 /* bound of the places in use */
  uint32_t era;                  /* incremented when slots without a machine may have one: from 1 */
  uint32_t registered;           /* replay: the same, for missing series; 0: none */
  uint32_t *leaving;             /* slots: n_leaving */
  uint32_t n_leaving, room_leaving;
  struct hk_groups_count count;
  struct hk_log_quota refused;
  enum hk_groups_kind kind;
  struct hk_machine *emitting; /* fields: the one whose rows are being returned; NULL: none */
};

/* groups.c.
 * Finds the machine of a sensor by its name and the sections. Returns the length of the name of its series, and its group; 0: it
 * is in none, or the name is too long. */
size_t hk_groups_name(const struct hk_groups *g, const struct hk_sections *sections, uint32_t slot, char series[HK_NAME_MAX],
                      struct hk_machine_name *found);
/* Where a machine of that name is computed; logs a warning if that is not where it should be. */
struct hk_machine_place hk_groups_compute(const struct hk_groups *g, const struct hk_machine_name *name);
void hk_groups_say_where(const struct hk_groups *g, const struct hk_machine_name *name, const struct hk_machine_place *at);
/* Makes a machine the one whose series has this slot of the registry. */
void hk_groups_add(struct hk_groups *g, uint32_t slot, struct hk_machine *machine);
/* Replaces what a machine adds to the counts of models. */
void hk_groups_count_models(struct hk_groups *g, struct hk_machine *m, struct hk_machine_models now);
/* Determines a slot's place. replaying: makes no machine, and no sensor a member. */
void hk_groups_find(struct hk_groups *g, uint32_t within, uint32_t handle, bool replaying);
/* Makes the sensor of a place a member of its machine. False: it failed. */
bool hk_groups_join(struct hk_groups_place *p);
/* Whether the sensor of a place belongs to the machine of the place. slot: of the registry. */
bool hk_groups_belongs(const struct hk_groups *g, const struct hk_groups_place *p, uint32_t slot);
/* Removes a member from its machine. */
void hk_groups_leave(struct hk_groups *g, struct hk_groups_place *p);
/* Clears the machine of a place. */
void hk_groups_let_go(struct hk_groups *g, struct hk_groups_place *p);
/* Removes the members that are leaving. */
void hk_groups_settle(struct hk_groups *g);

static inline bool hk_groups_known(const struct hk_groups *g, const struct hk_groups_place *p, uint32_t handle)
{
  return p->handle == handle && (p->machine ? !p->machine->gone : p->era == (p->missing ? g->registered : g->era));
}

static inline struct hk_groups *hk_groups_kind_of(const struct hk_shard *s, enum hk_groups_kind kind)
{
  return kind == HK_GROUPS_FIELDS ? s->machines.fields : kind == HK_GROUPS_SECOND ? s->machines.seconds : s->machines.groups;
}

/* Whether sections have machines of this kind. */
static inline bool hk_groups_in(const struct hk_sections *s, enum hk_groups_kind kind)
{
  return kind == HK_GROUPS_FIELDS   ? hk_sections_fielded(s)
         : kind == HK_GROUPS_SECOND ? hk_sections_seconded(s)
                                    : hk_sections_grouped(s);
}

/* The machines of the kind of `g`, of the shard that a slot is on. */
static inline struct hk_groups *hk_groups_of(struct hk_groups *g, uint32_t slot)
{
  const struct hk_shards *all = g->shard->all;
  if (all->n == 1)
    return g;
  const struct hk_shard *s = &all->shard[slot % all->n];
  return hk_groups_kind_of(s, g->kind);
}

/* Takes the one lock for the groups of all shards, during replay of journals. Returns whether it is to be unlocked. */
static inline bool hk_groups_lock(const struct hk_groups *g)
{
  const bool replaying = g->shard->replaying;
  if (replaying)
    pthread_mutex_lock(&g->shard->all->replay);
  return replaying;
}
static inline void hk_groups_unlock(const struct hk_groups *g, bool locked)
{
  if (locked)
    pthread_mutex_unlock(&g->shard->all->replay);
}

/* group_rows.c: takes a point of a member; as hk_groups_put. */
uint32_t hk_groups_take(struct hk_machine *m, uint32_t member, int64_t time, double value, const struct hk_columns *to,
                        uint32_t at);
/* Notes a change, to be published with the point of its time. False: no memory; it will not be published. */
bool hk_groups_note(struct hk_machine *m, const struct hk_machine_change *change);

#endif
