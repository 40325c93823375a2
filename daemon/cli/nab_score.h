/* The scoring of the Numenta Anomaly Benchmark (A. Lavin and S. Ahmad, Evaluating Real-Time Anomaly Detection Algorithms, 2015),
 * of alerts on recordings whose labels are windows.
 *
 * An alert counts at the point that it was raised on. In a window it is worth its weight at the window's beginning and almost
 * nothing at its end, along 2/(1 + e^(5 y)) - 1 with y from -1 to 0; of several the best one counts. Behind a window it costs
 * along the same curve, y in windows, up to the whole weight of a false alert from 3 on and before the first window. A window
 * without an alert costs its weight. Nothing counts in the first 15 % of a recording, 750 points at most. One threshold for all
 * recordings, of the score that an alert was raised with, is chosen as the one that is worth most. 0 is what no alert at all is
 * worth, 100 one at the beginning of each window and no other; many false alerts are worth less than none. */
#ifndef HK_NAB_SCORE_H
#define HK_NAB_SCORE_H

#include "daemon/cli/trial.h"

enum hk_nab_profile { HK_NAB_STANDARD, HK_NAB_FEW_FALSE, HK_NAB_FEW_MISSED, HK_NAB_PROFILES };

struct hk_nab_result {
  double score;     /* at the threshold that is worth most, 0..100 */
  double threshold; /* that one: alerts raised with so much or more; above 1: none */
  double as_is;     /* of all alerts, as the detector raised them; at most 100 */
};

/* Of all recordings of a set, judged. 0 or -ENOMEM. */
int hk_nab_score(const struct hk_labelled *set, const struct hk_outcome *all, struct hk_nab_result *out);

#endif
