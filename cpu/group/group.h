/* Group: the sensors of one machine, and the joint statistic of whether they changed together. MATHEMATICS.md has the
 * definition.
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
 * The last `resident` closed rows since the last change are kept. Every `hop` rows all splits of them into an older and a newer
 * part are compared. Costs O(members * resident * log(resident)) for each hop and otherwise O(1) for each point; memory is at
 * most members * (resident + wait) * 8 bytes.
 *
 * A group is plain memory: the same points give the same bits. Thread: the owner's; nothing here locks. */
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
  uint32_t shortest; /* minimum rows of either part of a split; at least HK_GROUP_SHORTEST_MIN */
  uint32_t hop;      /* rows from one statistic to the next; at least 1 */
  uint32_t resident; /* rows; 2 * shortest + 1 .. HK_GROUP_RESIDENT_MAX */
  uint32_t wait;     /* rows; 1..HK_GROUP_WAIT_MAX */
  uint32_t members;  /* maximum number; 1..HK_GROUP_MEMBERS_MAX */
  int64_t interval;  /* ns from row to row; at least HK_GROUP_INTERVAL_MIN */
  double threshold;  /* threshold of the statistic; 0: by the number of members, hk_group_unit */
};

/* Returns the rule with all keys at their defaults. */
struct hk_group_rule hk_group_default(void);
/* hk_group_set: sets one of the keys shortest hop resident wait members interval threshold; hankeld.conf(5) documents them.
 * hk_group_check: checks that the keys are consistent. Both return 0, or -EINVAL with a message. */
int hk_group_set(struct hk_group_rule *rule, const char *key, const char *value, char *error, size_t size);
int hk_group_check(const struct hk_group_rule *rule, char *error, size_t size);
/* Parses "key=value,key=value"; "" is the default. Returns as hk_group_check. */
int hk_group_parse(const char *text, struct hk_group_rule *out, char *error, size_t size);

/* SETTLED: with the first statistic that is two shortest parts after CHANGED; no other change is accepted until then, nor with
 * it. */
enum hk_group_change { HK_GROUP_SAME, HK_GROUP_CHANGED, HK_GROUP_SETTLED };

/* A closed row. */
struct hk_group_tick {
  int64_t time;      /* ns: latest time of the points in it */
  double statistic;  /* NaN: not due, or there are too few rows */
  double score;      /* [0, 1]: statistic / (statistic + unit), 1/2 at the threshold; NaN if the statistic is NaN */
  uint32_t members;  /* members with enough samples for the statistic */
  uint32_t foremost; /* the member with the greatest contribution at the best split; UINT32_MAX: none */
  enum hk_group_change change;
  /* CHANGED: start of the examined interval, and the first time of the newer part; means of the foremost member before and after
   * it, and its standard deviations about these */
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

/* Writes and reads the complete state of a group, in memory aligned to 8 bytes; a group that was read continues exactly, bit for
 * bit. Call hk_group_write only when hk_group_next has returned all rows. FORMAT.md has the layout. hk_group_state_size: bytes
 * that hk_group_write writes, a multiple of 8. */
size_t hk_group_state_size(const struct hk_group *group);
void hk_group_write(const struct hk_group *group, void *state);
/* Creates a group from a state, with the same member numbers. rule: the rule to continue with; shortest, hop, members and
 * threshold may differ from those of the state; NULL: those of the state. Returns 0 and *out; -EBADMSG: not a valid state;
 * -EINVAL: the state has other rows than the rule, or more members; or -ENOMEM. */
int hk_group_read(struct hk_group **out, const struct hk_group_rule *rule, const void *state, size_t size);

/* The unit of the statistic for `members` members with enough samples. */
double hk_group_unit(const struct hk_group_rule *rule, uint32_t members);

#endif
