/* The insides of a group, for its own files: group.c computes, state.c writes and reads.
 *
 * A member's samples lie in a ring of as many places as there are rows at a time, resident or not closed yet; row r is at place
 * r % places in all of them, NaN where there is none. Closed rows in which nobody has a sample are not kept: so the resident rows
 * are those of a list of row numbers. */
#ifndef HK_GROUP_PARTS_H
#define HK_GROUP_PARTS_H

#include "cpu/group/group.h"

#define HK_GROUP_NEVER INT64_MIN
#define HK_GROUP_VALUE_MAX 1e30

struct hk_group_member {
  double *value;   /* ring of closed rows, NaN: none */
  double *pending; /* ring of rows that are not closed: place row % (wait + 1) */
  int64_t *time;   /* of these */
  int64_t last;    /* row of the newest point; NEVER: none */
  int64_t from;    /* the row from which it takes part; INT64_MAX: there was no point */
};

/* A point that was put and has no place yet; there is none once hk_group_next has given all that it gives. */
struct hk_group_coming {
  struct hk_group_member *member; /* NULL: none */
  int64_t row, time;
  double value;
};

struct hk_group {
  struct hk_group_rule rule;
  struct hk_group_member **member; /* NULL: the number is free */
  uint32_t n_members, top;         /* top: numbers are below */
  int64_t next;                    /* the row that is closed next; NEVER: there was no point */
  int64_t newest;                  /* row of any point */
  struct hk_group_coming coming;
  uint32_t waiting;           /* samples of rows that are not closed */
  uint32_t live, head;        /* closed rows that are kept; place of the next one */
  uint64_t rows;              /* closed so far, that had samples */
  int64_t *time;              /* ring of closed rows */
  uint32_t since;             /* rows since a change that is not settled; 0: there is none */
  double *entropy;            /* n ln n for n <= resident */
  double *joint, *own, *most; /* by split: the statistic of all, of one member, and of the foremost so far, */
  uint32_t *foremost;         /* which is this one */
  double *error, *sorted;     /* of one member: prediction errors, and in order of size */
  uint32_t *at;               /* and their rows, counted from the oldest */
};

/* Makes member `number`, which is free and below rule.members. 0 or -ENOMEM. */
int hk_group_add(struct hk_group *group, uint32_t number);

/* Place of a row among those that are not closed. */
static inline uint32_t hk_group_place(const struct hk_group *g, int64_t row)
{
  const int64_t places = g->rule.wait + 1, rest = row % places;
  return (uint32_t)(rest < 0 ? rest + places : rest);
}

/* Place of the closed row that is `back` rows before the next one. */
static inline uint32_t hk_group_back(const struct hk_group *g, uint32_t back)
{
  return g->head >= back ? g->head - back : g->head + g->rule.resident - back;
}

#endif
