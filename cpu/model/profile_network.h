/* What the checks of a line or network depart by, and hypotheses about it (profile.h). Thread: the caller's. */
#ifndef HK_PROFILE_NETWORK_H
#define HK_PROFILE_NETWORK_H

#include "cpu/model/profile.h"

#include <math.h>

#define HK_DEPARTURES_NEARLY                                                                                                     \
  4.0                            /* by which sum of squares an explanation may be worse than the best, in squares of the noise   \
                                  */
#define HK_DEPARTURES_NOISE 0.25 /* least noise of a departure, c */

struct hk_departures {
  uint32_t n;
  const struct hk_model_sensor **is;
  uint32_t *sensor;  /* of the plan */
  double *d, *c, *g; /* d: in c; g: of a hypothesis, likewise */
  double sum;        /* of squares of d */
  double largest;
};

/* The square of the noise if the best hypothesis explains this share. */
static inline double hk_departures_noise(const struct hk_departures *of, double share)
{
  const double rest = (1 - share) * of->sum, free = of->n > 2 ? of->n - 2 : 1;
  return fmax(HK_DEPARTURES_NOISE * HK_DEPARTURES_NOISE, rest / free);
}

/* The share of the departures that a hypothesis explains, by its g . d and g . g, and its size. */
static inline double hk_departures_share(const struct hk_departures *of, double with, double own, double *size)
{
  *size = own > 0 ? with / own : 0;
  return own > 0 && isfinite(*size) ? with * with / (own * of->sum) : 0;
}

/* Of a network: considers boundaries that read too much or too little, and leaks at all nodes; p->cause is the best of the checks
 * alone. False: no memory. */
bool hk_departures_network(struct hk_profile *p, const struct hk_model *model, const struct hk_departures *of);

#endif
