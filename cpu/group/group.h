/* Group: the sensors of one machine, and a statistic of their rows: whether they changed together, or how new their joint state
 * is. MATHEMATICS.md has the definitions.
 *
 *   hk_group_new -> hk_group_join, one for each member
 *    -> (hk_group_put, one point of a member; hk_group_next until it returns false)... -> hk_group_free
 *
 * Points are put into rows of one interval: row k begins at k intervals, and contains of each member its first value in it. A row
 * is closed, and returned by hk_group_next, once every participating member has reached its end, or once any member is `wait`
 * rows ahead. A member that was silent for more than `wait` rows does not delay rows any more; it participates, for the first
 * time or again, from `wait` rows after its first point. So the output depends only on the members' points, not on how they are
 * interleaved, as long as no member is `wait` rows ahead of another one. Points of closed rows, and values that are not finite or
 * beyond 1e30, are ignored.
 *
 * HK_GROUP_JOINT: the last `resident` closed rows since the last change are kept. Every `hop` rows all splits of them into an
 * older and a newer part are compared. Costs O(members * resident * log(resident)) for each hop and otherwise O(1) for each
 * point; memory is at most members * (resident + wait) * 8 bytes.
 *
 * HK_GROUP_NOVELTY: the last `novelty_resident` rows that are at least HK_GROUP_NOVELTY_AGE rows old are kept, across changes,
 * and each row's slow means are compared with those of all of them. How rare the distance to the nearest one is follows from the
 * group's own past distances, as with algorithm = novelty (cpu/novelty/tail.h). Costs O(members * novelty_resident) for each
 * row; memory as above.
 *
 * A group is plain memory: the same points give the same bits. Thread: the owner's; nothing here locks. */
#ifndef HK_GROUP_H
#define HK_GROUP_H

#include "cpu/group/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_GROUP_QUANTILES 3 /* 10, 50, 90 % */

/* Joint: SETTLED comes with the first statistic that is two shortest parts after CHANGED; no other change is accepted until then,
 * nor with it. Novelty: SETTLED comes after 30 quiet rows, or 100 in all; GRAVER in between, each time that the severity passes
 * another quarter. */
enum hk_group_change { HK_GROUP_SAME, HK_GROUP_CHANGED, HK_GROUP_GRAVER, HK_GROUP_SETTLED };

/* A closed row. */
struct hk_group_tick {
  int64_t time;      /* ns: latest time of the points in it */
  double statistic;  /* of novelty S; NaN: not due, or there are too few rows */
  double score;      /* [0, 1]: statistic / (statistic + unit), 1/2 at the threshold; NaN if the statistic is NaN */
  uint32_t members;  /* members with enough samples for the statistic */
  uint32_t foremost; /* the member with the greatest contribution at the best split; UINT32_MAX: none */
  enum hk_group_change change;
  double severity; /* CHANGED, GRAVER: of the alert; of novelty also SETTLED: the highest since CHANGED */
  /* CHANGED, GRAVER: start of the examined interval, and the first time of the newer part; means of the foremost member before
   * and after it, and its standard deviations about these. Novelty: from = instant, the first row of the slow means; the foremost
   * member's slow mean in the nearest row, and now; how far it usually is from the nearest one, and 0. */
  int64_t from, instant;
  double before, after;
  float spread_before, spread_after;
};

struct hk_group;

/* Creates a group. Returns 0 and *out; -EINVAL: the rule exceeds its limits; or -ENOMEM. */
int hk_group_new(struct hk_group **out, const struct hk_group_rule *rule);
void hk_group_free(struct hk_group *group); /* NULL is allowed */

/* Adds a member without points. Returns 0 and a free number; -ENOSPC: the maximum number of members is reached; or -ENOMEM. */
int hk_group_join(struct hk_group *group, uint32_t *member);
/* Removes a member with its samples; its number becomes free. Rows that waited for it may become complete: call hk_group_next. */
void hk_group_leave(struct hk_group *group, uint32_t member);
uint32_t hk_group_members(const struct hk_group *group);
bool hk_group_has(const struct hk_group *group, uint32_t member); /* whether it is the number of a member */

/* Adds a point of a member. Call hk_group_next until it returns false before adding the next point. */
void hk_group_put(struct hk_group *group, uint32_t member, int64_t time, double value);
/* Returns true and *tick, the next row that can be closed; or false. */
bool hk_group_next(struct hk_group *group, struct hk_group_tick *tick);

#endif
