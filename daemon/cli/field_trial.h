/* Applies a field (fielded.h) to labelled recordings: the sensors of a file form a field, and their derived series are recordings
 * with the labels of their sensors. Thread: the caller's. */
#ifndef HK_FIELD_TRIAL_H
#define HK_FIELD_TRIAL_H

#include "daemon/cli/trial.h"

/* An alert of a field itself: a change that travels along a line. */
struct hk_field_found {
  uint32_t recording; /* of the derived series of the sensor where it began */
  int64_t instant, raised;
  float severity;
};

/* Zero-initialise. */
struct hk_field_trial {
  struct hk_labelled alone;     /* the sensors of files with several; its points and labels are those of the set */
  struct hk_labelled derived;   /* their derived series, in the same order */
  bool blames;                  /* the values of derived points mark those for which another sensor is to blame */
  struct hk_field_found *found; /* those of a recording in the order of `raised` */
  uint32_t n_found, room_found;
};

/* Checks keys, as after --field. Returns 0, or an exit code after a message that names the option. */
int hk_field_trial_check(const struct hk_trial *trial, const char *keys);
/* Makes the field of each file with several sensors (keys: checked). The set must outlive *out. Returns 0, or an exit code after
 * a message; hk_field_trial_close in either case. */
int hk_field_trial_open(struct hk_field_trial *out, const struct hk_trial *trial, const struct hk_labelled *set,
                        const char *keys);
void hk_field_trial_close(struct hk_field_trial *fields);

/* Takes alerts for which another sensor is to blame out of the results of the derived series, and adds those of the field itself.
 * secondary: zeros; receives how many of each series were taken out. Returns 0 or -ENOMEM. */
int hk_field_trial_settle(const struct hk_field_trial *fields, struct hk_outcome *all, uint64_t *secondary);

#endif
