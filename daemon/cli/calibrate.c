/* Promise and observation: see calibrate.h. */
#include "daemon/cli/calibrate.h"

#include "cpu/rules/severity.h"

#include "daemon/cli/format.h"
#include "daemon/cli/nab_score.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Lower limits of severity, one for each bin. */
static const double bin_from[HK_CALIBRATION_BINS] = { 0, 1.5, 2, 2.5, 3, 3.5, 4, 5 };

double hk_calibration_promise(double severity)
{
  return severity >= HK_SEVERITY_LEAST && severity <= HK_SEVERITY_MEASURED ? fmin(2 * pow(10, -severity), 1) : 1;
}

/* Whether a block, from point `first` on, lies apart from all labels. */
static bool apart(uint32_t first, uint32_t reach, const struct hk_marked *marked, uint32_t n_marked)
{
  for (uint32_t i = 0; i < n_marked; i++)
    if ((uint64_t)first + HK_SEVERITY_BLOCK + reach > marked[i].first && first <= (uint64_t)marked[i].last + reach)
      return false;
  return true;
}

/* The highest severity of alerts with an instant in each block. */
static void gravest(float *of, uint32_t blocks, uint32_t scored, const struct hk_found *found, uint32_t n_found)
{
  for (uint32_t i = 0; i < n_found; i++) {
    const uint32_t block = found[i].instant > scored ? (found[i].instant - scored) / HK_SEVERITY_BLOCK : 0;
    if (block < blocks && !(of[block] >= found[i].severity))
      of[block] = found[i].severity;
  }
}

int hk_calibrate_add(struct hk_calibration *sum, const struct hk_outcome *o, uint32_t n_marked)
{
  const uint32_t points = o->points, scored = o->scored, window = hk_trial_window(o);
  const uint32_t blocks = scored < points ? (points - scored) / HK_SEVERITY_BLOCK : 0;
  const uint32_t reach = window > HK_CALIBRATION_LATE ? window : HK_CALIBRATION_LATE;
  float *of = calloc(blocks + 1, sizeof *of);
  struct hk_found *some = calloc(o->n_found + 1, sizeof *some);
  double *delay = calloc(n_marked + 1, sizeof *delay);
  const int status = of && some && delay ? 0 : -ENOMEM;
  for (uint32_t i = 0; i < blocks && status == 0; i++)
    of[i] = -1; /* no alert */
  if (status == 0)
    gravest(of, blocks, scored, o->found, o->n_found);
  for (uint32_t bin = 0; bin < HK_CALIBRATION_BINS && status == 0; bin++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->n_found; i++)
      if ((double)o->found[i].severity >= bin_from[bin])
        some[n++] = o->found[i];
    const struct hk_verdict v = hk_judge(points, scored, window, some, n, o->marked, n_marked, delay);
    hk_verdict_add(&sum->worth[bin], &v);
  }
  for (uint32_t i = 0; i < blocks && status == 0; i++) {
    if (!apart(scored + i * HK_SEVERITY_BLOCK, reach, o->marked, n_marked))
      continue;
    sum->blocks++;
    for (uint32_t bin = 0; bin < HK_CALIBRATION_BINS; bin++)
      sum->grave[bin] += (double)of[i] >= bin_from[bin];
  }
  free(of);
  free(some);
  free(delay);
  return status;
}

const char *hk_calibration_word(const struct hk_calibration *c, uint32_t bin)
{
  const double promise = hk_calibration_promise(bin_from[bin]), most = promise * (double)c->blocks;
  if (promise >= 1 || (most < 1 && c->grave[bin] == 0))
    return "-";
  return (double)c->grave[bin] <= most ? "holds" : "breaks";
}

void hk_calibration_print(const struct hk_calibration *c, bool csv, const char *keys, const char *set)
{
  if (!csv)
    printf("\n%s by severity, of %llu blocks of %d points apart from labels\n%8s %7s %5s %7s %6s %11s %10s %10s %10s\n", set,
           (unsigned long long)c->blocks, HK_SEVERITY_BLOCK, "from", "alerts", "hits", "chance", "false", "false share",
           "promised", "observed", "");
  for (uint32_t bin = 0; bin < HK_CALIBRATION_BINS; bin++) {
    const struct hk_verdict *v = &c->worth[bin];
    const double from = bin_from[bin], promise = hk_calibration_promise(from);
    const double observed = c->blocks > 0 ? (double)c->grave[bin] / (double)c->blocks : 0;
    char promised[32] = "", share[32] = "";
    if (promise < 1)
      snprintf(promised, sizeof promised, "%.5f", promise);
    if (v->alerts > 0)
      snprintf(share, sizeof share, "%.2f", (double)v->misplaced / (double)v->alerts);
    if (csv) {
      hk_print_csv_string(stdout, keys);
      putchar(',');
      hk_print_csv_string(stdout, set);
      printf(",%g,%llu,%llu,%llu,%.2f,%llu,%.4f,%llu,%llu,%s,%.6f,%s\n", from, (unsigned long long)v->alerts,
             (unsigned long long)v->labels, (unsigned long long)v->hits, v->chance, (unsigned long long)v->misplaced,
             v->points > 0 ? 1000.0 * (double)v->misplaced / (double)v->points : 0.0, (unsigned long long)c->blocks,
             (unsigned long long)c->grave[bin], promised, observed, hk_calibration_word(c, bin));
      continue;
    }
    printf("%8g %7llu %5llu %7.1f %6llu %11s %10s %10.5f %10s\n", from, (unsigned long long)v->alerts,
           (unsigned long long)v->hits, v->chance, (unsigned long long)v->misplaced, *share ? share : "-",
           *promised ? promised : "-", observed, hk_calibration_word(c, bin));
  }
  if (!csv)
    putchar('\n');
}

/* The score of the Numenta Anomaly Benchmark for a set: with the detector's threshold, and with the best one. */
static void print_nab(const char *set, const struct hk_nab_result *nab)
{
  static const char *const profiles[HK_NAB_PROFILES] = {
    [HK_NAB_STANDARD] = "standard", [HK_NAB_FEW_FALSE] = "few false", [HK_NAB_FEW_MISSED] = "few missed"
  };
  printf("%s by its own scoring: 0 is no alert, 100 all windows at their beginning\n%12s %8s %15s %11s\n", set, "profile",
         "as it is", "best threshold", "from score");
  for (int i = 0; i < HK_NAB_PROFILES; i++) {
    char from[32] = "no alert";
    if (nab[i].threshold <= 1)
      snprintf(from, sizeof from, "%.3f", nab[i].threshold);
    printf("%12s %8.1f %15.1f %11s\n", profiles[i], nab[i].as_is, nab[i].score, from);
  }
  putchar('\n');
}

int hk_calibrate(bool csv, const char *keys, const struct hk_labelled *set, const struct hk_outcome *all)
{
  struct hk_calibration sum = { 0 };
  struct hk_nab_result nab[HK_NAB_PROFILES];
  int status = 0;
  for (uint32_t i = 0; i < set->n && status == 0; i++)
    status = hk_calibrate_add(&sum, &all[i], set->recording[i].n_labels);
  if (status == 0)
    hk_calibration_print(&sum, csv, keys, set->name);
  if (status < 0 || csv || set->instants)
    return status;
  status = hk_nab_score(set, all, nab);
  if (status == 0)
    print_nab(set->name, nab);
  return status;
}
