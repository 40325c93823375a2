/* Options that choose what is read. */
#include "daemon/cli/csv_input.h"
#include "daemon/cli/options.h"

#include <stdio.h>
#include <string.h>

#define NAMES_SHOWN 8 /* of sensors, in a message */

int hk_input_option(struct hk_input *input, char **argv, int option, const char *value)
{
  static const char *const units[] = { "ns", "us", "ms", "s", NULL };
  static const int64_t unit_ns[] = { 1, 1000, 1000000, 1000000000 };
  int unit, code;
  switch (option) {
  case 'c':
    if (input->config.n_columns == HK_INPUT_COLUMNS)
      return hk_usage(argv, "--column is given more than %d times", HK_INPUT_COLUMNS);
    input->columns[input->config.n_columns++] = value;
    return 0;
  case 's':
    input->config.sensor = value;
    return *value ? 0 : hk_usage(argv, "--sensor is empty");
  case 'u':
    if ((code = hk_option_word(argv, "--unit", value, units, &unit)) == 0)
      input->config.unit = unit_ns[unit];
    return code;
  default:
    return HK_EXIT_USAGE;
  }
}

/* Where no header says that it is of a time, tells what is taken as the time, and what as sensors. */
static void tell_columns(char **argv, const char *path, const struct hk_csv *csv)
{
  bool named;
  const char *time = hk_csv_time(csv, &named);
  const uint32_t n = hk_csv_sensors(csv), shown = n < NAMES_SHOWN ? n : NAMES_SHOWN;
  if (named)
    return;
  fprintf(stderr, "hankel %s: %s: ", argv[0], strcmp(path, "-") == 0 ? "stdin" : path);
  if (time)
    fprintf(stderr, "no column is named as a time: the first, \"%s\", is taken as it", time);
  else
    fprintf(stderr, "there is no time column: points are taken as one second apart, from 1970-01-01T00:00:00Z");
  fprintf(stderr, "; sensor%s", n > 1 ? "s" : "");
  for (uint32_t i = 0; i < shown; i++)
    fprintf(stderr, "%s %s", i > 0 ? "," : "", hk_csv_sensor(csv, i));
  if (n > shown)
    fprintf(stderr, " and %u more", n - shown);
  fputc('\n', stderr);
}

int hk_input_open(struct hk_input *input, int argc, char **argv, struct hk_csv **out)
{
  char error[512];
  if (optind + 1 != argc)
    return hk_usage(argv, optind == argc ? "no file given (- is standard input)" : "more than one file given");
  input->config.path = argv[optind];
  input->config.columns = input->columns;
  if (hk_csv_open(out, &input->config, error, sizeof error) < 0)
    return hk_failed(argv, "%s", error);
  if (!input->config.now)
    tell_columns(argv, input->config.path, *out);
  return 0;
}
