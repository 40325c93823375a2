/* Points of a recording whose times do not ascend, in memory and in the order of their times. Thread: the caller's. */
#ifndef HK_CSV_SORTED_H
#define HK_CSV_SORTED_H

#include <stdint.h>

struct hk_csv_point {
  int64_t time; /* ns since the epoch */
  uint32_t sensor;
  double value;
};

struct hk_csv_sorted { /* all zero: none. Owner of what it points to: this */
  struct hk_csv_point *point;
  uint64_t n, room, given; /* how many were handed out */
};

/* 0 or -ENOMEM. */
int hk_csv_sorted_put(struct hk_csv_sorted *sorted, int64_t time, uint32_t sensor, double value);
/* By time; points of one time by their sensors. */
void hk_csv_sorted_sort(struct hk_csv_sorted *sorted);
void hk_csv_sorted_free(struct hk_csv_sorted *sorted);

/* How many points fit into a quarter of the machine's memory. */
uint64_t hk_csv_sorted_most(void);

#endif
