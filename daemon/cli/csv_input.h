/* The options that choose what is read from a recording, the same for `feed` and `replay`. */
#ifndef HK_INPUT_H
#define HK_INPUT_H

#include "daemon/cli/csv.h"

#define HK_INPUT_COLUMNS 256 /* --column options taken */

/* For the `struct option` table of a command: the values are handed to hk_input_option. */
#define HK_INPUT_OPTIONS                                                                                                         \
  { "column", required_argument, NULL, 'c' }, { "sensor", required_argument, NULL, 's' },                                        \
  {                                                                                                                              \
    "unit", required_argument, NULL, 'u'                                                                                         \
  }

#define HK_INPUT_HELP                                                                                                            \
  "  --column NAME      take only this column; may be given again for others\n"                                                  \
  "  --sensor NAME      name of the sensor, in place of its column's\n"                                                          \
  "  --unit NAME        of epoch times: s, ms, us or ns; otherwise guessed from the first time\n"

/* Null initialiser: all zero. Owner: the caller, and it must outlive the reader. */
struct hk_input {
  struct hk_csv_config config;
  const char *columns[HK_INPUT_COLUMNS];
};

/* Takes one option. 0, or HK_EXIT_USAGE with a message. */
int hk_input_option(struct hk_input *input, char **argv, int option, const char *value);

/* Opens the one file that argv[optind] names. 0, or an exit code with a message. Where no header is that of a time column, a line
 * on standard error says what is taken as the time, and what as sensors. */
int hk_input_open(struct hk_input *input, int argc, char **argv, struct hk_csv **out);

#endif
