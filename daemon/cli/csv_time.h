/* How the times of a recording are written, and which way is most likely. Pure functions and small structs. */
#ifndef HK_CSV_TIME_H
#define HK_CSV_TIME_H

#include "daemon/cli/csv_date.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_CSV_CELL_SHOWN 48

/* Of one file. All zero but for what the caller asks for: nothing is known yet. */
struct hk_csv_times {
  const char *format; /* of strptime; NULL: guessed. Owner: the caller */
  int64_t unit;       /* of epoch numbers, ns; 0: guessed from the first */
  bool known;         /* `order` was chosen */
  enum hk_date_order order;
};

/* What the times of a file allow. All zero: none was seen. */
struct hk_csv_votes {
  uint64_t times, fit[HK_DATE_ORDERS]; /* dates that are neither ISO nor numbers, and of them those that this order fits */
  bool differ;                         /* day first and month first give different times */
  uint64_t line;                       /* where `shown` stands */
  char shown[HK_CSV_CELL_SHOWN];       /* the first */
};

/* Reads a time: by the format, as ISO 8601, as a number since 1970, or as a date in the order that is known. 0, -EINVAL, -ERANGE,
 * or -EAGAIN: it is a date, but the order is not known. */
int hk_csv_time_read(struct hk_csv_times *times, const char *cell, int64_t *ns);

/* Counts what a cell allows. False: it is no time in any way. */
bool hk_csv_time_vote(struct hk_csv_votes *votes, struct hk_csv_times *times, const char *cell, uint64_t line);

/* Chooses the order that fits most. True, or false where day first and month first both fit and differ. */
bool hk_csv_time_choose(const struct hk_csv_votes *votes, struct hk_csv_times *times);

/* Whether a cell looks like a date (not a number, which may be a time as well). */
bool hk_csv_time_is_date(const char *cell);

#endif
