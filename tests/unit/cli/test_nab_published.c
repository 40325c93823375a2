/* The scoring of the Numenta Anomaly Benchmark against figures that the benchmark published (numenta/NAB, results/):
 * of a detector that can be made again here, the relative entropy of C. Wang et al. (Statistical techniques for online anomaly
 * detection in data centers, 2011) with the benchmark's parameters; of three whose points over the threshold were read off its
 * files; and of one of which a single alert is known to have counted. Its recordings are those of tests/data, its windows the
 * benchmark's. */
#include "daemon/cli/nab_score.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define BINS 5
#define SPAN 52                  /* points of a histogram */
#define AGREE 13.276704135987622 /* 99 % point of chi squared with BINS - 1 degrees of freedom */
#define HISTOGRAMS 64            /* more than any recording here has */
#define EVERY_PROFILE HK_NAB_PROFILES

static struct hk_labelled set;

static const struct {
  const char *name, *windows;
} files[] = { { "ec2_request_latency_system_failure",
                "[[\"2014-03-14 03:31:00\", \"2014-03-14 14:41:00\"], [\"2014-03-18 17:06:00\", "
                "\"2014-03-19 04:16:00\"], [\"2014-03-20 21:26:00\", \"2014-03-21 03:41:00\"]]" },
              { "machine_temperature_system_failure",
                "[[\"2013-12-10 06:25:00\", \"2013-12-12 05:35:00\"], [\"2013-12-15 17:50:00\", \"2013-12-17 17:00:00\"], "
                "[\"2014-01-27 14:20:00\", \"2014-01-29 13:30:00\"], [\"2014-02-07 14:55:00\", \"2014-02-09 14:05:00\"]]" },
              { "rogue_agent_key_hold",
                "[[\"2014-07-15 04:35:00\", \"2014-07-15 13:25:00\"], [\"2014-07-17 05:50:00\", \"2014-07-18 06:45:00\"]]" } };

/* The scores of each in results/relativeEntropy/relativeEntropy_PROFILE_scores.csv. */
static const struct {
  double score[EVERY_PROFILE];
  uint32_t right, wrong; /* points over the threshold inside and outside windows */
} published[] = {
  { { [HK_NAB_STANDARD] = 2.03586905384, [HK_NAB_FEW_FALSE] = 2.03586905384, [HK_NAB_FEW_MISSED] = 2.03586905384 }, 5, 0 },
  { { [HK_NAB_STANDARD] = -0.916101489945, [HK_NAB_FEW_FALSE] = -1.68609873383, [HK_NAB_FEW_MISSED] = -2.91610148994 }, 18, 7 },
  { { [HK_NAB_STANDARD] = -1.51582076131, [HK_NAB_FEW_FALSE] = -2.31711307952, [HK_NAB_FEW_MISSED] = -2.51582076131 }, 1, 8 }
};

/* The recordings, read as `hankel evaluate` reads them. */
static int read_set(void **state)
{
  (void)state;
  const char *data = getenv("DATA");
  char here[4096], folder[] = "/tmp/hankel-nab-XXXXXX", path[8192], target[8192], error[512];
  if (!data || !realpath(data, here) || !mkdtemp(folder))
    return -1;
  snprintf(path, sizeof path, "%s/nab", folder);
  int failed = mkdir(path, 0700);
  snprintf(path, sizeof path, "%s/nab/windows.json", folder);
  FILE *windows = fopen(path, "w");
  for (size_t i = 0; i < sizeof files / sizeof *files && windows; i++) {
    fprintf(windows, "%s\"%s.csv\": %s", i == 0 ? "{" : ",", files[i].name, files[i].windows);
    snprintf(target, sizeof target, "%s/%s.csv", here, files[i].name);
    snprintf(path, sizeof path, "%s/nab/%s.csv", folder, files[i].name);
    failed |= symlink(target, path);
  }
  failed |= !windows || fputs("}", windows) < 0 || fclose(windows) != 0;
  if (!failed && hk_labelled_read(&set, folder, 0, error, sizeof error) != 1) {
    print_error("%s\n", error);
    failed = 1;
  }
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "%s/nab/%s.csv", folder, files[i].name);
    unlink(path);
  }
  snprintf(path, sizeof path, "%s/nab/windows.json", folder);
  unlink(path);
  snprintf(path, sizeof path, "%s/nab", folder);
  rmdir(path);
  rmdir(folder);
  return failed || set.n != sizeof files / sizeof *files;
}

static int free_set(void **state)
{
  (void)state;
  hk_labelled_free(&set);
  return 0;
}

/* An outcome of a recording with an alert on each of these rows, all of the same score. */
static struct hk_outcome alerts_at(const struct hk_recording *r, const uint32_t *row, uint32_t n)
{
  struct hk_outcome o = { .points = r->n };
  assert_true(hk_outcome_prepare(&o, r->n, r->n_labels));
  o.found = calloc(n + 1, sizeof *o.found);
  assert_non_null(o.found);
  memcpy(o.time, r->time, r->n * sizeof *o.time);
  for (uint32_t i = 0; i < n; i++) {
    o.score[row[i]] = 1;
    o.found[o.n_found++] = (struct hk_found){ row[i], row[i], 0 };
  }
  for (uint32_t i = 0; i < r->n_labels; i++)
    o.marked[i] = (struct hk_marked){ hk_outcome_index(&o, r->label[i].first), hk_outcome_index(&o, r->label[i].last) };
  return o;
}

static void forget(struct hk_outcome *o)
{
  free(o->time);
  free(o->value);
  free(o->score);
  free(o->found);
  free(o->marked);
  free(o->delay);
}

/* The benchmark's sum of a recording, computed back from the normalised score: 0 for no alert, 100 for the best. */
static double sum_of(double normalised, uint32_t windows, int profile)
{
  const double missed = profile == HK_NAB_FEW_MISSED ? 2 : 1;
  return normalised / 100 * (1 + missed) * windows - missed * windows;
}

static double divergence(const double *a, const double *b)
{
  double sum = 0;
  for (int i = 0; i < BINS; i++)
    if (a[i] > 0)
      sum += b[i] > 0 ? a[i] * log(a[i] / b[i]) : INFINITY;
  return sum;
}

/* Rows at which the distribution of the last SPAN values agrees with no earlier one. */
static uint32_t unlike_all(const struct hk_recording *r, uint32_t *row)
{
  static double past[HISTOGRAMS][BINS];
  double low = r->value[0], high = r->value[0];
  uint32_t known = 0, n = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    low = fmin(low, r->value[i]);
    high = fmax(high, r->value[i]);
  }
  for (uint32_t end = SPAN; end <= r->n; end++) {
    double *now = past[known], least = INFINITY;
    memset(now, 0, sizeof past[known]);
    for (uint32_t i = end - SPAN; i < end; i++) {
      const double bin = ceil((r->value[i] - low) / ((high - low) / BINS)); /* 0..BINS, the last two one bin */
      now[bin < BINS ? (int)bin : BINS - 1] += 1.0 / SPAN;
    }
    for (uint32_t i = 0; i < known; i++)
      least = fmin(least, 2 * SPAN * divergence(now, past[i]));
    if (least < AGREE)
      continue;
    if (known > 0)
      row[n++] = end - 1;
    assert_true(++known < HISTOGRAMS);
  }
  return n;
}

static void relative_entropy(void **state)
{
  (void)state;
  uint32_t *row = calloc(30000, sizeof *row);
  struct hk_outcome all[3];
  double sum[EVERY_PROFILE] = { 0 };
  struct hk_nab_result result[EVERY_PROFILE];
  assert_non_null(row);
  for (uint32_t i = 0; i < set.n; i++) {
    const struct hk_recording *r = &set.recording[i];
    const struct hk_labelled one = { .name = "nab", .recording = &set.recording[i], .n = 1 };
    uint32_t which = 0;
    while (strcmp(r->name, files[which].name) != 0)
      assert_true(++which < set.n);
    assert_true(r->n < 30000);
    all[i] = alerts_at(r, row, unlike_all(r, row));
    assert_int_equal(hk_nab_score(&one, &all[i], result), 0);
    for (int profile = 0; profile < EVERY_PROFILE; profile++) {
      const double got = sum_of(result[profile].as_is, r->n_labels, profile), want = published[which].score[profile];
      if (fabs(got - want) > 1e-9)
        fail_msg("%s, profile %d: %.12f, published %.12f", r->name, profile, got, want);
      sum[profile] += want;
    }
    uint32_t right = 0, wrong = 0;
    for (uint32_t j = 0; j < all[i].n_found; j++) {
      bool inside = false;
      for (uint32_t k = 0; k < r->n_labels; k++)
        inside |= all[i].found[j].raised >= all[i].marked[k].first && all[i].found[j].raised <= all[i].marked[k].last;
      right += inside && all[i].found[j].raised >= 0.15 * r->n;
      wrong += !inside && all[i].found[j].raised >= fmin(0.15 * r->n, 750);
    }
    assert_int_equal(right, published[which].right);
    assert_int_equal(wrong, published[which].wrong);
  }
  assert_int_equal(hk_nab_score(&set, all, result), 0); /* together, at the best threshold, the alerts are worth it */
  for (int profile = 0; profile < EVERY_PROFILE; profile++) {
    assert_true(fabs(sum_of(result[profile].as_is, 9, profile) - sum[profile]) < 1e-9);
    assert_true(result[profile].score == result[profile].as_is && result[profile].threshold == 1);
  }
  for (uint32_t i = 0; i < set.n; i++)
    forget(&all[i]);
  free(row);
}

/* Points with the threshold or more, behind the first 15 %, of results/DETECTOR/realKnownCause/DETECTOR_FILE.csv, and the scores
 * of results/DETECTOR/DETECTOR_PROFILE_scores.csv. The threshold is a profile's: where it differs, there is a row for each. */
static const struct {
  const char *detector, *file, *points;
  double score[EVERY_PROFILE]; /* NAN: another row has it */
} read_off[] = {
  { "windowedGaussian",
    "ec2_request_latency_system_failure",
    "2014-03-18 22:36:00,2014-03-18 22:41:00,2014-03-21 03:36:00",
    { [HK_NAB_STANDARD] = -0.06591011872780705, [HK_NAB_FEW_FALSE] = NAN, [HK_NAB_FEW_MISSED] = -1.06591011873 } },
  { "windowedGaussian",
    "ec2_request_latency_system_failure",
    "",
    { [HK_NAB_STANDARD] = NAN, [HK_NAB_FEW_FALSE] = -3, [HK_NAB_FEW_MISSED] = NAN } },
  { "windowedGaussian",
    "machine_temperature_system_failure",
    "",
    { [HK_NAB_STANDARD] = -4, [HK_NAB_FEW_FALSE] = -4, [HK_NAB_FEW_MISSED] = -8 } },
  { "twitterADVec",
    "ec2_request_latency_system_failure",
    "2014-03-14 09:06:00,2014-03-18 22:36:00,2014-03-18 22:41:00,2014-03-21 03:01:00,2014-03-21 03:11:00,2014-03-21 03:21:00,"
    "2014-03-21 03:31:00,2014-03-21 03:36:00",
    { [HK_NAB_STANDARD] = 2.0215068567753214,
      [HK_NAB_FEW_FALSE] = 2.0215068567753214,
      [HK_NAB_FEW_MISSED] = 2.0215068567753214 } },
  { "bayesChangePt",
    "rogue_agent_key_hold",
    "2014-07-11 16:10:00,2014-07-15 10:05:00,2014-07-16 10:20:00,2014-07-17 08:30:00",
    { [HK_NAB_STANDARD] = 1.3895897481660482, [HK_NAB_FEW_FALSE] = NAN, [HK_NAB_FEW_MISSED] = NAN } },
  { "bayesChangePt",
    "rogue_agent_key_hold",
    "2014-07-11 16:10:00,2014-07-15 10:05:00,2014-07-16 10:20:00,2014-07-16 18:40:00,2014-07-17 08:30:00",
    { [HK_NAB_STANDARD] = NAN, [HK_NAB_FEW_FALSE] = NAN, [HK_NAB_FEW_MISSED] = 1.279589748166048 } },
  { "bayesChangePt",
    "rogue_agent_key_hold",
    "",
    { [HK_NAB_STANDARD] = NAN, [HK_NAB_FEW_FALSE] = -2, [HK_NAB_FEW_MISSED] = NAN } },
};

/* The rows of a recording with these times. */
static uint32_t rows_at(const struct hk_recording *r, const char *points, uint32_t *row)
{
  uint32_t n = 0, i = 0;
  while (*points) {
    struct tm utc = { 0 };
    points = strptime(points, "%Y-%m-%d %H:%M:%S", &utc);
    assert_non_null(points);
    points += *points == ',';
    while (i < r->n && r->time[i] < (int64_t)timegm(&utc) * 1000000000)
      i++;
    assert_true(i < r->n && r->time[i] == (int64_t)timegm(&utc) * 1000000000);
    row[n++] = i;
  }
  return n;
}

static void three_detectors(void **state)
{
  (void)state;
  for (size_t k = 0; k < sizeof read_off / sizeof *read_off; k++) {
    uint32_t i = 0, row[16];
    while (strcmp(set.recording[i].name, read_off[k].file) != 0)
      assert_true(++i < set.n);
    const struct hk_recording *r = &set.recording[i];
    const struct hk_labelled one = { .name = "nab", .recording = &set.recording[i], .n = 1 };
    struct hk_outcome o = alerts_at(r, row, rows_at(r, read_off[k].points, row));
    struct hk_nab_result result[EVERY_PROFILE];
    assert_int_equal(hk_nab_score(&one, &o, result), 0);
    for (int profile = 0; profile < EVERY_PROFILE; profile++) {
      const double got = sum_of(result[profile].as_is, r->n_labels, profile), want = read_off[k].score[profile];
      if (!isnan(want) && !(fabs(got - want) < 1e-11)) /* printed with 12 digits at least */
        fail_msg("%s, %s, profile %d: %.14f, published %.14f", read_off[k].detector, r->name, profile, got, want);
    }
    forget(&o);
  }
}

/* results/numentaTM/numentaTM_standard_scores.csv: one point over the threshold in all of machine_temperature's windows, none
 * outside, and the score -2.14336980423. A weight of eleven digits is that of a row, or the formula is another. */
static void a_single_alert(void **state)
{
  (void)state;
  uint32_t rows = 0;
  for (uint32_t i = 0; i < set.n; i++) {
    const struct hk_recording *r = &set.recording[i];
    const struct hk_labelled one = { .name = "nab", .recording = &set.recording[i], .n = 1 };
    if (strcmp(r->name, "machine_temperature_system_failure") != 0)
      continue;
    struct hk_outcome o = alerts_at(r, &(uint32_t){ 0 }, 1);
    for (uint32_t k = 0; k < r->n_labels; k++) {
      for (o.found->raised = o.marked[k].first; o.found->raised <= o.marked[k].last; o.found->raised++) {
        struct hk_nab_result result[EVERY_PROFILE];
        assert_int_equal(hk_nab_score(&one, &o, result), 0);
        rows += fabs(sum_of(result[HK_NAB_STANDARD].as_is, r->n_labels, HK_NAB_STANDARD) + 2.14336980423) < 1e-10;
      }
    }
    forget(&o);
  }
  assert_true(rows > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(relative_entropy), cmocka_unit_test(three_detectors),
                                      cmocka_unit_test(a_single_alert) };
  return cmocka_run_group_tests(tests, read_set, free_set);
}
