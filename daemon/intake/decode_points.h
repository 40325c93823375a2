/* Decodes the points of a POINTS payload into the columns of a chunk. Of a sensor, only the handle is used. Thread: any. */
#ifndef HK_DECODE_POINTS_H
#define HK_DECODE_POINTS_H

#include "daemon/sensors/registry.h"
#include "proto/wire/columns.h"
#include "proto/wire/message.h"

/* The destination of points, and the place of the next one. */
struct hk_columns {
  uint32_t *slot;
  int64_t *time;
  double *value;
};

struct hk_decoder {
  struct hk_handles handles;
  int64_t arrival; /* ns since the epoch: the time of points without one */
  int64_t latest;  /* ns: later points get a value that every backend rejects, NaN */
};

/* The result. */
struct hk_decoded {
  uint32_t n;     /* points with a valid handle, now in the columns, in order */
  uint32_t ahead; /* how many of these are later than `latest` */
  uint32_t slot;  /* handle of the first of those, and its time */
  int64_t time;
};

/* Decodes points first..first+n-1. The columns have room for n, and may be written beyond the returned number. */
struct hk_decoded hk_decode(const struct hk_decoder *decoder, const struct hk_points *points, uint32_t first, uint32_t n,
                            struct hk_columns to);

#endif
