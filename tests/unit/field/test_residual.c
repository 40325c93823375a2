/* The graph residual against its definition in double, the order in which nodes are taken, blame, and what must not matter. */
#include "cpu/field/residual.h"
#include "cpu/field/residual_learn.h"
#include "cpu/field/residual_refit.h"
#include "tests/unit/support/noise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NODES 12
#define ROOM 32
#define ROWS 1500
#define Q 4

static const struct hk_residual_rule rule = {
  .neighbours = Q, .refit = 24, .forget = 0.999, .clip = 3.75f, .fast = 4.0f / 96, .slow = 1.0f / 768
};
static double value[ROWS][ROOM], said[ROWS][ROOM];
static uint32_t out[ROWS]; /* nodes beyond their bound */
/* Sensors with a common signal, each with its own zero, scale and noise. */
static void weather(double zero, double missing)
{
  double front = 0;
  seed = 7;
  for (uint32_t t = 0; t < ROWS; t++) {
    front = 0.98 * front + noise();
    for (uint32_t i = 0; i < ROOM; i++)
      value[t][i] =
          i >= NODES || uniform() < missing ? NAN : zero + i + (1 + 0.1 * i) * (front + 2 * sin(t * 0.26)) + 0.3 * noise();
  }
}

/* Neighbours: the next ones in a ring. */
static void open_ring(struct hk_residual *f)
{
  assert_int_equal(hk_residual_open(f, &rule, NODES), 0);
  assert_int_equal(f->room, ROOM);
  for (uint32_t i = 0; i < NODES; i++)
    for (uint32_t k = 0; k < Q; k++)
      hk_residual_bind(f, i, k, (i + 1 + k) % NODES);
}

static void run(void)
{
  struct hk_residual f;
  open_ring(&f);
  for (uint32_t t = 0; t < ROWS; t++) {
    hk_residual_row(&f, value[t], said[t]);
    out[t] = f.out;
  }
  hk_residual_close(&f);
}

/* --- the definition, plainly and in double --------------------------------------------------------------------------- */

struct plain {
  double mean, square, spread, z, h, last, p, e, c, w[Q + 1], g[Q + 1][Q + 1], b[Q + 1], total;
  uint32_t seen, learned, errors, ripe[Q];
  bool made;
};

static double clip(double x, double limit)
{
  return fmax(-limit, fmin(limit, x));
}

static void standardise(struct plain *n, double x)
{
  n->z = n->seen == 96 ? (x - n->mean) / n->spread : NAN;
  if (isnan(x) || n->seen == 96)
    return;
  const double from = x - n->mean;
  n->mean += from / ++n->seen;
  n->square += from * (x - n->mean);
  n->spread = sqrt(n->square / n->seen);
  if (n->seen == 96 && n->spread <= 1e-9 * fabs(n->mean))
    n->seen = 0, n->mean = n->square = 0;
}

static double of_neighbours(const struct plain *all, uint32_t i, bool before)
{
  double sum = all[i].w[Q];
  for (uint32_t k = 0; k < Q; k++) {
    const struct plain *j = &all[(i + 1 + k) % NODES];
    const double h = !before ? j->h : isnan(j->z) ? j->last : j->z;
    sum += all[i].w[k] * (isnan(h) ? 0 : h);
  }
  return sum;
}

static void learn(struct plain *all, uint32_t i, const double c[NODES])
{
  struct plain *n = &all[i];
  double u[Q + 1] = { [Q] = 1 }, z = n->z;
  bool wild = n->made && isnan(n->e);
  n->last = n->h;
  if (isnan(n->z))
    return;
  for (uint32_t k = 0; k < Q; k++) {
    const uint32_t j = (i + 1 + k) % NODES;
    u[k] = isnan(all[j].h) ? 0 : all[j].h;
    wild |= c[j] > 0 && fabs(all[j].e) > 15 * c[j];
  }
  if (!isnan(n->e)) {
    const double weight = n->errors < 96 ? 1.0 / (n->errors + 1) : fmax(0.001, 1.0 / (n->errors + 1));
    z = c[i] > 0 ? n->p + clip(n->e, 3.75 * c[i]) : z;
    n->c += (fmin(fabs(n->e), c[i] > 0 ? 5 * c[i] : INFINITY) - n->c) * weight;
    n->errors++;
  }
  if (wild)
    return;
  for (uint32_t k = 0; k < Q; k++)
    n->ripe[k] += !isnan(all[(i + 1 + k) % NODES].z) && n->ripe[k] < 96;
  for (uint32_t a = 0; a <= Q; a++) {
    for (uint32_t b = 0; b <= Q; b++)
      n->g[a][b] = 0.999 * n->g[a][b] + u[a] * u[b];
    n->b[a] = 0.999 * n->b[a] + u[a] * z;
  }
  n->total = 0.999 * n->total + 1;
  n->learned++;
}

/* Gauss-Jordan elimination for the ripe neighbours. */
static void refit(struct plain *n)
{
  double m[Q + 1][Q + 2] = { { 0 } };
  uint32_t ripe = 0;
  for (uint32_t k = 0; k < Q; k++)
    ripe += n->ripe[k] == 96;
  n->made &= ripe >= 2;
  if (ripe < 2 || n->learned < 96)
    return;
  for (uint32_t a = 0; a <= Q; a++) {
    const bool is = a == Q || n->ripe[a] == 96;
    for (uint32_t b = 0; b <= Q && is; b++)
      m[a][b] = b == Q || n->ripe[b] == 96 ? n->g[a][b] : 0;
    m[a][a] += is ? 0.01 * n->total * (a < Q ? 1 : 1e-3) : 1;
    m[a][Q + 1] = is ? n->b[a] + (a < Q ? 0.01 * n->total / ripe : 0) : 0;
  }
  for (uint32_t a = 0; a <= Q; a++)
    for (uint32_t r = 0; r <= Q; r++)
      for (uint32_t b = Q + 2; r != a && b-- > a;)
        m[r][b] -= m[r][a] / m[a][a] * m[a][b];
  for (uint32_t a = 0; a <= Q; a++)
    n->w[a] = m[a][Q + 1] / m[a][a];
  n->made = true;
}

static void plain_row(struct plain all[NODES], const double *x, uint32_t t, double *r)
{
  double c[NODES];
  for (uint32_t i = 0; i < NODES; i++)
    standardise(&all[i], x[i]);
  for (uint32_t i = 0; i < NODES; i++) {
    all[i].h = all[i].z;
    if (isnan(all[i].z))
      all[i].h = all[i].made ? of_neighbours(all, i, true) : all[i].last;
  }
  for (uint32_t i = 0; i < NODES; i++) {
    struct plain *n = &all[i];
    double weight = 0, missing = 0;
    c[i] = n->errors < 96 ? 0 : n->c;
    n->e = n->p = NAN;
    if (!n->made || isnan(n->z))
      continue;
    for (uint32_t k = 0; k < Q; k++) {
      weight += fabs(n->w[k]);
      missing += isnan(all[(i + 1 + k) % NODES].z) ? fabs(n->w[k]) : 0;
    }
    n->p = of_neighbours(all, i, false);
    n->e = 2 * missing > weight ? NAN : n->z - n->p;
  }
  for (uint32_t i = 0; i < NODES; i++)
    r[i] = all[i].spread * all[i].e;
  for (uint32_t i = 0; i < NODES; i++)
    learn(all, i, c);
  for (uint32_t i = 0; i < NODES && (t + 1) % 24 == 0; i++)
    refit(&all[i]);
}

/* Number of nodes of a row whose error is beyond `share` of the bound. */
static uint32_t beyond(const struct plain all[NODES], double share)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < NODES; i++)
    n += all[i].errors > 96 && fabs(all[i].e) > share * 3.75 * all[i].c;
  return n;
}

/* Greatest difference from the definition, in spreads of the sensor; residuals must be there where the definition has some. */
static double differs(uint32_t *n)
{
  static struct plain all[NODES];
  double most = 0, r[NODES];
  memset(all, 0, sizeof all);
  for (uint32_t i = 0; i < NODES; i++)
    all[i].last = NAN;
  uint32_t n_out = 0;
  *n = 0;
  for (uint32_t t = 0; t < ROWS; t++) {
    plain_row(all, value[t], t, r);
    assert_in_range(out[t], beyond(all, 1.0001), beyond(all, 0.9999)); /* at the bound itself, rounding decides */
    n_out += out[t];
    for (uint32_t i = 0; i < NODES; i++) {
      assert_int_equal(isnan(said[t][i]), isnan(r[i]));
      *n += !isnan(r[i]);
      if (!isnan(r[i]))
        most = fmax(most, fabs(said[t][i] - r[i]) / all[i].spread);
    }
  }
  assert_true(n_out > 0);
  return most;
}

static void is_its_definition(void **state)
{
  (void)state;
  uint32_t n;
  weather(0, 0);
  run();
  print_message("# all there: %.2g\n", differs(&n));
  assert_true(differs(&n) < 1e-5 && n == NODES * (ROWS - 192));
  weather(1e6, 0.05);
  run();
  print_message("# about 1e6, 5 %% missing: %.2g\n", differs(&n));
  assert_true(differs(&n) < 1e-5 && n > NODES * (ROWS - 192) * 9 / 10);
  weather(-3, 0.4);
  run();
  print_message("# 40 %% missing: %.2g\n", differs(&n));
  assert_true(differs(&n) < 1e-5 && n > NODES * ROWS / 4 && n < NODES * ROWS * 3 / 5); /* for many there is a gap */
}

/* A constant sensor, one that starts late, one that falls silent for long, spikes of any size: as the definition. */
static void odd_sensors(void **state)
{
  (void)state;
  uint32_t n;
  weather(1e6, 0);
  for (uint32_t t = 0; t < ROWS; t++) {
    value[t][3] = 5;
    value[t][5] = t < 700 ? NAN : value[t][5];
    value[t][8] = t > 900 && t < 1100 ? NAN : value[t][8];
  }
  value[800][1] = 1e30;
  value[801][1] = -1e12;
  value[1200][7] = 1e9;
  run();
  print_message("# odd ones: %.2g\n", differs(&n));
  for (uint32_t t = 0; t < ROWS; t++)
    assert_true(isnan(said[t][3]));
  assert_true(n > 10 * (ROWS - 192) - 700);
  for (uint32_t t = 810; t < 900; t++) /* no prediction has learned from the spike */
    for (uint32_t i = 0; i < NODES; i++)
      assert_true(isnan(said[t][i]) || fabs(said[t][i]) < 5);
  value[800][1] = value[799][1]; /* for a spike's leak is as great */
  value[801][1] = value[799][1];
  value[1200][7] = value[1199][7];
  run();
  assert_true(differs(&n) < 1e-5);
}

/* Within a pass, nodes may be computed in any order: no node reads what another one writes. */
static void any_order(void **state)
{
  (void)state;
  struct hk_residual f;
  weather(20, 0.1);
  run();
  open_ring(&f);
  for (uint32_t t = 0; t < ROWS; t++) {
    double r[ROOM];
    for (uint32_t i = ROOM; i-- > 0;)
      hk_residual_standardise(&f, value[t], i);
    for (uint32_t i = 0; i < ROOM; i++)
      hk_residual_show(&f, (i * 5 + t) % ROOM);
    for (uint32_t i = ROOM; i-- > 0;)
      r[i] = hk_residual_predict(&f, i);
    for (uint32_t i = 0; i < ROOM; i++)
      hk_residual_learn(&f, (i * 7 + t) % ROOM);
    for (uint32_t i = ROOM; (t + 1) % rule.refit == 0 && i-- > 0;)
      hk_residual_refit(&f, i);
    for (uint32_t i = 0; i < ROOM; i++)
      assert_true(isnan(r[i]) ? isnan(said[t][i]) : memcmp(&r[i], &said[t][i], sizeof r[i]) == 0);
  }
  hk_residual_close(&f);
}

/* One sensor steps: its neighbours blame it, and it blames none. */
static void blames(void **state)
{
  (void)state;
  uint32_t others = 0, own = 0, before = 0;
  weather(0, 0);
  for (uint32_t t = 1000; t < ROWS; t++)
    value[t][6] += 1.5;
  run();
  for (uint32_t t = 1060; t < 1200; t++) {
    own += hk_residual_blamed(said[t][6]) != 0;
    for (uint32_t k = 0; k < Q; k++)
      others += hk_residual_blamed(said[t][(6 + NODES - 1 - k) % NODES]) == 1 + k;
  }
  for (uint32_t i = 0; i < NODES; i++)
    before += hk_residual_blamed(said[900][i]) == HK_RESIDUAL_BLAME_BITS;
  print_message("# blamed by its neighbours in %u of 560, blames in %u of 140\n", others, own);
  assert_true(own == 0 && others > 400 && before == 0);
  assert_int_equal(hk_residual_blamed(hk_residual_tag(-1.25, 7)), 7);
  assert_true(fabs(hk_residual_tag(-1.25, 31) + 1.25) < 1e-14);
}

/* The bytes of a state; more room; another neighbour; a node that another sensor takes. */
static void goes_on(void **state)
{
  (void)state;
  struct hk_residual f, g;
  weather(0, 0.02);
  run();
  open_ring(&f);
  for (uint32_t t = 0; t < ROWS; t++) {
    double r[256];
    if (t == 500)
      assert_int_equal(hk_residual_grow(&f, 200), 0);
    if (t % 101 == 7) {
      const size_t size = hk_residual_state_size(&rule, NODES);
      void *bytes = malloc(size);
      assert_true(bytes && size % 8 == 0);
      hk_residual_write(&f, NODES, bytes);
      assert_int_equal(hk_residual_open(&g, &rule, f.room), 0);
      assert_true(hk_residual_read(&g, NODES, bytes));
      hk_residual_close(&f);
      f = g;
      free(bytes);
    }
    double x[256];
    for (uint32_t i = 0; i < f.room; i++)
      x[i] = i < ROOM ? value[t][i] : NAN;
    hk_residual_row(&f, x, r);
    for (uint32_t i = 0; i < ROOM; i++)
      assert_true(isnan(r[i]) ? isnan(said[t][i]) : memcmp(&r[i], &said[t][i], sizeof r[i]) == 0);
  }
  hk_residual_bind(&f, 0, 2, HK_RESIDUAL_NONE);
  assert_true(f.made[0] && f.weight[hk_residual_at(Q + 1, 2, 0)] == 0);
  hk_residual_bind(&f, 0, 1, HK_RESIDUAL_NONE);
  hk_residual_bind(&f, 0, 0, HK_RESIDUAL_NONE);
  assert_false(f.made[0]); /* one is too few */
  hk_residual_forget(&f, 5);
  assert_true(f.settled[5] == 0 && f.neighbour[5] == HK_RESIDUAL_NONE && isnan(f.last[5]) && f.made[4]);
  hk_residual_close(&f);
}

/* A regression without a solution is not used. */
static void refuses(void **state)
{
  (void)state;
  double singular[] = { 1, 1, 1, 1, 1 }, good[] = { 4, 9, 2, 9, 3, 9, 2, 9, 5, 9 };
  const struct hk_residual_ridge one = { singular, 1, 2 }, two = { good, 2, 2 };
  assert_false(hk_residual_solve(&one));
  assert_true(hk_residual_solve(&two));
  assert_true(fabs(good[6] + 0.5) < 1e-15 && fabs(good[8] - 2) < 1e-15 && good[7] == 9);
  struct hk_residual f;
  weather(0, 0);
  open_ring(&f);
  for (uint32_t t = 0; t < 300; t++)
    hk_residual_row(&f, value[t], said[t]);
  const float before = f.weight[0];
  f.product[0] = -1e9;
  hk_residual_refit(&f, 0);
  assert_true(f.refused[0] == 1 && f.weight[0] == before);
  hk_residual_close(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(is_its_definition), cmocka_unit_test(odd_sensors), cmocka_unit_test(any_order), cmocka_unit_test(blames),
    cmocka_unit_test(goes_on),           cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
