/* The expected results of one sensor's points, in double and without a backend: the window rules, then the score of
 * cpu/sst/reference.h, and how well the data determine it. No alerts: detectors that are compared with it have alert = off. */
#ifndef HK_TEST_ORACLE_H
#define HK_TEST_ORACLE_H

#include "cpu/detector.h"
#include "tests/backend/signals.h"

#define ORACLE_OPEN_GAP 1e-3 /* of gaps over it the scores are determined: see test_scores.c */

struct oracle_point {
  uint8_t state;
  double z; /* NaN if no score is due */
  double share;
  double ritz_gap; /* smallest relative gap among the values between which the algorithm chose: see struct hk_reference_score */
  /* smaller of: H2's first and second singular value; H1's r-th and next; each as a part of the first. With ika and
   * re-orthogonalisation ritz_gap where that is over ORACLE_OPEN_GAP. */
  double exact_gap;
};

/* Fills in s->n points. Ends the program when there is no memory. */
void oracle_run(const struct hk_detector *d, uint64_t seed, const struct series *s, struct oracle_point *out);

#endif
