/* The scoring of the Numenta Anomaly Benchmark: see nab_score.h. */
#include "daemon/cli/nab_score.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define NO_WINDOW UINT32_MAX
#define WORTHLESS (-2.0) /* less than any alert is worth */

static const struct {
  double right, wrong, missed;
} profiles[HK_NAB_PROFILES] = {
  [HK_NAB_STANDARD] = { 1, 0.11, 1 }, [HK_NAB_FEW_FALSE] = { 1, 0.22, 1 }, [HK_NAB_FEW_MISSED] = { 1, 0.11, 2 }
};

/* An alert: the score with which it was raised, its value with weights of 1, and its window's number among those of all
 * recordings. */
struct detection {
  double score, worth;
  uint32_t window;
};

static double curve(double y)
{
  return y <= 3 ? 2 / (1 + exp(5 * y)) - 1 : -1;
}

/* The value of an alert at a point; *window: the recording's window that contains it. */
static double nab_score_worth(uint32_t at, const struct hk_marked *marked, uint32_t n, uint32_t *window)
{
  const struct hk_marked *behind = NULL;
  *window = NO_WINDOW;
  for (uint32_t i = 0; i < n && marked[i].first <= at; i++) {
    const double width = (double)marked[i].last - marked[i].first + 1;
    if (at <= marked[i].last) {
      *window = i;
      return curve(-((double)marked[i].last - at + 1) / width) / curve(-1);
    }
    behind = &marked[i];
  }
  if (!behind)
    return -1;
  const double width = (double)behind->last - behind->first;
  return width > 0 ? curve((double)(at - behind->last) / width) : -1;
}

static int highest_first(const void *a, const void *b)
{
  const struct detection *x = a, *y = b;
  return (x->score < y->score) - (x->score > y->score);
}

/* Adds the alerts of a recording whose windows begin with number `first`. */
static uint32_t nab_score_take(struct detection *out, const struct hk_outcome *o, uint32_t n_marked, uint32_t first)
{
  const uint32_t probation = o->points < 5000 ? (uint32_t)(0.15 * o->points) : 750;
  uint32_t n = 0;
  for (uint32_t i = 0; i < o->n_found; i++) {
    const uint32_t at = o->found[i].raised;
    uint32_t window;
    if (at < probation)
      continue;
    out[n].worth = nab_score_worth(at, o->marked, n_marked, &window);
    out[n].window = window == NO_WINDOW ? NO_WINDOW : first + window;
    out[n++].score = isnan(o->score[at]) ? 0 : (double)o->score[at];
  }
  return n;
}

/* Lowers the threshold from one alert to the next, and keeps the best total. best: room for each window. */
static struct hk_nab_result nab_score_sweep(const struct detection *d, uint32_t n, double *best, uint32_t windows, int profile)
{
  const double right = profiles[profile].right, wrong = profiles[profile].wrong, missed = profiles[profile].missed;
  const double none = -missed * windows, all = right * windows;
  double sum = none, most = none;
  struct hk_nab_result r = { .threshold = 1.1 };
  for (uint32_t i = 0; i < windows; i++)
    best[i] = WORTHLESS;
  for (uint32_t i = 0; i < n; i++) {
    if (d[i].window == NO_WINDOW)
      sum += wrong * d[i].worth;
    else if (d[i].worth > best[d[i].window]) {
      sum += right * d[i].worth - (best[d[i].window] > WORTHLESS ? right * best[d[i].window] : -missed);
      best[d[i].window] = d[i].worth;
    }
    const bool last = i + 1 == n || d[i + 1].score < d[i].score;
    if (last && sum > most) {
      most = sum;
      r.threshold = d[i].score;
    }
  }
  r.score = all > none ? 100 * (most - none) / (all - none) : 0;
  r.as_is = all > none ? 100 * (sum - none) / (all - none) : 0;
  return r;
}

int hk_nab_score(const struct hk_labelled *set, const struct hk_outcome *all, struct hk_nab_result *out)
{
  uint32_t windows = 0, most = 0, n = 0;
  for (uint32_t i = 0; i < set->n; i++) {
    windows += set->recording[i].n_labels;
    most += all[i].n_found;
  }
  struct detection *d = calloc(most + 1, sizeof *d);
  double *best = calloc(windows + 1, sizeof *best);
  const int status = d && best ? 0 : -ENOMEM;
  for (uint32_t i = 0, first = 0; i < set->n && status == 0; first += set->recording[i++].n_labels)
    n += nab_score_take(d + n, &all[i], set->recording[i].n_labels, first);
  if (status == 0)
    qsort(d, n, sizeof *d, highest_first);
  for (int profile = 0; profile < HK_NAB_PROFILES && status == 0; profile++)
    out[profile] = nab_score_sweep(d, n, best, windows, profile);
  free(d);
  free(best);
  return status;
}
