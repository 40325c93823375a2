/* hankel model fit: see model_fit.h. */
#include "daemon/cli/model_fit.h"
#include "cpu/duration.h"
#include "cpu/whole_file.h"
#include "daemon/cli/csv_input.h"
#include "daemon/cli/options.h"
#include "daemon/cli/pipe_fit.h"
#include "daemon/cli/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX (1ull << 28) /* of a recording: 2 GiB */
#define SPACINGS 10000

/* A recording as rows of the plan's sensors. */
struct table {
  const struct hk_model_plan *plan;
  uint32_t *sensor; /* the plan's sensor for each sensor of the recording; HK_MODEL_NONE: none */
  bool *there;      /* for each sensor of the plan: whether the recording has it */
  double *value;
  uint64_t rows, room;
  int64_t first, interval; /* ns */
};

struct model_text {
  char *text;
  size_t length;
};

/* --- the recording ------------------------------------------------------------------------------------------------------ */

/* Which column is which sensor. */
static int find_sensors(char **argv, struct table *t, const struct hk_recordings *csv)
{
  const struct hk_model_plan *p = t->plan;
  t->there = calloc(p->sensors, sizeof *t->there);
  t->sensor = calloc(hk_recording_sensors(csv) + 1, sizeof *t->sensor);
  if (!t->there || !t->sensor)
    return hk_failed(argv, "out of memory");
  for (uint32_t i = 0; i < hk_recording_sensors(csv); i++) {
    const char *name = hk_recording_sensor(csv, i);
    t->sensor[i] = hk_model_plan_find(p, name, strlen(name));
    if (t->sensor[i] != HK_MODEL_NONE)
      t->there[t->sensor[i]] = true;
  }
  return 0;
}

/* Whether a line cannot be fitted, and why: the recording must have its boundaries and at least one check. */
static bool model_fit_lacks(const struct table *t, uint32_t line, char *why, size_t size)
{
  const struct hk_model_plan *p = t->plan;
  uint32_t checks = 0;
  for (uint32_t k = 0; k < p->line[line].boundaries; k++) {
    const struct hk_model_word *name = &p->sensor[p->line[line].boundary[k]].name;
    if (t->there[p->line[line].boundary[k]])
      continue;
    snprintf(why, size, "the recording has no column %.*s, a boundary of the model", (int)name->length, name->text);
    return true;
  }
  for (uint32_t i = 0; i < p->sensors; i++)
    checks += p->sensor[i].line == line && !p->sensor[i].boundary && t->there[i];
  if (checks == 0)
    snprintf(why, size, "the recording has no column of a check of the model: there is nothing to compare it with");
  return checks == 0;
}

/* Makes room for a row, which begins without values. */
static int model_fit_make_row(char **argv, struct table *t, uint64_t row)
{
  const uint32_t sensors = t->plan->sensors;
  if (row >= VALUES_MAX / sensors)
    return hk_failed(argv, "over %llu rows: take a larger --interval, or a part of the recording", VALUES_MAX / sensors);
  if (row >= t->room) {
    const uint64_t room = row < 1024 ? 1024 : 2 * row;
    double *more = realloc(t->value, room * sensors * sizeof *more);
    if (!more)
      return hk_failed(argv, "out of memory");
    t->value = more;
    t->room = room;
  }
  for (; t->rows <= row; t->rows++)
    for (uint32_t i = 0; i < sensors; i++)
      t->value[t->rows * sensors + i] = NAN;
  return 0;
}

static int model_fit_take_row(char **argv, struct table *t, const struct hk_csv_row *from)
{
  const int64_t away = from->time - t->first + t->interval / 2;
  const int status = away < 0 ? 0 : model_fit_make_row(argv, t, (uint64_t)(away / t->interval));
  for (uint32_t i = 0; i < from->n && away >= 0 && status == 0; i++) {
    const uint32_t sensor = t->sensor[from->sensor[i]];
    double *at = sensor == HK_MODEL_NONE ? NULL : &t->value[(uint64_t)(away / t->interval) * t->plan->sensors + sensor];
    if (at && isnan(*at) && fabs(from->value[i]) <= 1e30)
      *at = from->value[i];
  }
  return status;
}

static int model_fit_compare(const void *a, const void *b)
{
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The median distance between the first lines; 0: there are none. */
static int find_interval(char **argv, struct hk_recordings *csv, struct table *t)
{
  int64_t *spacing = malloc(SPACINGS * sizeof *spacing), last = 0;
  struct hk_csv_row row;
  char error[512];
  size_t n = 0, lines = 0;
  int status = spacing ? 1 : -ENOMEM;
  while (status > 0 && n < SPACINGS && (status = hk_recording_next(csv, &row, error, sizeof error)) > 0) {
    if (lines++ > 0 && row.time > last)
      spacing[n++] = row.time - last;
    last = row.time;
  }
  if (status == -ENOMEM && !spacing)
    snprintf(error, sizeof error, "out of memory");
  if (n > 0)
    qsort(spacing, n, sizeof *spacing, model_fit_compare);
  t->interval = n > 0 ? spacing[n / 2] : 0;
  free(spacing);
  if (status < 0)
    return hk_failed(argv, "%s", error);
  return t->interval > 0 ? 0 : hk_failed(argv, "the recording has no two times");
}

/* Reads the whole recording. Opens the files again if they were read to find the interval. */
static int read_table(int argc, char **argv, struct hk_input *input, struct table *t)
{
  struct hk_recordings *csv = NULL;
  struct hk_csv_row row;
  char error[512];
  int status = 0, got = 0;
  if (t->interval == 0) {
    status = hk_input_open(input, argc, argv, &csv);
    status = status ? status : find_interval(argv, csv, t);
    hk_recording_close(csv);
    csv = NULL;
  }
  status = status ? status : hk_input_open(input, argc, argv, &csv);
  status = status ? status : find_sensors(argv, t, csv);
  bool any = false;
  while (status == 0 && (got = hk_recording_next(csv, &row, error, sizeof error)) > 0) {
    t->first = any ? t->first : row.time;
    any = true;
    status = model_fit_take_row(argv, t, &row);
  }
  if (got < 0)
    status = hk_failed(argv, "%s", error);
  hk_recording_close(csv);
  return status;
}

/* --- the report --------------------------------------------------------------------------------------------------------- */

static void print_number(const char *what, const struct hk_fit *fit, uint32_t i, const char *unseen)
{
  if (fit->seen[i])
    printf("%s: %.4f times the file's, standard error %.2g %%\n", what, fit->times[i], 100 * fit->error[i]);
  else
    printf("%s: stays as the file has it: %s\n", what, unseen);
}

static const char *share_text(double explained, char out[16])
{
  snprintf(out, 16, explained >= 0 ? "%.4f" : "none", explained);
  return out;
}

static void print_check(const struct hk_model_sensor *s, const struct hk_fit_check *before, const struct hk_fit_check *after)
{
  char was[16], is[16];
  if (before->values > 0)
    printf("%-24.*s %10.4g %10.4g   %10.4g %10.4g   %8s %8s\n", (int)s->name.length, s->name.text, before->mean, after->mean,
           before->spread, after->spread, share_text(before->explained, was), share_text(after->explained, is));
}

/* line: of the plan; its sensors are those of the fit, in the same order. */
static void print_fit(const struct table *t, uint32_t line, const struct hk_fit *fit)
{
  uint32_t k = 0;
  print_number("friction", fit, HK_FIT_FRICTION, "nothing in this recording depends on it enough (is there a flow?)");
  print_number("wave speed", fit, HK_FIT_WAVE,
               "this recording shows no waves: it is too steady, its rows are too far apart, or its noise hides them");
  printf("\n%-24s %21s   %21s   %17s\n%-24s %10s %10s   %10s %10s   %8s %8s\n", "check, in its unit:", "mean difference",
         "spread of it", "variance explained", "", "before", "after", "before", "after", "before", "after");
  for (uint32_t i = 0; i < t->plan->sensors; i++)
    if (t->plan->sensor[i].line == line) {
      if (!t->plan->sensor[i].boundary)
        print_check(&t->plan->sensor[i], &fit->before[k], &fit->after[k]);
      k++;
    }
}

/* times, error: by line; error is 0 for a number that the recording does not show. */
static int write_model(char **argv, const char *path, const struct model_text *text, uint32_t lines,
                       const double (*times)[HK_FIT_NUMBERS], const double (*error)[HK_FIT_NUMBERS])
{
  size_t n;
  char *out = hk_fit_text(text->text, text->length, times, &n);
  FILE *f = out ? fopen(path, "wx") : NULL;
  int status = !out ? hk_failed(argv, "out of memory") : !f ? hk_failed(argv, "%s: %s", path, strerror(errno)) : 0;
  if (status == 0) {
    for (uint32_t i = 0; i < lines; i++)
      fprintf(f, "# hankel model fit: friction times %.6g (standard error %.2g %%), wave speed times %.6g (%.2g %%)\n",
              times[i][0], 100 * error[i][0], times[i][1], 100 * error[i][1]);
    const bool whole = fwrite(out, 1, n, f) == n;
    if (fclose(f) != 0 || !whole)
      status = hk_failed(argv, "%s: %s", path, strerror(errno));
  }
  free(out);
  return status;
}

/* --- the command -------------------------------------------------------------------------------------------------------- */

static void model_fit_show(void *arg, double share)
{
  hk_progress_show(arg, share, 0);
}

/* The rows of one line's sensors. NULL: no memory. */
static double *values_of(const struct table *t, uint32_t line, uint32_t *sensors)
{
  const uint32_t all = t->plan->sensors;
  *sensors = 0;
  for (uint32_t i = 0; i < all; i++)
    *sensors += t->plan->sensor[i].line == line;
  double *value = malloc((t->rows * *sensors + 1) * sizeof *value), *to = value;
  for (uint64_t row = 0; row < t->rows && value; row++)
    for (uint32_t i = 0; i < all; i++)
      if (t->plan->sensor[i].line == line)
        *to++ = t->value[row * all + i];
  return value;
}

/* Fits a line, and reports the result. Returns 0, even if the recording shows neither number; or an errno with a message. */
static int fit_line(const struct table *t, const struct model_text *text, uint32_t line, struct hk_fit *fit, char *error,
                    size_t size)
{
  struct hk_fit_rows rows = { .rows = t->rows, .interval = (double)t->interval / 1e9 };
  double *value = values_of(t, line, &rows.sensors);
  char *own = t->plan->lines > 1 ? hk_fit_line(text->text, text->length, line) : NULL;
  struct hk_progress_line progress = hk_progress_start(true);
  int status = value && (own || t->plan->lines == 1) ? 0 : -ENOMEM;
  rows.value = value;
  if (status == 0)
    status =
        hk_fit_run(fit, own ? own : text->text, own ? strlen(own) : text->length, &rows, model_fit_show, &progress, error, size);
  else
    snprintf(error, size, "out of memory");
  hk_progress_end(&progress);
  free(own);
  free(value);
  return status;
}

/* Fits all lines for which the recording suffices. If the file has one line, an error of that line is the command's. */
static int fit_table(char **argv, const struct table *t, const struct model_text *text, const char *output)
{
  const uint32_t lines = t->plan->lines;
  double(*times)[HK_FIT_NUMBERS] = calloc(lines, sizeof *times), (*errors)[HK_FIT_NUMBERS] = calloc(lines, sizeof *errors);
  bool seen = false;
  int status = times && errors ? 0 : hk_failed(argv, "out of memory");
  for (uint32_t i = 0; i < lines && status == 0; i++) {
    const struct hk_model_word *name = &t->plan->line[i].name;
    struct hk_fit fit = { 0 };
    char error[512];
    times[i][0] = times[i][1] = 1;
    const bool failed = model_fit_lacks(t, i, error, sizeof error) || fit_line(t, text, i, &fit, error, sizeof error) != 0;
    if (failed && lines == 1) {
      status = hk_failed(argv, "%s", error);
      break;
    }
    if (i == 0)
      printf("recording: %" PRIu64 " rows of %.6g s\n", t->rows, (double)t->interval / 1e9);
    if (lines > 1)
      printf("\nline %.*s\n", (int)name->length, name->text);
    if (failed) {
      printf("stays as the file has it: %s\n", error);
    } else {
      print_fit(t, i, &fit);
      for (uint32_t k = 0; k < HK_FIT_NUMBERS; k++) {
        times[i][k] = fit.times[k];
        errors[i][k] = fit.seen[k] ? fit.error[k] : 0;
        seen |= fit.seen[k];
      }
    }
    hk_fit_close(&fit);
  }
  if (status == 0 && !seen)
    status = hk_failed(argv, "the recording shows neither friction nor wave speed%s", output ? "; nothing is written" : "");
  else if (status == 0 && output)
    status =
        write_model(argv, output, text, lines, (const double(*)[HK_FIT_NUMBERS])times, (const double(*)[HK_FIT_NUMBERS])errors);
  free(times);
  free(errors);
  return hk_finish_output(argv, status);
}

static int model_fit_fit(int argc, char **argv, struct hk_input *input, struct table *t, const char *output)
{
  const char *path = argv[optind + 1];
  struct model_text text = { 0 };
  char error[1024];
  if (hk_model_plan_read(&t->plan, path, error, sizeof error) != 0)
    return hk_failed(argv, "%s", error);
  int status = hk_whole_file_read(path, HK_MODEL_BYTES, &text.text, &text.length);
  if (status != 0)
    status = hk_failed(argv, "%s: %s", path, strerror(-status));
  else if (t->plan->heat)
    status =
        hk_failed(argv, "%s: it has a heat line, and lines of pipes can be fitted; a [field] learns its loss by itself", path);
  else if (t->plan->matrix)
    status = hk_failed(argv, "%s: it is given as matrices, which have neither friction nor wave speed to fit", path);
  optind += 2;
  status = status ? status : read_table(argc, argv, input, t);
  status = status ? status : fit_table(argv, t, &text, output);
  free(text.text);
  free(t->sensor);
  free(t->there);
  free(t->value);
  hk_model_plan_release(t->plan);
  return status;
}

int hk_model_fit(int argc, char **argv)
{
  static const struct option options[] = { { "output", required_argument, NULL, 'o' },
                                           { "interval", required_argument, NULL, 'i' },
                                           HK_INPUT_OPTIONS,
                                           { "help", no_argument, NULL, 'h' },
                                           { 0 } };
  struct hk_input input = { 0 };
  struct table table = { 0 };
  const char *output = NULL;
  int option, status = 0;
  while (status == 0 && (option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    if (option == HK_OPTION_HELP) {
      fputs(HK_MODEL_FIT_HELP, stdout);
      return hk_finish_output(argv, HK_EXIT_DONE);
    }
    if (option == 'o')
      output = optarg;
    else if (option == 'i' && (hk_duration_parse(optarg, &table.interval) != 0 || table.interval < 1000000))
      status = hk_usage(argv, "--interval %s: not a duration such as 500ms or 10s", optarg);
    else if (option != 'i')
      status = option == HK_OPTION_WRONG ? HK_EXIT_USAGE : hk_input_option(&input, argv, option, optarg);
  }
  if (status != 0)
    return status;
  if (argc - optind < 3)
    return hk_usage(argv, "want fit FILE.model RECORDING...");
  return model_fit_fit(argc, argv, &input, &table, output);
}
