/* Options of `feed` and `replay` that choose what is read from a recording. */
#ifndef HK_CSV_INPUT_H
#define HK_CSV_INPUT_H

#include "daemon/cli/recording.h"

#define HK_INPUT_COLUMNS 256 /* maximum number of --column options */

/* Entries for the `struct option` table of a command, which passes them to hk_input_option. */
#define HK_INPUT_OPTIONS                                                                                                         \
  { "column", required_argument, NULL, 'c' }, { "sensor", required_argument, NULL, 's' },                                        \
      { "unit", required_argument, NULL, 'u' }, { "time-format", required_argument, NULL, 'T' },                                 \
      { "long", required_argument, NULL, 'L' }, { "decimal", required_argument, NULL, 'D' },                                     \
      { "prefix", required_argument, NULL, 'P' },                                                                                \
  {                                                                                                                              \
    "skip-bad", no_argument, NULL, 'S'                                                                                           \
  }

#define HK_INPUT_HELP                                                                                                            \
  "  --column NAME      take only this column; may be repeated\n"                                                                \
  "  --sensor NAME      name of the sensor, instead of its column's\n"                                                           \
  "  --prefix NAME      name sensors NAME.COLUMN; '' keeps the columns' names for several files\n"                               \
  "  --long NAME,VALUE  one value a line: the columns of the sensor's name and of the value\n"                                   \
  "  --time-format F    format of times, as for strptime: '%d.%m.%Y %H:%M'; default: guessed\n"                                  \
  "  --unit UNIT        unit of epoch times: s, ms, us or ns; default: guessed from the first time\n"                            \
  "  --decimal SIGN     decimal sign, a point or a comma; default: guessed\n"                                                    \
  "  --skip-bad         leave out, report and count cells and lines that cannot be read\n"

/* Zero-initialise. Owner: the caller; it must outlive the reader. */
struct hk_input {
  struct hk_csv_config config;
  const char *columns[HK_INPUT_COLUMNS];
  const char *prefix;
  char long_columns[256];
};

/* Processes one option. Returns 0, or HK_EXIT_USAGE with a message. */
int hk_input_option(struct hk_input *input, char **argv, int option, const char *value);

/* One of the given options (--now included) that only a file can have, and no figures of this machine: its name, static; NULL:
 * none was given. */
const char *hk_input_given(const struct hk_input *input);

/* Opens the files argv[optind] and following. Returns 0, or an exit code with a message. Guesses about their format are reported
 * on standard error. */
int hk_input_open(struct hk_input *input, int argc, char **argv, struct hk_recordings **out);

#endif
