/* POINTS: the columns of points in a frame. */
#ifndef HK_COLUMNS_H
#define HK_COLUMNS_H

#include "proto/wire/payload.h"
#include "proto/wire/times.h"

enum hk_value_kind { HK_VALUE_F64 = 0, HK_VALUE_F32 = 1 };

/* POINTS. Columns of a read frame are unaligned: use the functions below. */
struct hk_points {
  uint64_t feed, sequence, before; /* 0 over TCP */
  uint32_t n;
  uint8_t time_kind;   /* enum hk_time_kind */
  uint8_t value_kind;  /* enum hk_value_kind */
  int64_t base;        /* ns: ONE, EVEN, STEPS */
  int64_t step;        /* ns: interval (EVEN), unit (STEPS) */
  const void *times;   /* int64_t (EACH); else NULL */
  const void *steps;   /* uint32_t (STEPS); else NULL */
  const void *values;  /* double or float, by value_kind */
  const void *handles; /* uint32_t */
};
int hk_points_write(struct hk_writer *w, uint32_t tag, const struct hk_points *p);
int hk_points_read(const struct hk_frame *f, struct hk_points *p);
/* Size of a whole frame with n points of these kinds, bytes. */
size_t hk_points_size(uint8_t time_kind, uint8_t value_kind, uint32_t n);
/* Copy a column of the points first..first+count-1. arrival: ns since 1970, for HK_TIME_ARRIVAL. */
void hk_points_handles(const struct hk_points *p, uint32_t first, uint32_t count, uint32_t *handle);
void hk_points_times(const struct hk_points *p, uint32_t first, uint32_t count, int64_t arrival, int64_t *time);
void hk_points_values(const struct hk_points *p, uint32_t first, uint32_t count, double *value);

#endif
