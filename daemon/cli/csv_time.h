/* Parses the times of a recording, and chooses their most likely format. Pure functions and small structs. */
#ifndef HK_CSV_TIME_H
#define HK_CSV_TIME_H

#include "daemon/cli/csv_date.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_CSV_CELL_SHOWN 48

/* Format of the times of a file. Zero-initialise, except for what the user has given. */
struct hk_csv_times {
  const char *format; /* strptime format; NULL: guessed. Owner: the caller */
  int64_t unit;       /* unit of epoch numbers, ns; 0: guessed from the first */
  bool known;         /* `order` was chosen */
  bool numbers;       /* a time was an epoch number */
  enum hk_date_order order;
};

/* Formats that fit the times of a file. Zero-initialise. */
struct hk_csv_votes {
  uint64_t times, fit[HK_DATE_ORDERS]; /* dates that are neither ISO 8601 nor numbers; of them, those that fit each order */
  bool differ;                         /* day first and month first give different times */
  uint64_t line;                       /* line of `shown` */
  bool fits[HK_DATE_ORDERS];           /* the last cell as a time, by each order: whether it is one, */
  int64_t ns[HK_DATE_ORDERS];          /* and which; what is ISO 8601 or a number is the same by all */
  char shown[HK_CSV_CELL_SHOWN];       /* the first such date */
};

/* Parses a time: by the format, as ISO 8601, as an epoch number, or as a date in the chosen order. Returns 0, -EINVAL, -ERANGE,
 * or -EAGAIN for a date if no order was chosen. */
int hk_csv_time_read(struct hk_csv_times *times, const char *cell, int64_t *ns);

/* Counts the formats that fit a cell, and reads it by each. False: none does. */
bool hk_csv_time_vote(struct hk_csv_votes *votes, struct hk_csv_times *times, const char *cell, uint64_t line);

/* Chooses the order that fits most dates. Returns false if day first and month first both fit and give different times. */
bool hk_csv_time_choose(const struct hk_csv_votes *votes, struct hk_csv_times *times);

/* Whether a cell looks like a date; false for numbers, which may be times, too. */
bool hk_csv_time_is_date(const char *cell);

#endif
