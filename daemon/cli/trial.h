/* Runs a detector on the labelled recordings of a collection, in parallel on one backend, and judges the results (judge.h).
 * Thread: the caller's. */
#ifndef HK_TRIAL_H
#define HK_TRIAL_H

#include "cpu/detector.h"
#include "cpu/rules/rate.h"
#include "daemon/cli/judge.h"
#include "daemon/cli/labelled.h"

/* Options. Error messages go to standard error, prefixed with argv[0]. */
struct hk_trial {
  char **argv;
  int choice;         /* index into hk_choices: the backend */
  bool given_windows; /* use the window that the collection suggests for a recording */
};

/* Results for a recording. Owner: the caller. Zero-initialise. */
struct hk_outcome {
  struct hk_detector detector;
  struct hk_rate rate; /* for counters */
  uint32_t fed;        /* points submitted */
  uint32_t points;     /* accepted points, which indices count */
  uint32_t scored;     /* index of the first with a score */
  int64_t *time;       /* times, values and scores (NaN: none) of accepted points */
  double *value;
  float *score;
  struct hk_found *found;
  uint32_t n_found, room;
  struct hk_marked *marked; /* the labels, after judging */
  struct hk_verdict verdict;
  double *delay; /* one for each hit */
};

/* Checks keys, as after --detector. Returns 0, or an exit code after a message that names the option. */
int hk_trial_check(const struct hk_trial *trial, const char *option, const char *keys);

/* Scores all recordings of a set with a detector (keys: checked) into all[set->n], which must be zeroed. Returns 0 or an exit
 * code. */
int hk_trial_score(const struct hk_trial *trial, const struct hk_labelled *set, const char *keys, struct hk_outcome *all);

/* Index of the first accepted point not before a time. */
uint32_t hk_outcome_index(const struct hk_outcome *outcome, int64_t time);
/* Allocates room for the results of so many points and labels. False: no memory. */
bool hk_outcome_prepare(struct hk_outcome *outcome, uint32_t points, uint32_t labels);

/* The window with which its detector is judged; a detector that chooses its window is judged with another. */
uint32_t hk_trial_window(const struct hk_outcome *outcome);

/* Judges the alerts of a recording: sets marked, verdict and delay. */
void hk_trial_judge(const struct hk_labelled *set, const struct hk_recording *r, struct hk_outcome *o);

void hk_outcomes_free(struct hk_outcome *all, uint32_t n); /* and `all` */

#endif
