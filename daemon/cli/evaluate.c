/* hankel evaluate: detectors over labelled recordings, and what their alerts are worth. The recordings of a collection are scored
 * and judged (trial.h), and told in a table, one for each detector, and in plots (svg_sheet.h), one sheet for each collection. */
#include "cpu/backend/warmup.h"
#include "cpu/detectors.h"
#include "daemon/cli/backend_option.h"
#include "daemon/cli/calibrate.h"
#include "daemon/cli/format.h"
#include "daemon/cli/labelled_cut.h"
#include "daemon/cli/options.h"
#include "daemon/cli/svg_sheet.h"
#include "daemon/cli/trial.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DETECTORS_MAX 256
#define TUNED_MAX 8
#define TRIALS_MAX 4096

static const char help_text[] =
    "usage: hankel evaluate [OPTION...] FOLDER\n\n"
    "Runs detectors over labelled recordings and judges their alerts: labels hit, labels that as many alerts at\n"
    "random instants would hit, false alerts, also per 1,000 points, the delay in points (median), and, if\n"
    "labels are change points, the covering (1: all segments are exact).\n\n"
    "FOLDER holds any of these, each of them a collection:\n"
    "  nab/    CSV files, and windows.json: {\"FILE.csv\": [[\"FIRST TIME\", \"LAST TIME\"], ...], ...}\n"
    "  tssb/   files NAME.txt of plain numbers, and desc.txt with lines NAME,WINDOW,CHANGE,CHANGE,...\n"
    "  skab/   CSV files with a column changepoint that is 1 at a change\n\n"
    "  --detector KEYS    parameters, such as algorithm=graph,window=20; may be repeated for another table;\n"
    "                     default: graph and novelty, as in hankel replay\n"
    "  --group KEYS       keys of a [group NAME] section: sensors of a file are one machine; files of one sensor\n"
    "                     are left out. An alert hits within five shortest parts\n"
    "  --given-windows    use a collection's window for a recording (tssb has them), not a window key\n"
    "  --backend NAME     auto (default), cpu, cuda or reference\n"
    "  --tune KEY=V|V...  search these values, and all combinations with other --tune, on half of the files of\n"
    "                     each collection, and judge the best of them on the other half\n"
    "  --calibrate        also judge alerts by their severity, and whether severity keeps its promise; for nab\n"
    "                     also by that benchmark's scoring, with the detector's threshold and with the best one\n"
    "  --starts N         cut recordings into pieces of N points, each of them a sensor that begins there\n"
    "  --brief            only the totals of each collection\n"
    "  --plots FOLDER     also write nab.svg, tssb.svg and skab.svg there: series, labels, scores and alerts\n"
    "  --no-series        plots without the series, for recordings that may not be published\n"
    "  --format NAME      table (default) or csv\n\n"
    "examples:\n"
    "  hankel evaluate --detector algorithm=graph --given-windows recordings/\n"
    "  hankel evaluate --detector algorithm=ika --detector algorithm=graph --plots . recordings/\n"
    "  hankel evaluate --detector algorithm=shift --tune 'alert=0.3|0.4|0.5' --tune 'window=10|20|40' recordings/\n"
    "  hankel evaluate --brief --detector window=48 --detector window=96 recordings/\n"
    "  hankel evaluate --brief --starts 287 --detector provisional=yes recordings/\n";

enum format { FORMAT_TABLE, FORMAT_CSV };

struct evaluation {
  struct hk_trial trial;
  const char *folder;
  const char *detectors[DETECTORS_MAX];
  bool group[DETECTORS_MAX]; /* these keys are of a group */
  uint32_t n_detectors;
  bool grouped; /* those in hand are */
  const char *tuned[TUNED_MAX];
  uint32_t n_tuned;
  const char *plots;      /* folder for them, or NULL */
  struct hk_sheet *sheet; /* that of the set in hand, or NULL, */
  uint32_t strip;         /* and the place of the detector there */
  int format;
  uint64_t starts; /* points of the pieces that recordings are cut into; 0: they are not */
  bool brief, no_series, calibrate;
};

static int evaluate_ascending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void evaluate_print_header(const struct evaluation *e, const char *keys)
{
  if (e->format == FORMAT_TABLE)
    printf("%s%s: %s%s\n\n%-44s %8s %7s %7s %5s %7s %6s %10s %6s %9s\n", "\n", e->grouped ? "group" : "detector",
           *keys ? keys : "default", e->trial.given_windows && !e->grouped ? ", windows as given" : "", "recording", "points",
           "labels", "alerts", "hits", "chance", "false", "false/1000", "delay", "covering");
}

/* One line; delays are put in order. */
static void print_row(const struct evaluation *e, const char *keys, const char *set, const char *name, const struct hk_verdict *v,
                      double *delay)
{
  char middle[32] = "", covering[32] = "", each[32] = "";
  if (v->hits > 0) {
    qsort(delay, v->hits, sizeof *delay, evaluate_ascending);
    snprintf(middle, sizeof middle, "%.0f", (delay[v->hits / 2] + delay[(v->hits - 1) / 2]) / 2);
  }
  if (v->covered > 0)
    snprintf(covering, sizeof covering, "%.3f", v->covering / (double)v->covered);
  if (v->points > 0)
    snprintf(each, sizeof each, "%.3f", 1000.0 * (double)v->misplaced / (double)v->points);
  if (e->format == FORMAT_CSV && e->calibrate) /* one table a file */
    return;
  if (e->format == FORMAT_CSV) {
    hk_print_csv_string(stdout, keys);
    printf(",%s,", set);
    hk_print_csv_string(stdout, name);
    printf(",%llu,%llu,%llu,%llu,%.2f,%llu,%s,%s,%s\n", (unsigned long long)v->points, (unsigned long long)v->labels,
           (unsigned long long)v->alerts, (unsigned long long)v->hits, v->chance, (unsigned long long)v->misplaced, each, middle,
           covering);
    return;
  }
  printf("%-44s %8llu %7llu %7llu %5llu %7.1f %6llu %10s %6s %9s\n", name, (unsigned long long)v->points,
         (unsigned long long)v->labels, (unsigned long long)v->alerts, (unsigned long long)v->hits, v->chance,
         (unsigned long long)v->misplaced, *each ? each : "-", *middle ? middle : "-", *covering ? covering : "-");
}

/* Joins the sensors of each file into one recording with the alerts of all, as an operator of the machine would see them. */
static bool evaluate_print_together(const struct evaluation *e, const char *keys, const struct hk_labelled *set,
                                    struct hk_outcome *all)
{
  struct hk_verdict sum = { 0 };
  char title[64];
  uint32_t most = 0;
  for (uint32_t i = 0; i < set->n; i++)
    most += all[i].n_found + set->recording[i].n_labels;
  double *delay = calloc(most + 1, sizeof *delay);
  struct hk_found *found = calloc(most + 1, sizeof *found);
  const bool fine = delay && found;
  for (uint32_t file = 0; file < set->n_files && fine; file++) {
    struct hk_outcome one = { 0 };
    const struct hk_recording *r = NULL;
    for (uint32_t i = 0; i < set->n; i++) {
      if (set->recording[i].file != file)
        continue;
      if (!r) {
        r = &set->recording[i];
        one = all[i];
        one.n_found = 0;
        one.found = found;
        one.delay = delay + sum.hits;
      }
      for (uint32_t j = 0; j < all[i].n_found; j++)
        found[one.n_found++] = all[i].found[j];
    }
    if (!r)
      continue;
    hk_trial_judge(set, r, &one);
    one.verdict.covered = 0; /* the alerts are in no order */
    hk_verdict_add(&sum, &one.verdict);
  }
  snprintf(title, sizeof title, "%s: any sensor of the rig", set->name);
  if (fine)
    print_row(e, keys, set->name, title, &sum, delay);
  free(delay);
  free(found);
  return fine;
}

/* Adds what a detector made of a set to the set's sheet. */
static void plot(const struct evaluation *e, const struct hk_labelled *set, const struct hk_outcome *all)
{
  for (uint32_t i = 0; i < set->n; i++) {
    const struct hk_outcome *o = &all[i];
    if (e->strip == 0)
      hk_sheet_series(e->sheet, i, set->recording[i].name, e->no_series ? NULL : o->value, o->points, o->marked,
                      set->recording[i].n_labels);
    hk_sheet_score(e->sheet, i, e->strip, o->score, o->points, o->found, o->n_found);
  }
}

/* One detector on one set: rows for its recordings, unless only the sum is wanted, and that by the name `title`. 0 or an exit
 * code. */
static int evaluate(const struct evaluation *e, const char *keys, const struct hk_labelled *sensors, const char *title, bool rows,
                    struct hk_verdict *out)
{
  struct hk_labelled machines = { 0 };
  const struct hk_labelled *set = e->grouped ? &machines : sensors;
  struct hk_outcome *all = calloc(sensors->n + 1, sizeof *all);
  int code = 0;
  if (!all || (e->grouped && hk_trial_machines(sensors, &machines) < 0))
    code = hk_failed(e->trial.argv, "out of memory");
  else
    code = e->grouped ? hk_trial_group(&e->trial, sensors, keys, all) : hk_trial_score(&e->trial, sensors, keys, all);
  struct hk_verdict sum = { 0 };
  double *delay = NULL;
  for (uint32_t i = 0; i < set->n && code == 0; i++) {
    hk_trial_judge(set, &set->recording[i], &all[i]);
    double *more = realloc(delay, (sum.hits + all[i].verdict.hits + 1) * sizeof *delay);
    if (!more) {
      code = hk_failed(e->trial.argv, "out of memory");
      break;
    }
    delay = more;
    memcpy(delay + sum.hits, all[i].delay, all[i].verdict.hits * sizeof *delay);
    hk_verdict_add(&sum, &all[i].verdict);
    if (rows)
      print_row(e, keys, set->name, set->recording[i].name, &all[i].verdict, all[i].delay);
  }
  if (code == 0) {
    print_row(e, keys, set->name, title, &sum, delay);
    if (set->n > set->n_files && !evaluate_print_together(e, keys, set, all))
      code = hk_failed(e->trial.argv, "out of memory");
  }
  if (code == 0 && e->calibrate && hk_calibrate(e->format == FORMAT_CSV, keys, set, all) < 0)
    code = hk_failed(e->trial.argv, "out of memory");
  if (code == 0 && e->sheet)
    plot(e, set, all);
  free(delay);
  hk_outcomes_free(all, sensors->n);
  free(machines.recording);
  *out = sum;
  return code;
}

/* Keys with combination `number` of the tuned values behind them. False: there are fewer combinations, or the text is too long.
 */
static bool combine(const struct evaluation *e, const char *keys, uint32_t number, char *text, size_t size)
{
  size_t length = (size_t)snprintf(text, size, "%s", keys);
  for (uint32_t i = 0; i < e->n_tuned; i++) {
    const char *value = strchr(e->tuned[i], '=') + 1;
    uint32_t values = 1, which;
    for (const char *at = value; *at; at++)
      values += *at == '|';
    which = number % values;
    number /= values;
    while (which-- > 0)
      value = strchr(value, '|') + 1;
    if (length < size)
      length += (size_t)snprintf(text + length, size - length, "%s%.*s%.*s", length > 0 ? "," : "",
                                 (int)(strchr(e->tuned[i], '=') + 1 - e->tuned[i]), e->tuned[i], (int)strcspn(value, "|"), value);
  }
  return number == 0 && length < size;
}

/* Looks at all keys before anything is scored. 0, or an exit code: then the fault was told. */
static int evaluate_check(const struct evaluation *e)
{
  char text[1024];
  for (uint32_t i = 0; i < e->n_detectors; i++) {
    const char *option = e->n_tuned > 0 ? "--tune" : e->group[i] ? "--group" : "--detector";
    if (!combine(e, e->detectors[i], 0, text, sizeof text))
      return hk_usage(e->trial.argv, "%s: over %zu characters", option, sizeof text - 1);
    for (uint32_t trial = 0; combine(e, e->detectors[i], trial, text, sizeof text); trial++) {
      if (trial == TRIALS_MAX)
        return hk_usage(e->trial.argv, "--tune: over %d combinations", TRIALS_MAX);
      const int code = (e->group[i] ? hk_trial_check_group : hk_trial_check)(&e->trial, option, text);
      if (code != 0)
        return code;
    }
  }
  return 0;
}

/* Searches the tuned values on the files of even number of a set that can be tuned, and tells of the best of them on the others:
 * *verdict. 0 or an exit code. */
static int tune(const struct evaluation *e, const char *keys, const struct hk_labelled *set, struct hk_verdict *verdict)
{
  struct hk_labelled half[2] = { *set, *set };
  char text[1024], best[1024] = "", title[160];
  double most = -INFINITY;
  int code = 0;
  for (int odd = 0; odd < 2; odd++) {
    half[odd].n = 0;
    half[odd].recording = calloc(set->n + 1, sizeof *set->recording);
    if (!half[odd].recording)
      code = hk_failed(e->trial.argv, "out of memory");
    for (uint32_t i = 0; i < set->n && code == 0; i++)
      if ((int)(set->recording[i].file % 2) == odd)
        half[odd].recording[half[odd].n++] = set->recording[i];
  }
  for (uint32_t trial = 0; code == 0 && combine(e, keys, trial, text, sizeof text); trial++) {
    snprintf(title, sizeof title, "%s, searched: %.100s", set->name, text + (*keys ? strlen(keys) + 1 : 0));
    code = evaluate(e, text, &half[0], title, false, verdict);
    if (code == 0 && hk_verdict_worth(verdict) > most) {
      most = hk_verdict_worth(verdict);
      memcpy(best, text, sizeof best);
    }
  }
  if (code == 0) {
    snprintf(title, sizeof title, "%s, others: %.100s", set->name, best + (*keys ? strlen(keys) + 1 : 0));
    code = evaluate(e, best, &half[1], title, !e->brief, verdict);
  }
  free(half[0].recording);
  free(half[1].recording);
  return code;
}

/* Begins a sheet for each set. 0 or an exit code. */
static int open_sheets(const struct evaluation *e, const struct hk_labelled *sets, struct hk_sheet *sheets)
{
  char path[1024];
  for (unsigned i = 0; i < HK_LABELLED_SETS && e->plots; i++) {
    if (sets[i].n == 0)
      continue;
    snprintf(path, sizeof path, "%s/%s.svg", e->plots, sets[i].name);
    const int status = hk_sheet_open(&sheets[i], path, sets[i].name, sets[i].n, e->detectors, e->n_detectors);
    if (status < 0)
      return hk_failed(e->trial.argv, "%s: %s", path, strerror(-status));
  }
  return 0;
}

/* Recordings that are too short give no score, and that looks like a detector that sees nothing. */
static void evaluate_explain(const struct evaluation *e, const char *keys, const struct hk_verdict *all)
{
  struct hk_detector d;
  char first[HK_WARMUP_TEXT_MAX], need[HK_WARMUP_TEXT_MAX + 64] = "", error[512];
  if (all->unscored == 0)
    return;
  if (!e->grouped && e->n_tuned == 0 && !e->trial.given_windows && hk_detector_parse(keys, &d, error, sizeof error) == 0) {
    hk_warmup_text(hk_warmup(&d), first);
    snprintf(need, sizeof need, ": the first comes with %s", first);
  }
  fprintf(stderr, "hankel evaluate: %s %s gives no score of %llu of %llu recordings, which are too short for it%s\n",
          e->grouped ? "group" : "detector", *keys ? keys : "default", (unsigned long long)all->unscored,
          (unsigned long long)all->recordings, need);
}

/* The detector or group in hand on all sets. 0 or an exit code. */
static int evaluate_sets(struct evaluation *e, const char *keys, const struct hk_labelled *sets, struct hk_sheet *sheets)
{
  struct hk_verdict all = { 0 };
  bool any = false, left_out = false;
  int code = 0;
  evaluate_print_header(e, keys);
  for (unsigned i = 0; i < HK_LABELLED_SETS && code == 0; i++) {
    struct hk_verdict sum = { 0 };
    char name[32];
    snprintf(name, sizeof name, "%s: all", sets[i].name ? sets[i].name : "");
    e->sheet = sheets[i].file ? &sheets[i] : NULL;
    if (sets[i].n <= (e->grouped ? sets[i].n_files : 0))
      continue;
    if (e->n_tuned > 0 && !hk_labelled_has_halves(&sets[i])) {
      fprintf(stderr, "hankel evaluate: --tune: %s is left out: two files are needed, one to search on, and one to evaluate on\n",
              sets[i].name);
      left_out = true;
      continue;
    }
    any = true;
    code = e->n_tuned > 0 ? tune(e, keys, &sets[i], &sum) : evaluate(e, keys, &sets[i], name, !e->brief, &sum);
    hk_verdict_add(&all, &sum);
  }
  if (code == 0)
    evaluate_explain(e, keys, &all);
  if (code == 0 && left_out && !any)
    code = HK_EXIT_FAILED;
  return code;
}

static int evaluate_all(struct evaluation *e)
{
  struct hk_labelled sets[HK_LABELLED_SETS] = { { 0 } };
  struct hk_sheet sheets[HK_LABELLED_SETS] = { { 0 } };
  char error[512];
  int code = evaluate_check(e), there = 0;
  uint32_t recordings = 0, machines = 0;
  for (unsigned i = 0; i < HK_LABELLED_SETS && code == 0; i++) {
    const int status = hk_labelled_read(&sets[i], e->folder, i, error, sizeof error);
    if (status < 0)
      code = hk_failed(e->trial.argv, "%s", error);
    else if (e->starts > 0 && hk_labelled_cut(&sets[i], (uint32_t)e->starts) != 0)
      code = hk_failed(e->trial.argv, "out of memory");
    there += status > 0;
    recordings += sets[i].n;
    machines += sets[i].n - sets[i].n_files;
  }
  if (code == 0 && there == 0)
    code = hk_failed(e->trial.argv, "%s: %s", e->folder,
                     access(e->folder, F_OK) == 0 ? "holds none of nab/, tssb/ and skab/; --help says what these are"
                                                  : strerror(errno));
  if (code == 0 && recordings == 0)
    code = hk_failed(e->trial.argv, "%s: there is no recording in it", e->folder);
  for (uint32_t i = 0; i < e->n_detectors && code == 0; i++)
    if (e->group[i] && machines == 0)
      code = hk_failed(e->trial.argv, "--group: %s: no file there has several sensors", e->folder);
  if (code == 0)
    code = open_sheets(e, sets, sheets);
  if (code == 0 && e->format == FORMAT_CSV)
    puts(e->calibrate ? HK_CALIBRATION_HEADER
                      : "detector,set,recording,points,labels,alerts,hits,chance,false,false_per_1000,delay,covering");
  for (uint32_t i = 0; i < e->n_detectors && code == 0; i++) {
    e->grouped = e->group[i];
    e->strip = i;
    code = evaluate_sets(e, e->detectors[i], sets, sheets);
  }
  for (unsigned i = 0; i < HK_LABELLED_SETS; i++) {
    const int status = sheets[i].file ? hk_sheet_close(&sheets[i]) : 0;
    if (status < 0 && code == 0)
      code = hk_failed(e->trial.argv, "%s/%s.svg: %s", e->plots, sets[i].name, strerror(-status));
    hk_labelled_free(&sets[i]);
  }
  return code;
}

/* Takes the detectors that are worth it where none was given, and looks whether the options go together. 0 or the exit code. */
static int check_together(struct evaluation *e)
{
  bool any_group = false;
  for (uint32_t i = 0; i < e->n_detectors; i++)
    any_group |= e->group[i];
  if (e->n_detectors == 0) { /* those of HK_DETECTORS_UNTUNED that raise alerts, one by one */
    e->detectors[e->n_detectors++] = "algorithm=graph," HK_UNTUNED_GRAPH("");
    e->detectors[e->n_detectors++] = "algorithm=novelty," HK_UNTUNED_NOVELTY("");
  }
  if (e->plots && (e->n_tuned > 0 || any_group))
    return hk_usage(e->trial.argv, "--plots: not with --tune or --group");
  if (e->plots && e->n_detectors > HK_SHEET_DETECTORS)
    return hk_usage(e->trial.argv, "--plots: of at most %d detectors", HK_SHEET_DETECTORS);
  if (e->calibrate && e->n_tuned > 0)
    return hk_usage(e->trial.argv, "--calibrate: not with --tune");
  return 0;
}

static int add_detector(struct evaluation *e, bool group)
{
  if (e->n_detectors == DETECTORS_MAX)
    return hk_usage(e->trial.argv, "--detector and --group: over %d of them", DETECTORS_MAX);
  e->group[e->n_detectors] = group;
  e->detectors[e->n_detectors++] = optarg;
  return 0;
}

static const struct option options[] = {
  { "backend", required_argument, NULL, 'b' },
  { "detector", required_argument, NULL, 'd' },
  { "given-windows", no_argument, NULL, 'g' },
  { "tune", required_argument, NULL, 't' },
  { "brief", no_argument, NULL, 'r' },
  { "format", required_argument, NULL, 'f' },
  { "plots", required_argument, NULL, 'p' },
  { "no-series", no_argument, NULL, 'n' },
  { "group", required_argument, NULL, 'm' },
  { "calibrate", no_argument, NULL, 'c' },
  { "starts", required_argument, NULL, 's' },
  { "help", no_argument, NULL, 'h' },
  { 0 },
};

int hk_command_evaluate(int argc, char **argv)
{
  static const char *const formats[] = { "table", "csv", NULL };
  struct evaluation e = { .trial.argv = argv };
  int option, code = 0;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    switch (option) {
    case 'b':
      code = hk_option_word(argv, "--backend", optarg, hk_choices, &e.trial.choice);
      break;
    case 'd':
    case 'm':
      code = add_detector(&e, option == 'm');
      break;
    case 'g':
      e.trial.given_windows = true;
      break;
    case 't':
      if (e.n_tuned == TUNED_MAX)
        return hk_usage(argv, "--tune: over %d of them", TUNED_MAX);
      if (!strchr(optarg, '='))
        return hk_usage(argv, "--tune: %s: not KEY=VALUE|VALUE...", optarg);
      e.tuned[e.n_tuned++] = optarg;
      break;
    case 'r':
      e.brief = true;
      break;
    case 'f':
      code = hk_option_word(argv, "--format", optarg, formats, &e.format);
      break;
    case 'p':
      e.plots = optarg;
      break;
    case 'n':
      e.no_series = true;
      break;
    case 's':
      code = hk_option_whole(argv, "--starts", optarg, 2, 1000000, &e.starts);
      break;
    case 'c':
      e.calibrate = true;
      break;
    case HK_OPTION_HELP:
      fputs(help_text, stdout);
      return hk_finish_output(argv, HK_EXIT_DONE);
    default:
      code = HK_EXIT_USAGE;
    }
    if (code != 0)
      return code;
  }
  if (argc - optind != 1)
    return hk_usage(argv, argc == optind ? "no folder is given" : "more than one folder is given");
  e.folder = argv[optind];
  if ((code = check_together(&e)) != 0)
    return code;
  return hk_finish_output(argv, evaluate_all(&e));
}
