/* How new the joint state of a group's members is: see group.h, statistic = HK_GROUP_NOVELTY. The rows that are kept have, in
 * place of the members' values, their slow means less the first value. */
#include "cpu/group/novelty.h"
#include "cpu/rules/severity.h"

#include <math.h>

#define REACH 4.0      /* rows of a slow mean */
#define SPREAD 10000.0 /* rows over which a member's mean and spread forget */
#define STILL 1e-6     /* a member whose spread is below this share of its first value stands still, and counts as 0 */
#define SKIP 60        /* first distances, which are not learned */
#define DISTANCE_MAX 1e4
#define PROBATION 150 /* rows before the first score */
#define QUIET 30      /* quiet rows after which an alert is settled */
#define LONGEST 100   /* rows after which it is settled anyway */
#define SLACK 0.3     /* below the threshold, and still not quiet */
#define ESCALATE 1.5  /* so much over its highest S so far, an alert begins anew */
#define GRAVER 0.25   /* multiples of the severity that are worth a correction */

double hk_group_smooth(struct hk_group_member *m, double value)
{
  struct hk_group_slow *s = &m->slow;
  if (s->n == 0)
    s->first = value;
  const double n = (double)++s->n;
  s->mean += (value - s->first - s->mean) / fmin(n, REACH);
  const double off = s->mean - s->centre;
  s->centre += off / fmin(n, SPREAD);
  s->variance += (off * (s->mean - s->centre) - s->variance) / fmin(n, SPREAD);
  return s->mean;
}

static double spread_of(const struct hk_group_member *m)
{
  return sqrt(fmax(m->slow.variance, 0.0));
}

/* The inverse of a member's spread; 0: it stands still. */
static double weight_of(const struct hk_group_member *m)
{
  const double spread = spread_of(m);
  return spread > STILL * fabs(m->slow.first) + 1e-30 ? 1 / spread : 0;
}

/* A member's slow mean in the newest row; NaN: it has no value there. */
static double novelty_newest(const struct hk_group *g, const struct hk_group_member *m)
{
  return m->value[hk_group_back(g, 1)];
}

/* Adds, for each kept row, the squared distance of one member, and whether it has a value there. */
static void novelty_add_member(struct hk_group *g, const struct hk_group_member *m)
{
  const double *const row = m->value, now = novelty_newest(g, m), weight = weight_of(m);
  double *const restrict sum = g->joint, *const restrict there = g->most;
  for (uint32_t i = 0; i < g->live; i++) {
    const double off = (row[i] - now) * weight;
    sum[i] += isnan(row[i]) ? 0 : off * off;
    there[i] += isnan(row[i]) ? 0 : 1;
  }
}

/* The nearest row that is old enough, and has at least half of the members that the newest row has. Returns how many rows before
 * the next one it is; 0: there is none. The search does not depend on places in the ring, which a restart changes. */
static uint32_t novelty_nearest(const struct hk_group *g, uint32_t members, double *distance)
{
  uint32_t best = 0;
  double least = INFINITY;
  for (uint32_t back = 1 + HK_GROUP_NOVELTY_AGE; back <= g->live; back++) {
    const uint32_t place = hk_group_back(g, back);
    if (2 * g->most[place] < members)
      continue;
    const double mean = g->joint[place] / g->most[place];
    if (best == 0 || mean < least) {
      best = back;
      least = mean;
    }
  }
  *distance = sqrt(least) < DISTANCE_MAX ? sqrt(least) : DISTANCE_MAX; /* also if it is not a number */
  return best;
}

/* The S of a distance with its floor, and its severity, by the largest maxima of past blocks; then the distance is one of them.
 */
static double novelty_rate(struct hk_group_novelty *n, float q, double *severity)
{
  double s = 0;
  *severity = 0;
  n->seen += n->seen < UINT32_MAX;
  if (n->seen <= SKIP)
    return 0;
  for (uint32_t i = 0; i < 2; i++) {
    if (i == 1 && n->seen - SKIP <= HK_GROUP_NOVELTY_BLOCK / 2)
      continue;
    const struct hk_novelty_rating r = hk_novelty_tail_score(&n->tail[i], HK_NOVELTY_VALUE, (double)q, 0);
    s += 0.5 * r.s;
    *severity += 0.5 * (double)r.severity;
    hk_novelty_tail_take(&n->tail[i], q, HK_GROUP_NOVELTY_BLOCK,
                         (n->seen / (HK_GROUP_NOVELTY_BLOCK * (HK_NOVELTY_BLOCKS_MOST / 2)) + i) % 2);
  }
  /* The promise is about blocks of HK_SEVERITY_BLOCK rows, which contain two of these. */
  *severity = fmin(fmax(*severity - log10((double)HK_SEVERITY_BLOCK / HK_GROUP_NOVELTY_BLOCK), 0.0), HK_SEVERITY_MAX);
  return s;
}

/* Which member differs most from the nearest row, and how. */
static void describe(const struct hk_group *g, uint32_t back, struct hk_group_tick *t)
{
  double most = -1;
  for (uint32_t i = 0; i < g->top; i++) {
    const struct hk_group_member *m = g->member[i];
    const double off =
        m && !isnan(novelty_newest(g, m)) ? fabs((m->value[hk_group_back(g, back)] - novelty_newest(g, m)) * weight_of(m)) : NAN;
    if (!(off > most))
      continue;
    most = off;
    t->foremost = i;
  }
  if (t->foremost == UINT32_MAX)
    return;
  const struct hk_group_member *m = g->member[t->foremost];
  const double usual = fmax(hk_novelty_tail_usual(&g->novelty.tail[0]) - HK_NOVELTY_FLOOR, 0.0);
  t->before = m->value[hk_group_back(g, back)] + m->slow.first;
  t->after = novelty_newest(g, m) + m->slow.first;
  t->spread_before = (float)(usual * spread_of(m));
}

static uint32_t grade(double severity)
{
  return (uint32_t)(severity / GRAVER);
}

/* Raises or settles the alert, or finds it graver. An alert that is much newer than it was stands as long as a new one. */
static enum hk_group_change novelty_judge(struct hk_group_novelty *n, double threshold, const struct hk_group_tick *t)
{
  if (!n->raised && t->statistic < threshold)
    return HK_GROUP_SAME;
  const bool raises = !n->raised, graver = raises || grade(t->severity) > grade(n->severity);
  const bool anew = raises || t->statistic >= n->peak + ESCALATE, quiet = t->statistic < threshold - SLACK;
  n->severity = raises ? t->severity : fmax(n->severity, t->severity);
  n->peak = raises ? t->statistic : fmax(n->peak, t->statistic);
  n->since = anew ? 0 : n->since + 1;
  n->quiet = quiet ? n->quiet + 1 : 0;
  n->raised = n->quiet <= QUIET && n->since <= LONGEST;
  return !n->raised ? HK_GROUP_SETTLED : raises ? HK_GROUP_CHANGED : graver ? HK_GROUP_GRAVER : HK_GROUP_SAME;
}

void hk_group_compare_novelty(struct hk_group *g, struct hk_group_tick *t)
{
  double distance;
  for (uint32_t i = 0; i < g->live; i++)
    g->joint[i] = g->most[i] = 0;
  for (uint32_t i = 0; i < g->top; i++)
    if (g->member[i] && !isnan(novelty_newest(g, g->member[i]))) {
      novelty_add_member(g, g->member[i]);
      t->members++;
    }
  const uint32_t back = novelty_nearest(g, t->members, &distance);
  if (back == 0)
    return;
  const double s = novelty_rate(&g->novelty, (float)(distance + HK_NOVELTY_FLOOR), &t->severity);
  if (g->rows <= PROBATION)
    return;
  const double unit = hk_group_unit(&g->rule, t->members);
  t->statistic = s;
  t->score = s / (s + unit);
  t->change = novelty_judge(&g->novelty, unit, t);
  if (t->change == HK_GROUP_SETTLED)
    t->severity = g->novelty.severity;
  if (t->change != HK_GROUP_CHANGED && t->change != HK_GROUP_GRAVER)
    return;
  describe(g, back, t);
  t->from = t->instant = g->time[hk_group_back(g, (uint32_t)fmin(REACH, g->live))];
}
