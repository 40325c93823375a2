/* Decoding: points of a POINTS payload into the columns of a chunk. No look at anything that belongs to a sensor but its handle.
 * Thread: any. */
#ifndef HK_DECODE_H
#define HK_DECODE_H

#include "daemon/registry.h"
#include "proto/message.h"

/* Where points go, and the place of the next one. */
struct hk_columns {
  uint32_t *slot;
  int64_t *time;
  double *value;
};

struct hk_decoder {
  struct hk_handles handles;
  int64_t arrival; /* ns since the epoch: the time of points that came without one */
  int64_t latest;  /* ns: points that are later have a value that no backend takes, NaN */
};

/* Decodes points first..first+n-1. Returns how many there are in the columns now, in their order: those with a good handle.
 * *ahead: how many of them are later than `latest`. The columns have room for n, and may be written to beyond what is returned.
 */
uint32_t hk_decode(const struct hk_decoder *decoder, const struct hk_points *points, uint32_t first, uint32_t n,
                   struct hk_columns to, uint32_t *ahead);

#endif
