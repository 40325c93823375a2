/* The score in double, as directly as possible from MATHEMATICS.md: the oracle for every backend. Slow by design.
 *
 * Thread: one thread at a time for each work space. */
#ifndef HK_REFERENCE_H
#define HK_REFERENCE_H

#include "cpu/detector.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Work space for windows up to a given size. Owner: the caller. */
struct hk_reference;

/* A score, and how well it is determined. */
struct hk_reference_score {
  double z;     /* [0, 1] */
  double share; /* share of the present's energy in mu, [0, 1] */
  /* Relative distance of the values between which the definition chooses, as a part of the largest; 1 if there is no choice. svd:
   * singular values; ika: Ritz values of the Lanczos steps (hankel: |theta|; gram: the root of |theta|). */
  double present_gap; /* between the first and the second; 1 for present = power, which does not choose */
  double past_gap;    /* between the r-th and the next */
};

/* Returns 0 and *out, -ENOMEM, or -ELIBACC (cpu/lapack.h). */
int hk_reference_new(struct hk_reference **out, uint32_t window_max);
void hk_reference_free(struct hk_reference *r); /* NULL is allowed */

/* Scores one window pair of detector d. past, present: 2w-1 numbers each, oldest first, centred and scaled; NULL: counts as zero.
 * feedback: in: a, w numbers of unit length; out: the next a. a0: w numbers. Returns 0, or -EIO if LAPACK reports no convergence;
 * then feedback is unchanged. */
int hk_reference_score(struct hk_reference *r, const struct hk_detector *d, const double *past, const double *present,
                       const double *a0, double *feedback, struct hk_reference_score *out);

/* Writes the w singular values of the Hankel matrix of x (2w-1 numbers), largest first. Returns 0 or -EIO. */
int hk_reference_singular_values(struct hk_reference *r, const double *x, uint32_t w, double *values);

/* Writes a0 of a sensor: w numbers of unit length from its seed. */
void hk_reference_random(double *a0, uint64_t seed, uint32_t w);

#ifdef __cplusplus
}
#endif
#endif
