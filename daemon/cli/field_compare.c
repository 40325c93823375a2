/* Sensors alone beside sensors in a field: see field_compare.h. */
#include "daemon/cli/field_compare.h"
#include "daemon/cli/field_trial.h"
#include "daemon/cli/format.h"
#include "daemon/cli/options.h"
#include "daemon/cli/trial_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One side of a line: a verdict, and one delay for each hit, which are put in order. */
struct side {
  const struct hk_verdict *v;
  double *delay;
};

static void field_compare_begin(const struct hk_field_compare *c)
{
  if (c->csv)
    return;
  printf("\nfield %s, detector %s%s\n\n", *c->field ? c->field : "default", *c->head ? c->head : "default",
         c->trial->given_windows ? ", windows as given" : "");
  printf("%-36s %6s   %-35s   %s\n", "", "", "--------- sensors alone ----------",
         "---------------- in the field ----------------");
  printf("%-36s %6s   %4s %6s %6s %10s %5s   %4s %6s %6s %10s %5s %9s\n", "recording", "labels", "hits", "chance", "false",
         "false/1000", "delay", "hits", "chance", "false", "false/1000", "delay", "secondary");
}

static void print_side(const struct hk_field_compare *c, const struct side *s)
{
  const struct hk_verdict *v = s->v;
  char middle[32] = "", each[32] = "";
  if (v->hits > 0)
    snprintf(middle, sizeof middle, "%.0f", hk_verdict_delay(v, s->delay));
  if (v->points > 0)
    snprintf(each, sizeof each, "%.3f", 1000.0 * (double)v->misplaced / (double)v->points);
  if (c->csv)
    printf(",%llu,%llu,%llu,%.2f,%llu,%s,%s", (unsigned long long)v->points, (unsigned long long)v->alerts,
           (unsigned long long)v->hits, v->chance, (unsigned long long)v->misplaced, each, middle);
  else
    printf("   %4llu %6.1f %6llu %10s %5s", (unsigned long long)v->hits, v->chance, (unsigned long long)v->misplaced,
           *each ? each : "-", *middle ? middle : "-");
}

static void field_compare_print(const struct hk_field_compare *c, const char *set, const char *name, const struct side *alone,
                                const struct side *field, uint64_t secondary)
{
  if (c->csv) {
    hk_print_csv_string(stdout, c->field);
    putchar(',');
    hk_print_csv_string(stdout, c->detector);
    putchar(',');
    hk_print_csv_string(stdout, set);
    putchar(',');
    hk_print_csv_string(stdout, name);
    printf(",%llu", (unsigned long long)alone->v->labels);
  } else {
    printf("%-36s %6llu", name, (unsigned long long)alone->v->labels);
  }
  print_side(c, alone);
  print_side(c, field);
  printf(c->csv ? ",%llu\n" : " %9llu\n", (unsigned long long)secondary);
}

/* Judges the results of a set, of which *delay receives all delays. False: no memory. */
static bool field_compare_judge_all(const struct hk_labelled *set, struct hk_outcome *all, struct hk_verdict *sum, double **delay)
{
  size_t labels = 0;
  for (uint32_t i = 0; i < set->n; i++)
    labels += set->recording[i].n_labels;
  *delay = calloc(labels + 1, sizeof **delay);
  for (uint32_t i = 0; i < set->n && *delay; i++) {
    hk_trial_judge(set, &set->recording[i], &all[i]);
    memcpy(*delay + sum->hits, all[i].delay, all[i].verdict.hits * sizeof **delay);
    hk_verdict_add(sum, &all[i].verdict);
  }
  return *delay != NULL;
}

/* Both sides of a comparison. */
struct compared {
  struct hk_field_trial fields;
  struct hk_labelled machines;
  struct hk_outcome *alone, *field;
  uint64_t *secondary; /* of each recording */
};

static int field_compare_score(const struct hk_field_compare *c, const struct hk_labelled *set, struct compared *of)
{
  int code = hk_field_trial_open(&of->fields, c->trial, set, c->field);
  const uint32_t n = of->fields.alone.n;
  if (code != 0 || n == 0)
    return code;
  of->alone = calloc(n, sizeof *of->alone);
  of->field = calloc(n, sizeof *of->field);
  of->secondary = calloc(n, sizeof *of->secondary);
  if (!of->alone || !of->field || !of->secondary || hk_trial_machines(&of->fields.alone, &of->machines) < 0)
    return hk_failed(c->trial->argv, "out of memory");
  code = hk_trial_score(c->trial, &of->fields.alone, c->detector, of->alone);
  if (code == 0)
    code = hk_trial_score(c->trial, &of->fields.derived, c->detector, of->field);
  if (code == 0 && hk_field_trial_settle(&of->fields, of->field, of->secondary) < 0)
    code = hk_failed(c->trial->argv, "out of memory");
  return code;
}

/* Prints the judged recordings, and adds their sums. False: no memory. */
static bool compare_all(const struct hk_field_compare *c, struct compared *of, struct hk_field_verdict *sum)
{
  const struct hk_labelled *alone = &of->fields.alone, *derived = &of->fields.derived;
  struct hk_field_verdict all = { 0 }, any = { 0 };
  double *delay[2] = { NULL, NULL }, *together[2] = { NULL, NULL };
  char title[300];
  bool fine = field_compare_judge_all(alone, of->alone, &all.alone, &delay[0]) &&
              field_compare_judge_all(derived, of->field, &all.field, &delay[1]);
  for (uint32_t i = 0; i < alone->n && fine; i++) {
    const struct side left = { &of->alone[i].verdict, of->alone[i].delay }, right = { &of->field[i].verdict, of->field[i].delay };
    all.secondary += of->secondary[i];
    if (!c->brief)
      field_compare_print(c, alone->name, alone->recording[i].name, &left, &right, of->secondary[i]);
  }
  fine = fine && hk_trial_together(alone, &of->machines, of->alone, &any.alone, &together[0]) == 0 &&
         hk_trial_together(derived, &of->machines, of->field, &any.field, &together[1]) == 0;
  if (fine) {
    snprintf(title, sizeof title, "%.255s: all", alone->name);
    field_compare_print(c, alone->name, title, &(struct side){ &all.alone, delay[0] }, &(struct side){ &all.field, delay[1] },
                        all.secondary);
    snprintf(title, sizeof title, "%.255s: any sensor", alone->name);
    field_compare_print(c, alone->name, title, &(struct side){ &any.alone, together[0] },
                        &(struct side){ &any.field, together[1] }, all.secondary);
    hk_verdict_add(&sum->alone, &all.alone);
    hk_verdict_add(&sum->field, &all.field);
    sum->secondary += all.secondary;
  }
  for (int i = 0; i < 2; i++) {
    free(delay[i]);
    free(together[i]);
  }
  return fine;
}

int hk_field_compare_set(const struct hk_field_compare *c, const struct hk_labelled *set, struct hk_field_verdict *sum)
{
  struct compared of = { 0 };
  int code = field_compare_score(c, set, &of);
  const uint32_t n = of.fields.alone.n;
  if (code == 0 && n > 0 && !sum->begun)
    field_compare_begin(c);
  sum->begun |= code == 0 && n > 0;
  if (code == 0 && n > 0 && !compare_all(c, &of, sum))
    code = hk_failed(c->trial->argv, "out of memory");
  hk_outcomes_free(of.alone, n);
  hk_outcomes_free(of.field, n);
  free(of.secondary);
  hk_labelled_free(&of.machines);
  hk_field_trial_close(&of.fields);
  return code;
}

void hk_field_compare_end(const struct hk_verdict *alone, const struct hk_verdict *field)
{
  if (alone->labels == 0)
    printf("\nThere are no labels: all alerts count as false.");
  else
    printf("\nLabels hit: %llu of %llu in the field (%.1f by chance), %llu alone (%.1f by chance).",
           (unsigned long long)field->hits, (unsigned long long)field->labels, field->chance, (unsigned long long)alone->hits,
           alone->chance);
  printf(" False alerts: %llu in the field, %llu alone.\n", (unsigned long long)field->misplaced,
         (unsigned long long)alone->misplaced);
}
