/* Which columns of a recording are times and which are sensors. Thread: the caller's. */
#ifndef HK_CSV_COLUMNS_H
#define HK_CSV_COLUMNS_H

#include "daemon/cli/csv_config.h"

#define HK_NO_COLUMN UINT32_MAX

/* All zero: none. Owner of what it points to: this; see hk_csv_columns_free. */
struct hk_csv_columns {
  char *text;     /* the header, cut into cells */
  char **header;  /* its cells; where one stood twice, it has a number behind it */
  uint32_t n;     /* of them */
  uint32_t time;  /* column of times, or of dates; HK_NO_COLUMN: none */
  uint32_t clock; /* column of the time of day, where that stands apart; HK_NO_COLUMN: it does not */
  bool time_named;
  uint32_t sensors;   /* columns that are sensors; of a long recording one, that of values */
  uint32_t *column;   /* of each sensor */
  char **name;        /* of each sensor */
  uint32_t named;     /* long recordings: column of the names; HK_NO_COLUMN: the recording is not long */
  char repeated[128]; /* names that stood twice; "" none */
};

/* Takes a header apart. 0, or a negative errno with a message. */
int hk_csv_columns_make(struct hk_csv_columns *out, const struct hk_csv_config *config, const struct hk_csv_lines *lines,
                        uint64_t line, const char *header, char separator, char *error, size_t size);
/* The one sensor of bare numbers, named after the file unless config says how. Likewise. */
int hk_csv_columns_bare(struct hk_csv_columns *out, const struct hk_csv_config *config, const struct hk_csv_lines *lines,
                        uint64_t line, char *error, size_t size);
/* Takes out sensors of which left_out[sensor]; at least one stays. */
void hk_csv_columns_leave(struct hk_csv_columns *columns, const bool *left_out);
/* What must hold once it is known which columns are text. 0, or -EINVAL with a message. */
int hk_csv_columns_check(const struct hk_csv_columns *columns, const struct hk_csv_config *config,
                         const struct hk_csv_lines *lines, uint64_t line, char *error, size_t size);
void hk_csv_columns_free(struct hk_csv_columns *columns);

#endif
