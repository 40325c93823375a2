/* Scoring on the CPU: a group of windows of one detector at a time. MATHEMATICS.md has the definitions.
 *
 * Several sensors are scored together so that their small eigenproblems run side by side in the lanes of vector registers.
 * A task's result does not depend on which others are in its group, nor on how many. */
#ifndef HK_SCORE_H
#define HK_SCORE_H

#include "cpu/rules/window.h"

#include <stddef.h>

/* Most tasks of one group. */
#define HK_GROUP 16

/* One window to score. The pointers are the sensor's. */
struct hk_task {
  const struct hk_window *window; /* in */
  const float *ring;              /* in: hk_detector_span() samples */
  float *feedback;                /* in and out: w numbers */
  float z;                        /* out: the score, [0, 1] */
  float share;                    /* out: share of the present's energy held by mu, [0, 1] */
};

/* Work space of one thread, for any of the given detectors. Owner: the thread. */
struct hk_scorer;

/* 0 and *out, or -ENOMEM. Nothing is allocated after this. */
int hk_scorer_new(struct hk_scorer **out, const struct hk_detector *detectors, size_t n_detectors);
void hk_scorer_free(struct hk_scorer *scorer); /* NULL is allowed */

/* Scores n <= HK_GROUP tasks of detector d. Cannot fail: where LAPACK reports no convergence, z is what the Krylov iteration
 * has reached. */
void hk_score(struct hk_scorer *scorer, const struct hk_detector *d, struct hk_task *task, size_t n);

/* Sets a feedback vector to a0, the sensor's normalised random vector. */
void hk_feedback_reset(float *feedback, uint64_t seed, uint32_t window);

/* Name of the instruction set that was chosen: "portable", "avx2", "avx512". HANKELD_KERNELS in the environment names a
 * lesser one (for tests). Decided once, at the first call. */
const char *hk_kernels_name(void);

#endif
