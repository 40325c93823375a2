/* Judges a detector on sensors alone and on their derived series in a field, side by side: what --field of hankel evaluate
 * prints. Thread: the caller's. */
#ifndef HK_FIELD_COMPARE_H
#define HK_FIELD_COMPARE_H

#include "daemon/cli/trial.h"

#define HK_FIELD_COMPARE_HEADER                                                                                                  \
  "field,detector,set,recording,labels,alone_points,alone_alerts,alone_hits,alone_chance,alone_false,alone_false_per_1000,"      \
  "alone_delay,field_points,field_alerts,field_hits,field_chance,field_false,field_false_per_1000,field_delay,field_secondary"

struct hk_field_compare {
  const struct hk_trial *trial;
  const char *field, *detector; /* keys, checked */
  const char *head;             /* keys of the detector for the head of the table */
  bool csv, brief;              /* brief: totals only */
};

/* The verdicts on alerts of sensors alone and in the field, and alerts for which another sensor of the field is to blame.
 * Zero-initialise. */
struct hk_field_verdict {
  struct hk_verdict alone, field;
  uint64_t secondary;
  bool begun; /* the head was printed */
};

/* Scores, judges and prints a set, the first one with the head of the table, and adds its totals to *sum; a set without files of
 * several sensors adds nothing. Returns 0 or an exit code. */
int hk_field_compare_set(const struct hk_field_compare *compare, const struct hk_labelled *set, struct hk_field_verdict *sum);
/* Prints what the sums of all sets say in a sentence. */
void hk_field_compare_end(const struct hk_verdict *alone, const struct hk_verdict *field);

#endif
