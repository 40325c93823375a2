/* What a severity promised, and what was observed: alerts by their severity on labelled recordings. Pure functions but for the
 * memory that hk_calibrate_add works in.
 *
 * The promise: where nothing has changed at most 2 x 10^-S of the blocks of HK_SEVERITY_BLOCK points have an alert of severity S
 * or more. Blocks are counted from the first score on; one with a point that lies in a label, or less than the detector's window
 * or HK_CALIBRATION_LATE points from one, says nothing of that and is left out. An alert is of the block with its change instant.
 */
#ifndef HK_CALIBRATE_H
#define HK_CALIBRATE_H

#include "daemon/cli/trial.h"

#include <stdbool.h>
#include <stdint.h>

#define HK_CALIBRATION_LATE 250 /* points: an alert may be so late, and its instant with it */
#define HK_CALIBRATION_BINS 8

/* Severities from which on alerts are told of. */
extern const double hk_calibration_from[HK_CALIBRATION_BINS];

/* Sums that can be added up. All zero is nothing. */
struct hk_calibration {
  uint64_t blocks;
  uint64_t grave[HK_CALIBRATION_BINS];          /* of them, those with an alert so grave or graver */
  struct hk_verdict worth[HK_CALIBRATION_BINS]; /* of alerts so grave or graver */
};

/* Adds one recording, judged, with so many labels. 0 or -ENOMEM. */
int hk_calibrate_add(struct hk_calibration *sum, const struct hk_outcome *o, uint32_t n_marked);

/* Share of blocks with an alert so grave that is promised not to be exceeded; 1 where nothing is promised. */
double hk_calibration_promise(double severity);

/* "holds", "breaks", or "-": nothing is promised, or there are so few blocks that not even one alert is to be expected by the
 * promise, and none came. */
const char *hk_calibration_word(const struct hk_calibration *c, uint32_t bin);

/* Prints a table of it, or its lines of CSV: detector, collection, severity from, alerts, labels hit, hit by chance, false
 * alerts, of all 1,000 points, blocks, of these with an alert, promise, observation, word. */
void hk_calibration_print(const struct hk_calibration *c, bool csv, const char *keys, const char *set);
/* Adds up the recordings of a set, judged, and prints that; of a set whose labels are windows, as a table, also what the scoring
 * of the Numenta Anomaly Benchmark (nab_score.h) makes of it. 0 or -ENOMEM. */
int hk_calibrate(bool csv, const char *keys, const struct hk_labelled *set, const struct hk_outcome *all);
#define HK_CALIBRATION_HEADER                                                                                                    \
  "detector,set,severity,alerts,labels,hits,chance,false,false_per_1000,blocks,with_alert,promised,observed,word"

#endif
