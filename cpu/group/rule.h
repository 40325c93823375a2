/* The keys of a group: see group.h. */
#ifndef HK_GROUP_RULE_H
#define HK_GROUP_RULE_H

#include <stddef.h>
#include <stdint.h>

#define HK_GROUP_SHORTEST_MIN 2
#define HK_GROUP_RESIDENT_MAX 4096
#define HK_GROUP_WAIT_MAX 64
#define HK_GROUP_INTERVAL_MIN 1000 /* ns */
#define HK_GROUP_MEMBERS_MAX 1024
#define HK_GROUP_NOVELTY_AGE 30 /* rows */

/* BOTH: a rule for two groups, of which each has its statistic; not for hk_group_new. */
enum hk_group_statistic { HK_GROUP_JOINT, HK_GROUP_NOVELTY, HK_GROUP_BOTH };

struct hk_group_rule {
  uint32_t statistic;        /* enum hk_group_statistic */
  uint32_t shortest;         /* minimum rows of either part of a split; at least HK_GROUP_SHORTEST_MIN */
  uint32_t hop;              /* rows from one statistic to the next; at least 1 */
  uint32_t resident;         /* rows; 2 * shortest + 1 .. HK_GROUP_RESIDENT_MAX */
  uint32_t wait;             /* rows; 1..HK_GROUP_WAIT_MAX */
  uint32_t members;          /* maximum number; 1..HK_GROUP_MEMBERS_MAX */
  int64_t interval;          /* ns from row to row; at least HK_GROUP_INTERVAL_MIN */
  double threshold;          /* threshold of the statistic; 0: by the number of members, hk_group_unit */
  uint32_t novelty_resident; /* rows; 100..HK_GROUP_RESIDENT_MAX - HK_GROUP_NOVELTY_AGE */
  double novelty_threshold;  /* of S, over 0: such distances came in a share of 10^-S of the past blocks of 20 rows */
};

/* Returns the rule with all keys at their defaults. */
struct hk_group_rule hk_group_default(void);
/* hk_group_set: sets one of the keys statistic shortest hop resident wait members interval threshold novelty.resident
 * novelty.threshold; hankeld.conf(5) documents them.
 * hk_group_check: checks that the keys are consistent. Both return 0, or -EINVAL with a message. */
int hk_group_set(struct hk_group_rule *rule, const char *key, const char *value, char *error, size_t size);
int hk_group_check(const struct hk_group_rule *rule, char *error, size_t size);
/* Parses "key=value,key=value"; "" is the default. Returns as hk_group_check. */
int hk_group_parse(const char *text, struct hk_group_rule *out, char *error, size_t size);

/* The unit of the statistic for `members` members with enough samples: its threshold. */
double hk_group_unit(const struct hk_group_rule *rule, uint32_t members);

#endif
