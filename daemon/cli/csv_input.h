/* The options that choose what is read from a recording, the same for `feed` and `replay`. */
#ifndef HK_INPUT_H
#define HK_INPUT_H

#include "daemon/cli/recording.h"

#define HK_INPUT_COLUMNS 256 /* --column options taken */

/* For the `struct option` table of a command: the values are handed to hk_input_option. */
#define HK_INPUT_OPTIONS                                                                                                         \
  { "column", required_argument, NULL, 'c' }, { "sensor", required_argument, NULL, 's' },                                        \
      { "unit", required_argument, NULL, 'u' }, { "time-format", required_argument, NULL, 'T' },                                 \
      { "long", required_argument, NULL, 'L' }, { "decimal", required_argument, NULL, 'D' },                                     \
      { "prefix", required_argument, NULL, 'P' },                                                                                \
  {                                                                                                                              \
    "skip-bad", no_argument, NULL, 'S'                                                                                           \
  }

#define HK_INPUT_HELP                                                                                                            \
  "  --column NAME      take only this column; may be given again for others\n"                                                  \
  "  --sensor NAME      name of the sensor, in place of its column's\n"                                                          \
  "  --prefix NAME      sensors are NAME.COLUMN; '' leaves the names of several files as they are\n"                             \
  "  --long NAME,VALUE  a line is one value: columns of the sensor's name and of the value\n"                                    \
  "  --time-format F    how times are written, as for strptime: '%d.%m.%Y %H:%M'; otherwise guessed\n"                           \
  "  --unit NAME        of epoch times: s, ms, us or ns; otherwise guessed from the first time\n"                                \
  "  --decimal SIGN     before fractions, a point or a comma; otherwise guessed\n"                                               \
  "  --skip-bad         cells and lines that cannot be read are told, counted and left out\n"

/* Null initialiser: all zero. Owner: the caller, and it must outlive the reader. */
struct hk_input {
  struct hk_csv_config config;
  const char *columns[HK_INPUT_COLUMNS];
  const char *prefix;
  char long_columns[256];
};

/* Takes one option. 0, or HK_EXIT_USAGE with a message. */
int hk_input_option(struct hk_input *input, char **argv, int option, const char *value);

/* Opens the files that argv[optind] and those behind it name. 0, or an exit code with a message. What was taken for what, where
 * that had to be guessed, is told on standard error. */
int hk_input_open(struct hk_input *input, int argc, char **argv, struct hk_recordings **out);

#endif
