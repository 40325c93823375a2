/* The last samples of a sensor, in a ring that its owner has: for what is computed of them alone. After a hole it begins anew.
 * Thread: the owner's. */
#ifndef HK_LAST_SAMPLES_H
#define HK_LAST_SAMPLES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HK_LAST_VALUE_MAX 1e30 /* of the magnitude of a sample */

/* All zero: no sample yet. */
struct hk_last_samples {
  int64_t row;    /* of the newest sample */
  uint32_t n, at; /* samples, and the place of the next one */
};

/* Takes the sample of a row, which is after all earlier rows, into a ring of `size`, 0 where there is none. None of those older
 * than `size` rows counts. Returns whether the ring is full. */
static inline bool hk_last_samples_put(struct hk_last_samples *last, double *ring, uint32_t size, int64_t row, double value)
{
  if (last->n > 0 && row - last->row > size) {
    memset(ring, 0, size * sizeof *ring);
    last->n = last->at = 0;
  }
  ring[last->at] = value;
  last->at = last->at + 1 < size ? last->at + 1 : 0;
  last->n += last->n < size;
  last->row = row;
  return last->n == size;
}

/* Whether bytes that were read are what hk_last_samples_put could have left after samples up to `newest`. room: numbers of the
 * ring's memory, size or more; those behind it are 0. */
static inline bool hk_last_samples_valid(const struct hk_last_samples *last, const double *ring, uint32_t size, uint32_t room,
                                         int64_t newest)
{
  bool good = last->n <= size && last->at < size && (last->n == size || last->at == last->n) &&
              (last->n > 0 ? last->row <= newest : last->row == 0);
  for (uint32_t i = 0; i < room && good; i++)
    good = fabs(ring[i]) <= HK_LAST_VALUE_MAX && (i < last->n || (ring[i] == 0 && !signbit(ring[i])));
  return good;
}

#endif
