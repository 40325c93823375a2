/* Compares the promised and the observed rate of false alerts by severity, on labelled recordings. Pure functions, except that
 * hk_calibrate_add allocates memory.
 *
 * The promise: without a change at most 2 x 10^-S of the blocks of HK_SEVERITY_BLOCK points have an alert of severity S or more,
 * for S from HK_SEVERITY_LEAST to HK_SEVERITY_MEASURED; alerts of more severity count at each S up to there.
 * Blocks begin at the first score; a block with a point within a label, or closer to one than the detector's window or
 * HK_CALIBRATION_LATE points, is omitted. An alert belongs to the block that contains its change instant.
 */
#ifndef HK_CALIBRATE_H
#define HK_CALIBRATE_H

#include "daemon/cli/trial.h"

#include <stdbool.h>
#include <stdint.h>

#define HK_CALIBRATION_LATE 250 /* points: the assumed maximum delay of an alert and of its instant */
#define HK_CALIBRATION_BINS 8

/* Sums over recordings. Zero-initialise. */
struct hk_calibration {
  uint64_t blocks;
  uint64_t grave[HK_CALIBRATION_BINS];          /* blocks with an alert of at least this severity */
  struct hk_verdict worth[HK_CALIBRATION_BINS]; /* the verdict on alerts of at least this severity */
};

/* Adds a judged recording with n_marked labels. Returns 0 or -ENOMEM. */
int hk_calibrate_add(struct hk_calibration *sum, const struct hk_outcome *o, uint32_t n_marked);

/* The promised maximum share of blocks with an alert of this severity; 1 if there is no promise. */
double hk_calibration_promise(double severity);

/* "holds"; "breaks"; or "-" if there is no promise, or if none came and less than one alert would be expected by the promise. */
const char *hk_calibration_word(const struct hk_calibration *c, uint32_t bin);

/* Prints a table, or lines of CSV: detector, collection, severity from, alerts, labels hit, hit by chance, false
 * alerts, of all 1,000 points, blocks, of these with an alert, promise, observation, word. */
void hk_calibration_print(const struct hk_calibration *c, bool csv, const char *keys, const char *set);
/* Sums and prints the judged recordings of a set. The table of a set whose labels are windows also has the score of the Numenta
 * Anomaly Benchmark (nab_score.h). Returns 0 or -ENOMEM. */
int hk_calibrate(bool csv, const char *keys, const struct hk_labelled *set, const struct hk_outcome *all);
#define HK_CALIBRATION_HEADER                                                                                                    \
  "detector,set,severity,alerts,labels,hits,chance,false,false_per_1000,blocks,with_alert,promised,observed,word"

#endif
