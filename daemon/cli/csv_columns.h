/* Assigns the columns of a recording to times and sensors. Thread: the caller's. */
#ifndef HK_CSV_COLUMNS_H
#define HK_CSV_COLUMNS_H

#include "daemon/cli/csv_config.h"

#define HK_NO_COLUMN UINT32_MAX

/* Zero-initialise. Owns what it points to; see hk_csv_columns_free. */
struct hk_csv_columns {
  char *text;     /* the header, cut into cells */
  char **header;  /* its cells; repeated ones have a number appended */
  uint32_t n;     /* number of cells */
  uint32_t time;  /* column of times or dates; HK_NO_COLUMN: none */
  uint32_t clock; /* separate column of the time of day; HK_NO_COLUMN: none */
  bool time_named;
  uint32_t sensors;   /* number of columns that are sensors; 1 for a long recording: the values */
  uint32_t *column;   /* of each sensor */
  char **name;        /* of each sensor */
  uint32_t named;     /* long recordings: column of the names; HK_NO_COLUMN: the recording is not long */
  char repeated[128]; /* repeated names; "": none */
};

/* Parses a header. Returns 0, or a negative errno with a message. */
int hk_csv_columns_make(struct hk_csv_columns *out, const struct hk_csv_config *config, const struct hk_csv_lines *lines,
                        uint64_t line, const char *header, char separator, char *error, size_t size);
/* Makes the one sensor of bare numbers, named as config says, else after the file. Returns likewise. */
int hk_csv_columns_bare(struct hk_csv_columns *out, const struct hk_csv_config *config, const struct hk_csv_lines *lines,
                        uint64_t line, char *error, size_t size);
/* Removes the sensors with left_out[sensor], which must not be all. */
void hk_csv_columns_leave(struct hk_csv_columns *columns, const bool *left_out);
/* Checks the columns once the columns of text are known. Returns 0, or -EINVAL with a message. */
int hk_csv_columns_check(const struct hk_csv_columns *columns, const struct hk_csv_config *config,
                         const struct hk_csv_lines *lines, uint64_t line, char *error, size_t size);
void hk_csv_columns_free(struct hk_csv_columns *columns);

#endif
