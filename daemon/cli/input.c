/* Options that choose what is read. */
#include "daemon/cli/input.h"
#include "daemon/cli/options.h"

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

int hk_input_open(struct hk_input *input, int argc, char **argv, struct hk_csv **out)
{
  char error[512];
  if (optind + 1 != argc)
    return hk_usage(argv, optind == argc ? "no file given (- is standard input)" : "more than one file given");
  input->config.path = argv[optind];
  input->config.columns = input->columns;
  return hk_csv_open(out, &input->config, error, sizeof error) < 0 ? hk_failed(argv, "%s", error) : 0;
}
