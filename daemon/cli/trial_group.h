/* Groups over labelled recordings: the sensors of a file form a machine, and its results are judged as one recording; also the
 * alerts of sensors of one file, taken together. Thread: the caller's. */
#ifndef HK_TRIAL_GROUP_H
#define HK_TRIAL_GROUP_H

#include "daemon/cli/trial.h"

/* Checks keys, as after --group. Returns 0, or an exit code after a message that names the option. */
int hk_trial_check_group(const struct hk_trial *trial, const char *option, const char *keys);
/* Recordings from number i on that are of one file; 0 < i < set->n. */
uint32_t hk_trial_of_one_file(const struct hk_labelled *set, uint32_t i);
/* Makes the files of a set into recordings without points, machines, with the labels of any of their sensors, each once. Returns
 * 0 or -ENOMEM; hk_labelled_free in either case. */
int hk_trial_machines(const struct hk_labelled *set, struct hk_labelled *out);
/* As hk_trial_score, with groups (cpu/group/group.h; keys of a [group NAME] section, checked): results of each machine. An alert
 * hits a label within five shortest parts. */
int hk_trial_group(const struct hk_trial *trial, const struct hk_labelled *set, const struct hk_labelled *machines,
                   const char *keys, struct hk_outcome *all);
/* Judges the alerts of all sensors of each file as one recording, as an operator of the machine sees them. all: of the set,
 * judged. *delay: one for each hit; free it in either case. Returns 0 or -ENOMEM. */
int hk_trial_together(const struct hk_labelled *set, const struct hk_labelled *machines, const struct hk_outcome *all,
                      struct hk_verdict *sum, double **delay);

#endif
