/* A detector over labelled recordings: those of a collection are scored side by side on one backend, and what came of each is
 * kept and judged (judge.h). Thread: the caller's. */
#ifndef HK_TRIAL_H
#define HK_TRIAL_H

#include "cpu/detector.h"
#include "cpu/rules/rate.h"
#include "daemon/cli/judge.h"
#include "daemon/cli/labelled.h"

/* How. Messages of failures go to standard error, in the name of argv[0]. */
struct hk_trial {
  char **argv;
  int choice;         /* of hk_choices: the backend */
  bool given_windows; /* the window that a collection says for a recording is the detector's */
};

/* What came of one recording. Owner: the caller; all zero is nothing. */
struct hk_outcome {
  struct hk_detector detector;
  struct hk_rate rate; /* of a counter */
  uint32_t fed;        /* points handed over */
  uint32_t points;     /* of them accepted: indices count these */
  uint32_t scored;     /* index of the first with a score */
  int64_t *time;       /* of the accepted, their values, and their scores: NaN where there is none */
  double *value;
  float *score;
  struct hk_found *found;
  uint32_t n_found, room;
  struct hk_marked *marked; /* the labels, once judged */
  struct hk_verdict verdict;
  double *delay; /* one for each hit */
};

/* Whether keys, as after --detector or --group, are sound: 0, or an exit code when the fault was told, in the name of an option.
 */
int hk_trial_check(const struct hk_trial *trial, const char *option, const char *keys);
int hk_trial_check_group(const struct hk_trial *trial, const char *option, const char *keys);

/* Scores all recordings of a set with a detector (sound keys as after --detector) into all[set->n], which are all zero. 0 or an
 * exit code. */
int hk_trial_score(const struct hk_trial *trial, const struct hk_labelled *set, const char *keys, struct hk_outcome *all);

/* The same with groups (cpu/group/group.h; sound keys as in a [group NAME] section): the sensors of each file are a machine. An
 * alert hits a label within five shortest parts. hk_trial_machines: the machines as recordings, without points; labels are the
 * set's, free out->recording alone. 0 or -ENOMEM. hk_trial_group: what came of each of these. */
int hk_trial_machines(const struct hk_labelled *set, struct hk_labelled *out);
int hk_trial_group(const struct hk_trial *trial, const struct hk_labelled *set, const char *keys, struct hk_outcome *all);

/* Index of the first accepted point not before a time. */
uint32_t hk_outcome_index(const struct hk_outcome *outcome, int64_t time);
/* Makes room for what may come of so many points and labels. False: no memory. */
bool hk_outcome_prepare(struct hk_outcome *outcome, uint32_t points, uint32_t labels);

/* The window that its detector is judged with: of one that finds its own, another. */
uint32_t hk_trial_window(const struct hk_outcome *outcome);

/* Judges what was found in a recording: fills in marked, verdict and delay. */
void hk_trial_judge(const struct hk_labelled *set, const struct hk_recording *r, struct hk_outcome *o);

void hk_outcomes_free(struct hk_outcome *all, uint32_t n); /* and `all` */

#endif
