/* Sorts the points of a recording by time, in memory. Thread: the caller's. */
#ifndef HK_CSV_SORTED_H
#define HK_CSV_SORTED_H

#include <stdint.h>

struct hk_csv_point {
  int64_t time; /* ns since the epoch */
  uint32_t sensor;
  double value;
};

struct hk_csv_sorted { /* zero-initialise; owns what it points to */
  struct hk_csv_point *point;
  uint64_t n, room, given; /* given: number of points returned */
};

/* Adds a point. Returns 0 or -ENOMEM. */
int hk_csv_sorted_put(struct hk_csv_sorted *sorted, int64_t time, uint32_t sensor, double value);
/* Sorts by time; points of the same time by sensor. */
void hk_csv_sorted_sort(struct hk_csv_sorted *sorted);
void hk_csv_sorted_free(struct hk_csv_sorted *sorted);

/* Number of points that fit into a quarter of the machine's memory. */
uint64_t hk_csv_sorted_most(void);

#endif
