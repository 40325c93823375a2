/* Company: children of a node that show something at about the same time. Each node lists those of the last window, the gravest
 * first. */
#include "daemon/base/grow.h"
#include "daemon/incidents/incidents_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RAREST -300.0 /* log10: chances are not told apart below */

/* ln k! */
static double log_factorial(struct hk_incidents *all, uint32_t k)
{
  if (k >= all->log_factorials_room) {
    const uint32_t room = 2 * k + 64;
    double *grown = realloc(all->log_factorials, room * sizeof *grown);
    if (!grown)
      return lgamma((double)k + 1);
    for (uint32_t i = all->log_factorials_room; i < room; i++)
      grown[i] = lgamma((double)i + 1);
    all->log_factorials = grown;
    all->log_factorials_room = room;
  }
  return all->log_factorials[k];
}

/* log10 P(Poisson(mu) >= k) for k > mu, or something above `least` where it is above that. */
static double poisson_tail(struct hk_incidents *all, double mu, double log_mu, uint32_t k, double least)
{
  if (mu <= 0)
    return RAREST;
  const double leading = (k * log_mu - mu - log_factorial(all, k)) / log(10);
  if (leading > least) /* the others only add */
    return leading;
  if (leading < RAREST - 1 && k >= 2 * mu) /* the others at most double it */
    return RAREST;
  double r = 1, term = 1;
  for (uint32_t i = k; term > 1e-12 && i < k + 1000;) {
    term *= mu / ++i;
    r += term;
  }
  return fmax(RAREST, leading + log10(r));
}

/* --- the active children of a node -------------------------------------------------------------------------------------- */

/* The place of the first that is not graver than S. */
static uint32_t company_place_of(const struct hk_fleet_node *n, double S)
{
  uint32_t low = 0, high = n->n_active;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (n->active[middle].S > S)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int activate_at(struct hk_fleet_child *c, uint32_t at)
{
  struct hk_fleet_node *n = c->above;
  struct hk_active_child *active = hk_grow(n->active, n->n_active, &n->room, sizeof *active, 4);
  if (!active)
    return -ENOMEM;
  n->active = active;
  memmove(n->active + at + 1, n->active + at, (n->n_active - at) * sizeof *n->active);
  n->active[at] = (struct hk_active_child){ c->S, pow(10, -(c->S - HK_TAIL_WEAKEST)), c };
  n->n_active++;
  c->active = true;
  return 0;
}

int hk_company_restore(struct hk_fleet_child *c)
{
  const struct hk_fleet_node *n = c->above;
  return n->n_active > 0 && n->active[n->n_active - 1].S < c->S ? -EBADMSG : activate_at(c, n->n_active);
}

static void deactivate(struct hk_fleet_child *c)
{
  struct hk_fleet_node *n = c->above;
  uint32_t at = company_place_of(n, c->S);
  while (n->active[at].child != c)
    at++;
  memmove(n->active + at, n->active + at + 1, (--n->n_active - at) * sizeof *n->active);
  c->active = false;
}

/* Forgets those whose first alert is older than the window, once a tick. */
static void company_sweep(struct hk_fleet_node *n, int64_t time, int64_t window)
{
  if (n->swept == time)
    return;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n->n_active; i++) {
    if (n->active[i].child->raised < time - window)
      n->active[i].child->active = false;
    else
      n->active[kept++] = n->active[i];
  }
  n->n_active = kept;
  n->swept = time;
}

/* What a sensor shows counts for a child, unless that showed something graver in the window. 0 or -ENOMEM. */
static int company_show(struct hk_fleet_child *c, struct hk_fleet_sensor *s)
{
  if (c->active && c->S >= s->S)
    return 0;
  if (c->active)
    deactivate(c);
  c->S = s->S;
  c->raised = s->raised;
  c->sensor = s;
  return activate_at(c, company_place_of(c->above, c->S));
}

/* --- chance ------------------------------------------------------------------------------------------------------------- */

/* The incident of an active child, if it still takes in others. */
static struct hk_incident *taking(const struct hk_incidents *all, const struct hk_fleet_child *c)
{
  struct hk_incident *i = c->sensor->incident;
  return i && (double)all->time - (double)i->open <= (double)HK_INCIDENT_LONGEST * (double)all->rules.interval ? i : NULL;
}

/* What chance is measured by, at a node and a moment. */
struct odds {
  struct hk_tail_rates rates;
  double others, each; /* other children; sensors below each, times the window in days */
};

/* What one child is expected to show in the window, of as much as this one or more. */
static double expected(const struct odds *o, const struct hk_active_child *a)
{
  return o->each * hk_tail_rate(&o->rates, a->S, a->fade);
}

/* Whether j of the others are as many as may be expected, or up to three deviations more: that is by chance more often than
 * HK_INCIDENT_ALPHA. x: expected. */
static bool usual(const struct odds *o, double x, double j)
{
  const double mu = o->others * (x - .5 * x * x); /* or a bit more */
  return j <= mu || (j - mu) * (j - mu) <= 9 * mu;
}

/* Behind the last of a node's list that would show company, were all before it of incidents that take in others: fewer are usual,
 * too. 0, most often: there is none. */
static uint32_t company_within(const struct odds *o, const struct hk_fleet_node *n)
{
  uint32_t end = n->n_active;
  while (end > 1 && usual(o, expected(o, &n->active[end - 1]), end - 1))
    end--;
  return end > 1 ? end : 0;
}

/* What was expected of the list so far, when the chance was calculated last; of what comes later more is. */
struct earlier {
  double mu, log_mu; /* 0: of none */
};

#define NEARLY 1e-6 /* log10: more than rounding does to a chance */

/* Whether k or more, of which somewhat less than `most` are expected, are so rare, or so usual, that the chance need not be
 * calculated: it is RAREST, or more than `least`. 0: it must be. */
static int sure(struct hk_incidents *all, const struct earlier *e, double most, uint32_t k, double least)
{
  if (e->mu <= 0)
    return 0;
  const double factorial = log_factorial(all, k);
  if ((k * e->log_mu - e->mu - factorial) / log(10) > least + NEARLY) /* the chance grows with what is expected */
    return 1;
  const double highest = k * (e->log_mu + (most - e->mu) / e->mu) - most - factorial; /* a tangent of the logarithm */
  return k >= 2 * most && highest / log(10) < RAREST - 1 - NEARLY ? -1 : 0;
}

/* log10 of the chance that k others show as much as is expected of each by x; above `least` it is something above that. */
static double chance_of(struct hk_incidents *all, const struct odds *o, struct earlier *e, double x, uint32_t k, double least)
{
  const int known = sure(all, e, o->others * x, k, least);
  if (known != 0)
    return known < 0 ? RAREST : 0;
  const double mu = o->others * (1 - exp(-x));
  *e = (struct earlier){ mu, mu > 0 ? log(mu) : 0 };
  return k > mu ? poisson_tail(all, mu, e->log_mu, k, least) : 0;
}

/* log10 of the least chance, over j, that j - 1 other children of a node show as much in the window as the first j do; *upto: how
 * many of the list these are, 0 where no chance is less than HK_INCIDENT_ALPHA. */
static double chance(struct hk_incidents *all, const struct hk_fleet_node *n, uint32_t *upto)
{
  const double window = (double)HK_INCIDENT_WINDOW * (double)all->rules.interval / (double)HK_DAY;
  const struct odds o = { hk_tail_rates(&all->tail), n->children - 1.0, (double)n->sensors / n->children * window };
  const uint32_t end = company_within(&o, n);
  struct earlier earlier = { 0, 0 };
  double least = HK_INCIDENT_ALPHA;
  *upto = 0;
  for (uint32_t i = 0, graver = 0; i < end; i++) {
    const struct hk_active_child *a = &n->active[i];
    if (!taking(all, a->child))
      continue;
    const uint32_t j = graver++;
    const double x = expected(&o, a);
    if (j == 0 || usual(&o, x, j))
      continue;
    const double p = chance_of(all, &o, &earlier, x, j, least);
    if (p <= least) {
      least = p;
      *upto = i + 1;
    }
  }
  return least;
}

/* --- merging ------------------------------------------------------------------------------------------------------------ */

static struct hk_incident *merge(struct hk_incidents *all, struct hk_incident *a, struct hk_incident *b)
{
  if (b->id < a->id) { /* the older number stays */
    struct hk_incident *older = b;
    b = a;
    a = older;
  }
  for (struct hk_fleet_sensor *m = b->members, *next; m; m = next) {
    next = m->next;
    hk_incident_add(a, m);
  }
  a->last = a->last > b->last ? a->last : b->last;
  a->heard = a->heard > b->heard ? a->heard : b->heard;
  a->own = a->own > b->own ? a->own : b->own;
  a->open = a->open < b->open ? a->open : b->open;
  a->touched |= b->touched;
  a->S = fmax(a->S, b->S);
  if (b->company > a->company) {
    a->company = b->company;
    a->node = b->node;
  }
  if (b->counted >= 0)
    hk_tail_add(&all->tail, b->counted, -b->weight);
  if (b->told && !a->told) {
    a->told = true;
    a->told_at = b->told_at;
    a->told_R = b->told_R;
    a->told_n = b->told_n;
  }
  hk_incident_unlink(all, b);
  hk_incident_unlink(all, a);
  hk_incident_link(all, a);
  all->counts.merged += b->told;
  all->decided(all->arg, all->time, b->told ? HK_INCIDENT_MERGED : HK_INCIDENT_ABSORBED, b, a, 0);
  free(b);
  return a;
}

/* The first `upto` of a node's list are one incident. */
static void merge_first(struct hk_incidents *all, struct hk_fleet_sensor *s, const struct hk_fleet_node *n, uint32_t upto)
{
  for (uint32_t i = 0; i < upto; i++) {
    struct hk_incident *o = taking(all, n->active[i].child);
    if (o && o != s->incident)
      merge(all, s->incident, o);
  }
}

/* The first event of a sensor: a node that was just found to suffer takes it in. */
static void join_sick(struct hk_incidents *all, struct hk_fleet_sensor *s, int64_t window, int64_t longest)
{
  uint32_t group = 0;
  for (struct hk_fleet_child *c = hk_fleet_up(s, NULL, &group); c; c = hk_fleet_up(s, c, &group)) {
    struct hk_fleet_node *n = c->above;
    struct hk_incident *o = n->sick ? n->sick->incident : NULL;
    if (o && o != s->incident && all->time - n->newcomer <= window && all->time - o->open <= longest) {
      merge(all, s->incident, o);
      n->sick = s;
      n->newcomer = all->time;
      return;
    }
  }
}

static bool among_first(const struct hk_incidents *all, const struct hk_fleet_sensor *s, const struct hk_fleet_node *n,
                        uint32_t upto)
{
  for (uint32_t i = 0; i < upto; i++)
    if (taking(all, n->active[i].child) == s->incident)
      return true;
  return false;
}

void hk_company_look(struct hk_incidents *all, struct hk_fleet_sensor *s)
{
  const int64_t window = HK_INCIDENT_WINDOW * all->rules.interval, longest = HK_INCIDENT_LONGEST * all->rules.interval;
  uint32_t group = 0;
  if (s->raised == all->time && s->incident->n == 1)
    join_sick(all, s, window, longest);
  for (struct hk_fleet_child *c = hk_fleet_up(s, NULL, &group); c; c = hk_fleet_up(s, c, &group)) {
    struct hk_fleet_node *n = c->above;
    uint32_t upto;
    company_sweep(n, all->time, window);
    if (company_show(c, s) != 0 || n->n_active < 2 || all->time - s->incident->open > longest)
      continue;
    const double p = chance(all, n, &upto);
    if (upto == 0 || !among_first(all, s, n, upto))
      continue;
    merge_first(all, s, n, upto);
    if (-p > s->incident->company) {
      s->incident->company = -p;
      s->incident->node = n;
    }
    n->sick = s;
    n->newcomer = all->time;
  }
}
