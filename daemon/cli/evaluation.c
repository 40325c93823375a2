#include "daemon/cli/evaluation.h"

#include "cpu/backend/warmup.h"
#include "daemon/cli/calibrate.h"
#include "daemon/cli/field_compare.h"
#include "daemon/cli/field_trial.h"
#include "daemon/cli/format.h"
#include "daemon/cli/labelled_cut.h"
#include "daemon/cli/options.h"
#include "daemon/cli/svg_sheet.h"
#include "daemon/cli/trial_group.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS_MAX 4096

static void evaluation_print_header(const struct hk_evaluation *e, const char *keys)
{
  if (e->format == HK_EVALUATION_TABLE)
    printf("%s%s: %s%s\n\n%-44s %8s %7s %7s %5s %7s %6s %10s %6s %9s\n", "\n", e->grouped ? "group" : "detector",
           *keys ? keys : "default", e->trial.given_windows && !e->grouped ? ", windows as given" : "", "recording", "points",
           "labels", "alerts", "hits", "chance", "false", "false/1000", "delay", "covering");
}

/* Prints one line; sorts the delays. */
static void print_row(const struct hk_evaluation *e, const char *keys, const char *set, const char *name,
                      const struct hk_verdict *v, double *delay)
{
  char middle[32] = "", covering[32] = "", each[32] = "";
  if (v->hits > 0)
    snprintf(middle, sizeof middle, "%.0f", hk_verdict_delay(v, delay));
  if (v->covered > 0)
    snprintf(covering, sizeof covering, "%.3f", v->covering / (double)v->covered);
  if (v->points > 0)
    snprintf(each, sizeof each, "%.3f", 1000.0 * (double)v->misplaced / (double)v->points);
  if (e->format == HK_EVALUATION_CSV && e->calibrate) /* one table a file */
    return;
  if (e->format == HK_EVALUATION_CSV) {
    hk_print_csv_string(stdout, keys);
    putchar(',');
    hk_print_csv_string(stdout, set);
    putchar(',');
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

/* Judges the alerts of all sensors of a file together, as an operator of the machine would see them. False: no memory. */
static bool evaluation_print_together(const struct hk_evaluation *e, const char *keys, const struct hk_labelled *set,
                                      const struct hk_labelled *machines, const struct hk_outcome *all)
{
  struct hk_verdict sum;
  double *delay = NULL;
  char title[300];
  const bool fine = hk_trial_together(set, machines, all, &sum, &delay) == 0;
  snprintf(title, sizeof title, "%.255s: any sensor of the rig", set->name);
  if (fine)
    print_row(e, keys, set->name, title, &sum, delay);
  free(delay);
  return fine;
}

/* Adds a detector's results for a set to the set's sheet. */
static void plot(const struct hk_evaluation *e, const struct hk_labelled *set, const struct hk_outcome *all)
{
  for (uint32_t i = 0; i < set->n; i++) {
    const struct hk_outcome *o = &all[i];
    if (e->strip == 0)
      hk_sheet_series(e->sheet, i, set->recording[i].name, e->no_series ? NULL : o->value, o->points, o->marked,
                      set->recording[i].n_labels);
    hk_sheet_score(e->sheet, i, e->strip, o->score, o->points, o->found, o->n_found);
  }
}

/* Runs one detector on one set. Prints a row for each recording, unless only the sum is wanted, and the sum under the name
 * `title`. Returns 0 or an exit code. */
static int evaluate(const struct hk_evaluation *e, const char *keys, const struct hk_labelled *sensors, const char *title,
                    bool rows, struct hk_verdict *out)
{
  struct hk_labelled machines = { 0 };
  const struct hk_labelled *set = e->grouped ? &machines : sensors;
  struct hk_outcome *all = calloc(sensors->n + 1, sizeof *all);
  int code = 0;
  if (!all || hk_trial_machines(sensors, &machines) < 0)
    code = hk_failed(e->trial.argv, "out of memory");
  else
    code = e->grouped ? hk_trial_group(&e->trial, sensors, &machines, keys, all) : hk_trial_score(&e->trial, sensors, keys, all);
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
    if (set->n > set->n_files && !evaluation_print_together(e, keys, set, &machines, all))
      code = hk_failed(e->trial.argv, "out of memory");
  }
  if (code == 0 && e->calibrate && hk_calibrate(e->format == HK_EVALUATION_CSV, keys, set, all) < 0)
    code = hk_failed(e->trial.argv, "out of memory");
  if (code == 0 && e->sheet)
    plot(e, set, all);
  free(delay);
  hk_outcomes_free(all, sensors->n);
  hk_labelled_free(&machines);
  *out = sum;
  return code;
}

/* Checks all keys before anything is scored. Returns 0, or an exit code after a message. */
static int evaluation_check(const struct hk_evaluation *e)
{
  char text[1024];
  if (e->field) {
    const int code = hk_field_trial_check(&e->trial, e->field);
    if (code != 0)
      return code;
  }
  for (uint32_t i = 0; i < e->n_detectors; i++) {
    const char *option = e->tuning.n > 0 ? "--tune" : e->group[i] ? "--group" : "--detector";
    if (!hk_tuning_combine(&e->tuning, e->detectors[i], 0, text, sizeof text))
      return hk_usage(e->trial.argv, "%s: over %zu characters", option, sizeof text - 1);
    for (uint32_t trial = 0; hk_tuning_combine(&e->tuning, e->detectors[i], trial, text, sizeof text); trial++) {
      if (trial == TRIALS_MAX)
        return hk_usage(e->trial.argv, "--tune: over %d combinations", TRIALS_MAX);
      const int code = (e->group[i] ? hk_trial_check_group : hk_trial_check)(&e->trial, option, text);
      if (code != 0)
        return code;
    }
  }
  return 0;
}

/* Judges a set: a detector or a group, or, into *field too, a detector on sensors alone and in their field. head: keys for the
 * head of the table. Returns 0 or an exit code. */
static int judge_set(const struct hk_evaluation *e, const char *head, const char *keys, const struct hk_labelled *set,
                     const char *title, bool rows, struct hk_verdict *verdict, struct hk_field_verdict *field)
{
  if (!e->field)
    return evaluate(e, keys, set, title, rows, verdict);
  const struct hk_field_compare compare = { &e->trial, e->field, keys, head, e->format == HK_EVALUATION_CSV, !rows };
  *field = (struct hk_field_verdict){ .begun = field->begun };
  const int code = hk_field_compare_set(&compare, set, field);
  *verdict = field->field;
  return code;
}

/* Searches the best values of the tuned keys on the even-numbered files of a set, and judges them on the others: *verdict, and,
 * in a field, *field. Returns 0 or an exit code. */
static int tune(const struct hk_evaluation *e, const char *keys, const struct hk_labelled *set, struct hk_verdict *verdict,
                struct hk_field_verdict *field)
{
  struct hk_labelled half[2];
  char text[1024], best[1024] = "", title[160];
  double most = -INFINITY;
  int code = hk_labelled_halve(set, half) == 0 ? 0 : hk_failed(e->trial.argv, "out of memory");
  for (uint32_t trial = 0; code == 0 && hk_tuning_combine(&e->tuning, keys, trial, text, sizeof text); trial++) {
    snprintf(title, sizeof title, "%s, searched: %.100s", set->name, text + (*keys ? strlen(keys) + 1 : 0));
    half[0].name = e->field ? title : set->name;
    code = judge_set(e, keys, text, &half[0], title, false, verdict, field);
    if (code == 0 && hk_verdict_worth(verdict) > most) {
      most = hk_verdict_worth(verdict);
      memcpy(best, text, sizeof best);
    }
  }
  if (code == 0) {
    snprintf(title, sizeof title, "%s, others: %.100s", set->name, best + (*keys ? strlen(keys) + 1 : 0));
    half[1].name = e->field ? title : set->name;
    code = judge_set(e, keys, best, &half[1], title, !e->brief, verdict, field);
  }
  free(half[0].recording);
  free(half[1].recording);
  return code;
}

/* Begins a sheet for each set. Returns 0 or an exit code. */
static int open_sheets(const struct hk_evaluation *e, const struct hk_labelled *sets, struct hk_sheet *sheets)
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

/* Reports recordings that are too short for a score, because otherwise the detector would seem to see nothing. */
static void evaluation_explain(const struct hk_evaluation *e, const char *keys, const struct hk_verdict *all)
{
  struct hk_detector d;
  char first[HK_WARMUP_TEXT_MAX] = "", error[512];
  if (all->unscored == 0)
    return;
  const bool known = !e->grouped && e->tuning.n == 0 && !e->trial.given_windows;
  fprintf(stderr, "hankel evaluate: %s %s gives no score of %" PRIu64 " of %" PRIu64 " recordings, which are too short for it",
          e->grouped ? "group" : "detector", *keys ? keys : "default", all->unscored, all->recordings);
  if (known && hk_detector_parse(keys, &d, error, sizeof error) == 0)
    hk_warmup_text(hk_warmup(&d), first);
  fprintf(stderr, " (points of the longest: %" PRIu64 ")%s%s\n", all->longest, *first ? ": the first comes with " : "", first);
}

/* Runs the current detector or group on all sets, or the detector on sensors alone and in their field. Returns 0 or an exit code.
 */
static int evaluation_sets(struct hk_evaluation *e, const char *keys, const struct hk_labelled *sets, struct hk_sheet *sheets)
{
  struct hk_verdict all = { 0 }, alone = { 0 };
  struct hk_field_verdict field = { 0 };
  const bool several = e->grouped || e->field; /* files of one sensor do not count */
  bool any = false, left_out = false;
  int code = 0;
  if (!e->field)
    evaluation_print_header(e, keys);
  for (unsigned i = 0; i < HK_LABELLED_SETS && code == 0; i++) {
    struct hk_verdict sum = { 0 };
    char name[300];
    snprintf(name, sizeof name, "%.255s: all", sets[i].name ? sets[i].name : "");
    e->sheet = sheets[i].file ? &sheets[i] : NULL;
    if (sets[i].n <= (several ? sets[i].n_files : 0))
      continue;
    if (e->tuning.n > 0 && !hk_labelled_has_halves(&sets[i], several)) {
      fprintf(stderr,
              "hankel evaluate: --tune: %s is left out: two files%s are needed, one to search on, and one to evaluate on\n",
              sets[i].name, several ? " of several sensors, of even and of odd number," : "");
      left_out = true;
      continue;
    }
    any = true;
    code = e->tuning.n > 0 ? tune(e, keys, &sets[i], &sum, &field)
                           : judge_set(e, keys, keys, &sets[i], name, !e->brief, &sum, &field);
    hk_verdict_add(&all, &sum);
    hk_verdict_add(&alone, &field.alone);
  }
  if (code == 0 && field.begun && e->format == HK_EVALUATION_TABLE)
    hk_field_compare_end(&alone, &all);
  if (code == 0)
    evaluation_explain(e, keys, &all);
  return code == 0 && left_out && !any ? HK_EXIT_FAILED : code;
}

/* Reads the collections of the folder, or the file. Returns 0 or an exit code. */
static int read_sets(const struct hk_evaluation *e, struct hk_labelled *sets)
{
  char error[512];
  uint32_t recordings = 0, several = 0;
  if (hk_labelled_read_all(sets, e->folder, e->labels, error, sizeof error) < 0)
    return hk_failed(e->trial.argv, "%s", error);
  for (unsigned i = 0; i < HK_LABELLED_SETS; i++) {
    if (e->starts > 0 && hk_labelled_cut(&sets[i], (uint32_t)e->starts) != 0)
      return hk_failed(e->trial.argv, "out of memory");
    recordings += sets[i].n;
    several += sets[i].n - sets[i].n_files;
  }
  if (recordings == 0)
    return hk_failed(e->trial.argv, "%s: there is no recording in it", e->folder);
  if (several == 0 && e->field)
    return hk_failed(e->trial.argv, "--field: %s: no file there has several sensors", e->folder);
  for (uint32_t i = 0; i < e->n_detectors; i++)
    if (e->group[i] && several == 0)
      return hk_failed(e->trial.argv, "--group: %s: no file there has several sensors", e->folder);
  return 0;
}

static const char *csv_header(const struct hk_evaluation *e)
{
  if (e->field)
    return HK_FIELD_COMPARE_HEADER;
  return e->calibrate ? HK_CALIBRATION_HEADER
                      : "detector,set,recording,points,labels,alerts,hits,chance,false,false_per_1000,delay,covering";
}

int hk_evaluation_run(struct hk_evaluation *e)
{
  struct hk_labelled sets[HK_LABELLED_SETS] = { { 0 } };
  struct hk_sheet sheets[HK_LABELLED_SETS] = { { 0 } };
  int code = evaluation_check(e);
  if (code == 0)
    code = read_sets(e, sets);
  if (code == 0)
    code = open_sheets(e, sets, sheets);
  if (code == 0 && e->format == HK_EVALUATION_CSV)
    puts(csv_header(e));
  for (uint32_t i = 0; i < e->n_detectors && code == 0; i++) {
    e->grouped = e->group[i];
    e->strip = i;
    code = evaluation_sets(e, e->detectors[i], sets, sheets);
  }
  for (unsigned i = 0; i < HK_LABELLED_SETS; i++) {
    const int status = sheets[i].file ? hk_sheet_close(&sheets[i]) : 0;
    if (status < 0 && code == 0)
      code = hk_failed(e->trial.argv, "%s/%s.svg: %s", e->plots, sets[i].name, strerror(-status));
    hk_labelled_free(&sets[i]);
  }
  return code;
}
