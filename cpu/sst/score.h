/* Scores windows on the CPU, in groups of windows of one detector. MATHEMATICS.md has the definitions.
 *
 * Several sensors are scored together, so that their small eigenproblems are solved side by side in the lanes of vector
 * registers. The result of a task does not depend on the other tasks of its group, nor on their number. */
#ifndef HK_SCORE_H
#define HK_SCORE_H

#include "cpu/sst/task.h"

#include <stddef.h>

/* Work space of one thread, for any of the given detectors. Owner: the thread. */
struct hk_scorer;

/* Returns 0 and *out, or -ENOMEM. Allocates all memory of the scorer. */
int hk_scorer_new(struct hk_scorer **out, const struct hk_detector *detectors, size_t n_detectors);
void hk_scorer_free(struct hk_scorer *scorer); /* NULL is allowed */

/* Scores n <= HK_GROUP tasks of detector d. Cannot fail: if LAPACK reports no convergence, z is the result of the Krylov
 * iteration. */
void hk_score(struct hk_scorer *scorer, const struct hk_detector *d, struct hk_task *task, size_t n);

/* Sets a feedback vector to a0, the sensor's normalised random vector. */
void hk_feedback_reset(float *feedback, uint64_t seed, uint32_t window);

#endif
