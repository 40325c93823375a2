/* Options that choose what is read. */
#include "daemon/cli/csv_input.h"
#include "daemon/cli/options.h"

#include <stdio.h>
#include <string.h>

#define NAMES_SHOWN 8 /* of sensors, in a message */

/* "sensor,value": the headers of two columns. */
static int take_long(struct hk_input *input, char **argv, const char *value)
{
  char *comma =
      strchr(value, ',') && strlen(value) < sizeof input->long_columns ? strchr(strcpy(input->long_columns, value), ',') : NULL;
  if (!comma || comma == input->long_columns || !comma[1])
    return hk_usage(argv, "--long %s: want the headers of two columns, as in sensor,value", value);
  *comma = 0;
  input->config.long_sensor = input->long_columns;
  input->config.long_value = comma + 1;
  return 0;
}

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
  case 'T':
    input->config.format = value;
    return *value ? 0 : hk_usage(argv, "--time-format is empty");
  case 'L':
    return take_long(input, argv, value);
  case 'D':
    input->config.decimal = strcmp(value, ",") == 0 ? HK_DECIMAL_COMMA : HK_DECIMAL_POINT;
    return strcmp(value, ",") == 0 || strcmp(value, ".") == 0 ? 0 : hk_usage(argv, "--decimal %s: want . or ,", value);
  case 'P':
    input->prefix = value;
    return 0;
  case 'S':
    input->config.skip_bad = true;
    return 0;
  default:
    return HK_EXIT_USAGE;
  }
}

const char *hk_input_given(const struct hk_input *input)
{
  const struct hk_csv_config *c = &input->config;
  return c->n_columns > 0 ? "--column"
         : c->sensor      ? "--sensor"
         : c->long_sensor ? "--long"
         : c->format      ? "--time-format"
         : c->unit > 0    ? "--unit"
         : c->decimal     ? "--decimal"
         : c->skip_bad    ? "--skip-bad"
         : c->now         ? "--now"
                          : NULL;
}

/* If no header names a time, reports which column counts as the time, and which as sensors. */
static void tell_columns(char **argv, const char *path, const struct hk_csv *csv)
{
  bool named;
  const char *time = hk_csv_time(csv, &named);
  const uint32_t n = hk_csv_sensors(csv), shown = n < NAMES_SHOWN ? n : NAMES_SHOWN;
  if (named)
    return;
  fprintf(stderr, "hankel %s: %s: ", argv[0], strcmp(path, "-") == 0 ? "stdin" : path);
  if (time)
    fprintf(stderr, "no column is named time or date: the first, \"%s\", is used as the time", time);
  else
    fprintf(stderr, "there is no time column: points are taken as one second apart, from 1970-01-01T00:00:00Z");
  fprintf(stderr, "; sensor%s", n > 1 ? "s" : "");
  for (uint32_t i = 0; i < shown; i++)
    fprintf(stderr, "%s %s", i > 0 ? "," : "", hk_csv_sensor(csv, i));
  if (n > shown)
    fprintf(stderr, " and %u more", n - shown);
  fputc('\n', stderr);
}

static void csv_input_tell(void *arg, const char *text)
{
  char *const *argv = arg;
  fprintf(stderr, "hankel %s: %s\n", argv[0], text);
}

int hk_input_open(struct hk_input *input, int argc, char **argv, struct hk_recordings **out)
{
  char error[512];
  const char *path;
  if (optind == argc)
    return hk_usage(argv, "no file given (- is standard input)");
  if (input->config.long_sensor && (input->config.n_columns > 0 || input->config.sensor))
    return hk_usage(argv, "--long and %s exclude each other", input->config.sensor ? "--sensor" : "--column");
  if (input->config.format && input->config.unit > 0)
    return hk_usage(argv, "--time-format and --unit exclude each other");
  if (input->config.now && (input->config.format || input->config.unit > 0))
    return hk_usage(argv, "--now and %s exclude each other: with --now the file's times are not used",
                    input->config.format ? "--time-format" : "--unit");
  if (input->config.sensor && optind + 1 < argc)
    return hk_usage(argv, "--sensor is of one file");
  input->config.columns = input->columns;
  input->config.tell = csv_input_tell;
  input->config.arg = argv;
  if (hk_recording_open(out, argv + optind, (uint32_t)(argc - optind), &input->config, input->prefix, error, sizeof error) < 0)
    return hk_failed(argv, "%s", error);
  for (uint32_t i = 0; !input->config.now && i < hk_recording_files(*out); i++) {
    const struct hk_csv *csv = hk_recording_file(*out, i, &path);
    tell_columns(argv, path, csv);
  }
  return 0;
}
