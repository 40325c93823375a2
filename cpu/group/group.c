/* Groups: see group.h. */
#include "cpu/group/novelty.h"
#include "cpu/rules/alert.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double quantile[HK_GROUP_QUANTILES] = { 0.1, 0.5, 0.9 };

/* Rounds down, also before 1970. */
static int64_t group_row_of(const struct hk_group_rule *rule, int64_t time)
{
  return time / rule->interval - (time % rule->interval < 0);
}

/* --- life ------------------------------------------------------------------------------------------------------------ */

int hk_group_new(struct hk_group **out, const struct hk_group_rule *r)
{
  char error[256];
  if (hk_group_check(r, error, sizeof error) < 0 || r->statistic == HK_GROUP_BOTH)
    return -EINVAL;
  struct hk_group *g = calloc(1, sizeof *g);
  if (!g)
    return -ENOMEM;
  const size_t n = hk_group_rows(r) + 1;
  g->rule = *r;
  g->next = g->newest = HK_GROUP_NEVER;
  g->member = calloc(r->members, sizeof *g->member);
  g->time = calloc(n, sizeof *g->time);
  g->at = calloc(2 * n, sizeof *g->at);
  double *const reals = calloc(6 * n, sizeof *reals);
  if (!g->member || !g->time || !g->at || !reals) {
    free(reals);
    hk_group_free(g);
    return -ENOMEM;
  }
  g->entropy = reals;
  g->joint = g->entropy + n;
  g->own = g->joint + n;
  g->most = g->own + n;
  g->error = g->most + n;
  g->sorted = g->error + n;
  g->foremost = g->at + n;
  for (uint32_t i = 1; i < n; i++)
    g->entropy[i] = i * log(i);
  *out = g;
  return 0;
}

void hk_group_free(struct hk_group *g)
{
  if (!g)
    return;
  for (uint32_t i = 0; i < g->top; i++)
    free(g->member[i]);
  free(g->member);
  free(g->time);
  free(g->at);
  free(g->entropy);
  free(g);
}

int hk_group_add(struct hk_group *g, uint32_t number)
{
  const size_t rows = hk_group_rows(&g->rule), waiting = g->rule.wait + 1;
  struct hk_group_member *m = malloc(sizeof *m + (rows + 2 * waiting) * sizeof(double));
  if (!m)
    return -ENOMEM;
  m->value = (double *)(m + 1);
  m->pending = m->value + rows;
  m->time = (int64_t *)(m->pending + waiting);
  m->last = HK_GROUP_NEVER;
  m->from = INT64_MAX;
  m->slow = (struct hk_group_slow){ 0 };
  for (size_t k = 0; k < rows + waiting; k++)
    m->value[k] = NAN;
  g->member[number] = m;
  g->n_members++;
  g->top = number < g->top ? g->top : number + 1;
  return 0;
}

int hk_group_join(struct hk_group *g, uint32_t *number)
{
  uint32_t i = 0;
  while (i < g->top && g->member[i])
    i++;
  if (i == g->rule.members)
    return -ENOSPC;
  const int status = hk_group_add(g, i);
  if (status == 0)
    *number = i;
  return status;
}

void hk_group_leave(struct hk_group *g, uint32_t number)
{
  struct hk_group_member *m = g->member[number];
  if (g->coming.member == m)
    g->coming.member = NULL;
  for (uint32_t i = 0; i <= g->rule.wait; i++)
    g->waiting -= !isnan(m->pending[i]);
  free(m);
  g->member[number] = NULL;
  g->n_members--;
}

uint32_t hk_group_members(const struct hk_group *g)
{
  return g->n_members;
}

bool hk_group_has(const struct hk_group *g, uint32_t number)
{
  return number < g->top && g->member[number];
}

/* --- rows ------------------------------------------------------------------------------------------------------------ */

void hk_group_put(struct hk_group *g, uint32_t number, int64_t time, double value)
{
  struct hk_group_member *m = g->member[number];
  const int64_t row = group_row_of(&g->rule, time), wait = g->rule.wait;
  if ((m->last != HK_GROUP_NEVER && row <= m->last) || !(fabs(value) <= HK_GROUP_VALUE_MAX))
    return;
  if (m->last == HK_GROUP_NEVER || row - m->last > wait)
    m->from = row + wait;
  m->last = row;
  if (g->next == HK_GROUP_NEVER)
    g->next = g->newest = row;
  if (row > g->newest)
    g->newest = row;
  if (row >= g->next && row >= m->from)
    g->coming = (struct hk_group_coming){ m, row, time, value };
}

/* Puts the last point into its row, after the rows that it forces to close were closed. */
static void group_settle_in(struct hk_group *g)
{
  const struct hk_group_coming *c = &g->coming;
  if (!c->member)
    return;
  const uint32_t place = hk_group_place(g, c->row);
  c->member->pending[place] = c->value;
  c->member->time[place] = c->time;
  g->waiting++;
  g->coming.member = NULL;
}

/* Whether the next row waits for a sample of a member. */
static bool group_is_held(const struct hk_group *g)
{
  for (uint32_t i = 0; i < g->top; i++) {
    const struct hk_group_member *m = g->member[i];
    if (m && m->from <= g->next && m->last < g->next && g->next - m->last <= g->rule.wait)
      return true;
  }
  return false;
}

/* Closes the next row. False: it has no sample, and is not kept. */
static bool group_close_row(struct hk_group *g)
{
  const uint32_t place = hk_group_place(g, g->next++);
  int64_t latest = HK_GROUP_NEVER;
  for (uint32_t i = 0; i < g->top; i++) {
    struct hk_group_member *m = g->member[i];
    if (!m)
      continue;
    const double value = m->pending[place];
    m->pending[place] = NAN;
    m->value[g->head] = hk_group_is_novelty(g) && !isnan(value) ? hk_group_smooth(m, value) : value;
    if (isnan(value))
      continue;
    g->waiting--;
    if (m->time[place] > latest)
      latest = m->time[place];
  }
  if (latest == HK_GROUP_NEVER)
    return false;
  g->time[g->head] = latest;
  g->head = g->head + 1 < hk_group_rows(&g->rule) ? g->head + 1 : 0;
  g->live += g->live < hk_group_rows(&g->rule);
  g->rows++;
  return true;
}

/* --- the statistic --------------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Computes the prediction errors of a member: the differences of its samples from the prediction by their mean and the previous
 * sample. Returns their number; `at`: their rows, counted from the oldest. */
static uint32_t predict(struct hk_group *g, const struct hk_group_member *m)
{
  double mean = 0, square = 0, product = 0, before;
  uint32_t n = 0;
  for (uint32_t row = 0, place = hk_group_back(g, g->live); row < g->live;
       row++, place = place + 1 < g->rule.resident ? place + 1 : 0) {
    if (isnan(m->value[place]))
      continue;
    g->at[n] = row;
    g->error[n++] = m->value[place];
    mean += m->value[place];
  }
  if (n < 2 * g->rule.shortest + 1)
    return 0;
  mean /= n;
  for (uint32_t i = 0; i < n; i++)
    g->error[i] -= mean;
  for (uint32_t i = 0; i < n; i++)
    square = fma(g->error[i], g->error[i], square);
  for (uint32_t i = 1; i < n; i++)
    product = fma(g->error[i], g->error[i - 1], product);
  const double rho = product > 0 ? product / square : 0, phi = rho * rho;
  before = g->error[0];
  for (uint32_t i = 1; i < n; i++) {
    const double x = g->error[i];
    g->error[i - 1] = x - phi * before;
    g->at[i - 1] = g->at[i];
    before = x;
  }
  return n - 1;
}

/* Log-likelihood of `some` of n, at their own share. */
static double likelihood(const struct hk_group *g, uint32_t some, uint32_t n)
{
  return g->entropy[some] + g->entropy[n - some] - g->entropy[n];
}

/* Adds the contribution of one member to every split. False: it has too few samples. */
static bool group_add_member(struct hk_group *g, uint32_t number)
{
  const uint32_t n = predict(g, g->member[number]), shortest = g->rule.shortest;
  if (n == 0)
    return false;
  memcpy(g->sorted, g->error, n * sizeof *g->sorted);
  qsort(g->sorted, n, sizeof *g->sorted, ascending);
  memset(g->own, 0, (n + 1) * sizeof *g->own);
  for (uint32_t q = 0; q < HK_GROUP_QUANTILES; q++) {
    const double level = g->sorted[(uint32_t)ceil(quantile[q] * n) - 1];
    uint32_t all = 0, left = 0;
    while (all < n && g->sorted[all] <= level)
      all++;
    const double whole = likelihood(g, all, n);
    for (uint32_t i = 1; i + shortest <= n; i++) {
      left += g->error[i - 1] <= level;
      if (i >= shortest)
        g->own[i] += likelihood(g, left, i) + likelihood(g, all - left, n - i) - whole;
    }
  }
  /* A row begins the newer part for all members; a member's first error in it may be in a later row. */
  for (uint32_t row = 1, i = 0; row < g->live; row++) {
    while (i < n && g->at[i] < row)
      i++;
    g->joint[row] += g->own[i];
    if (g->own[i] > g->most[row]) {
      g->most[row] = g->own[i];
      g->foremost[row] = number;
    }
  }
  return true;
}

/* Mean and standard deviation of a member's samples in `n` rows, from the one that is `back` before the next. */
static double level(const struct hk_group *g, uint32_t number, uint32_t back, uint32_t n, float *spread)
{
  const struct hk_group_member *m = g->member[number];
  double sum = 0, square = 0;
  uint32_t some = 0;
  for (uint32_t i = 0; i < n; i++) {
    const double x = m->value[hk_group_back(g, back - i)];
    sum += isnan(x) ? 0 : x;
    some += !isnan(x);
  }
  const double mean = some > 0 ? sum / some : 0;
  for (uint32_t i = 0; i < n; i++) {
    const double x = m->value[hk_group_back(g, back - i)], off = isnan(x) ? 0 : x - mean;
    square = fma(off, off, square);
  }
  *spread = some > 0 ? (float)sqrt(square / some) : 0;
  return mean;
}

/* Compares all splits of the resident rows, and drops those before a change. */
static void group_compare(struct hk_group *g, struct hk_group_tick *t)
{
  uint32_t best = 0;
  for (uint32_t row = 0; row < g->live; row++)
    g->joint[row] = g->most[row] = 0;
  for (uint32_t i = 0; i < g->top; i++)
    t->members += g->member[i] && group_add_member(g, i);
  if (t->members == 0)
    return;
  for (uint32_t row = 1; row < g->live; row++)
    if (g->joint[row] > g->joint[best])
      best = row;
  const double unit = hk_group_unit(&g->rule, t->members);
  t->statistic = g->joint[best];
  t->score = t->statistic / (t->statistic + unit);
  if (best == 0)
    return;
  t->foremost = g->foremost[best];
  if (t->statistic <= unit || g->since > 0)
    return;
  const uint32_t newer = g->live - best;
  t->change = HK_GROUP_CHANGED;
  t->severity = (double)hk_alert_severity(HK_CHANNEL_GROUP, hk_alert_margin(t->statistic, unit));
  t->from = g->time[hk_group_back(g, g->live)];
  t->instant = g->time[hk_group_back(g, newer)];
  t->before = level(g, t->foremost, g->live, best, &t->spread_before);
  t->after = level(g, t->foremost, newer, newer, &t->spread_after);
  g->live = newer;
  g->since = 1;
}

/* A change is settled at the first comparison that is two shortest parts later, which does not accept another change: so the end
 * of an alert and the beginning of the next are in different rows, and each has a score. */
static void group_settle(struct hk_group *g, struct hk_group_tick *t)
{
  if (g->since <= 2 * g->rule.shortest)
    return;
  g->since = 0;
  t->change = HK_GROUP_SETTLED;
}

bool hk_group_next(struct hk_group *g, struct hk_group_tick *t)
{
  while (g->next != HK_GROUP_NEVER) {
    const bool driven = g->newest - g->next >= g->rule.wait;
    if (!driven)
      group_settle_in(g);
    if (!driven && (g->next > g->newest || group_is_held(g)))
      return false;
    if (driven && g->waiting == 0) { /* a hole */
      g->next = g->newest - g->rule.wait + 1;
      continue;
    }
    if (!group_close_row(g))
      continue;
    *t = (struct hk_group_tick){ .time = g->time[hk_group_back(g, 1)], .statistic = NAN, .score = NAN, .foremost = UINT32_MAX };
    g->since += g->since > 0 && g->since <= 2 * g->rule.shortest;
    if (hk_group_is_novelty(g)) {
      hk_group_compare_novelty(g, t);
    } else if (g->rows % g->rule.hop == 0) {
      group_compare(g, t);
      group_settle(g, t);
    }
    return true;
  }
  return false;
}
