/* State of a group, for its own files: group.c computes, state.c writes and reads.
 *
 * A member's samples are in a ring with a place for each resident or open row; row r is at place r % places in all rings, NaN if
 * there is no sample. Closed rows without any sample are not kept, so a list of row numbers has the resident rows. */
#ifndef HK_GROUP_INTERNAL_H
#define HK_GROUP_INTERNAL_H

#include "cpu/group/group.h"
#include "cpu/novelty/tail.h"

#define HK_GROUP_NEVER INT64_MIN
#define HK_GROUP_VALUE_MAX 1e30
#define HK_GROUP_NOVELTY_BLOCK 20 /* rows of a block of the tail */

/* A member's slow mean of its values less the first one, and mean and variance of that. Of novelty only. */
struct hk_group_slow {
  double first, mean, centre, variance;
  uint64_t n; /* values so far */
};

struct hk_group_member {
  double *value;   /* ring of closed rows, NaN: none; of novelty the slow means */
  double *pending; /* ring of open rows: place row % (wait + 1) */
  int64_t *time;   /* times of `pending` */
  int64_t last;    /* row of the newest point; NEVER: none */
  int64_t from;    /* the row from which it participates; INT64_MAX: no point yet */
  struct hk_group_slow slow;
};

/* A point that was put and is not in a row yet; none after hk_group_next has returned all rows. */
struct hk_group_coming {
  struct hk_group_member *member; /* NULL: none */
  int64_t row, time;
  double value;
};

/* How rare past distances were, and the alert. Of novelty only. */
struct hk_group_novelty {
  struct hk_novelty_tail tail[2]; /* the blocks of the second begin half a block later */
  double peak, severity;          /* of the alert: its highest S and severity */
  uint32_t seen;                  /* distances so far */
  uint32_t since, quiet;          /* rows since it was raised or began anew, and since the last one that was not quiet */
  bool raised;
};

struct hk_group {
  struct hk_group_rule rule;
  struct hk_group_member **member; /* NULL: the number is free */
  uint32_t n_members, top;         /* top: member numbers are below it */
  int64_t next;                    /* the row that is closed next; NEVER: no point yet */
  int64_t newest;                  /* newest row with a point */
  struct hk_group_coming coming;
  uint32_t waiting;           /* samples in open rows */
  uint32_t live, head;        /* number of kept closed rows; place of the next one */
  uint64_t rows;              /* number of closed rows that had samples */
  int64_t *time;              /* ring of closed rows */
  uint32_t since;             /* rows since a change that is not settled; 0: none */
  double *entropy;            /* n ln n for n <= resident */
  double *joint, *own, *most; /* by split: the statistic of all, of one member, and of the foremost so far */
  uint32_t *foremost;         /* by split: which member is foremost */
  double *error, *sorted;     /* of one member: prediction errors, and these sorted */
  uint32_t *at;               /* their rows, counted from the oldest */
  struct hk_group_novelty novelty;
};

/* Adds member `number`, which must be free and below rule.members. Returns 0 or -ENOMEM. */
int hk_group_add(struct hk_group *group, uint32_t number);

/* Place of an open row. */
static inline uint32_t hk_group_place(const struct hk_group *g, int64_t row)
{
  const int64_t places = g->rule.wait + 1, rest = row % places;
  return (uint32_t)(rest < 0 ? rest + places : rest);
}

static inline bool hk_group_is_novelty(const struct hk_group *g)
{
  return g->rule.statistic == HK_GROUP_NOVELTY;
}

/* Closed rows that are kept. */
static inline uint32_t hk_group_rows(const struct hk_group_rule *r)
{
  return r->statistic == HK_GROUP_NOVELTY ? r->novelty_resident + HK_GROUP_NOVELTY_AGE : r->resident;
}

/* Place of the closed row that is `back` rows before the next one. */
static inline uint32_t hk_group_back(const struct hk_group *g, uint32_t back)
{
  return g->head >= back ? g->head - back : g->head + hk_group_rows(&g->rule) - back;
}

#endif
