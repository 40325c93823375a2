/* Group: sensors of one machine, and the joint statistic that says whether they changed together. MATHEMATICS.md has the
 * definition.
 *
 *   hk_group_new -> hk_group_join, one for each member -> (hk_group_put, one point of a member; hk_group_next until it gives no
 * more)... -> hk_group_free
 *
 * Points are put into rows of one interval: row k holds the times from k intervals on, and of a member the first value that falls
 * into it. A row is closed, and given out by hk_group_next, once every member that takes part has come as far, or once any member
 * is `wait` rows ahead of it. A member that was silent for more than `wait` rows does not hold rows up any more. It takes part,
 * for the first time or again, from `wait` rows behind its first point on. So what comes out depends only on the members' points,
 * not on how they are mixed, as long as no member is `wait` rows ahead of another one. Points of rows that are closed, and values
 * that are not finite or beyond 1e30, count for nothing.
 *
 * The last `resident` closed rows are kept, but none from before the last change. Every `hop` rows all ways to split them in an
 * older and a newer part are compared. Costs O(members * resident * log(resident)) every hop and O(1) a point otherwise; memory
 * is bounded by members * (resident + wait) * 8 bytes.
 *
 * A group is plain memory: the same points give the same bits. Thread: whoever owns it; nothing here locks. */
#ifndef HK_GROUP_H
#define HK_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_GROUP_SHORTEST_MIN 2
#define HK_GROUP_RESIDENT_MAX 4096
#define HK_GROUP_WAIT_MAX 64
#define HK_GROUP_INTERVAL_MIN 1000 /* ns */
#define HK_GROUP_MEMBERS_MAX 1024
#define HK_GROUP_QUANTILES 3 /* 10, 50, 90 % */

struct hk_group_rule {
  uint32_t shortest; /* rows of either part of a split at least; from HK_GROUP_SHORTEST_MIN */
  uint32_t hop;      /* the statistic every so many rows; at least 1 */
  uint32_t resident; /* rows; 2 * shortest + 1 .. HK_GROUP_RESIDENT_MAX */
  uint32_t wait;     /* rows; 1..HK_GROUP_WAIT_MAX */
  uint32_t members;  /* at most; 1..HK_GROUP_MEMBERS_MAX */
  int64_t interval;  /* ns of a row; at least HK_GROUP_INTERVAL_MIN */
  double threshold;  /* of the statistic; 0: by the number of members, hk_group_unit */
};

/* The rule with every key at its default. */
struct hk_group_rule hk_group_default(void);
/* Sets one key, of shortest hop resident wait members interval threshold; hankeld.conf(5) documents them. hk_group_check: how
 * they fit together. 0, or -EINVAL with a message. */
int hk_group_set(struct hk_group_rule *rule, const char *key, const char *value, char *error, size_t size);
int hk_group_check(const struct hk_group_rule *rule, char *error, size_t size);
/* Parses "key=value,key=value"; "" is the default. As hk_group_check. */
int hk_group_parse(const char *text, struct hk_group_rule *out, char *error, size_t size);

/* SETTLED: two shortest parts behind CHANGED, with the next statistic; until then, and with it, no change is accepted. */
enum hk_group_change { HK_GROUP_SAME, HK_GROUP_CHANGED, HK_GROUP_SETTLED };

/* A row that was closed. */
struct hk_group_tick {
  int64_t time;      /* ns: the latest of the points in it */
  double statistic;  /* NaN: none was due, or the rows do not suffice */
  double score;      /* [0, 1], NaN with it: statistic / (statistic + unit), 1/2 at the threshold */
  uint32_t members;  /* that had enough samples to say anything */
  uint32_t foremost; /* of those, the one that speaks loudest for the best split; UINT32_MAX: none */
  enum hk_group_change change;
  /* CHANGED: the interval that was looked at, and the first time of the newer part; means of the foremost member around it, and
   * its standard deviations about these */
  int64_t from, instant;
  double before, after;
  float spread_before, spread_after;
};

struct hk_group;

/* 0 and *out, -EINVAL: the rule is out of its limits, or -ENOMEM. */
int hk_group_new(struct hk_group **out, const struct hk_group_rule *rule);
void hk_group_free(struct hk_group *group); /* NULL is allowed */

/* One more member, with no points so far. 0 and its number, which is free, -ENOSPC: there are as many as may be, or -ENOMEM. */
int hk_group_join(struct hk_group *group, uint32_t *member);
/* A member goes; its samples go with it, and its number is free. Rows that waited for it can be given out. */
void hk_group_leave(struct hk_group *group, uint32_t member);
uint32_t hk_group_members(const struct hk_group *group);
bool hk_group_has(const struct hk_group *group, uint32_t member); /* whether that is one's number */

/* Takes a point of a member. Ask hk_group_next for all that it gives before the next one is put. */
void hk_group_put(struct hk_group *group, uint32_t member, int64_t time, double value);
/* True and *tick: the next row that can be closed. */
bool hk_group_next(struct hk_group *group, struct hk_group_tick *tick);

/* All that a group knows, in memory that is aligned to 8 bytes: so a group that is read goes on as the one that was written, bit
 * for bit. Between two points, when hk_group_next has given all. FORMAT.md has the layout. hk_group_state_size: bytes, a multiple
 * of 8. hk_group_write: writes as many. */
size_t hk_group_state_size(const struct hk_group *group);
void hk_group_write(const struct hk_group *group, void *state);
/* Makes a group of a state, with the same numbers of members. rule: it is to go on with; shortest, hop, members and threshold may
 * differ from those that it was written with. NULL: these themselves. 0 and *out, -EBADMSG: it is none; -EINVAL: it is of other
 * rows than the rule has, or of more members; or -ENOMEM. */
int hk_group_read(struct hk_group **out, const struct hk_group_rule *rule, const void *state, size_t size);

/* What the statistic is held against where so many members have something to say. */
double hk_group_unit(const struct hk_group_rule *rule, uint32_t members);

#endif
