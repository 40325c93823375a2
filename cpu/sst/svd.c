/* SVD-SST in lanes: Lanczos with full re-orthogonalisation, run until the residuals of the wanted pairs and of the one after
 * them are at rounding level.
 *
 * A lane's result is taken at the first check that it passes, whatever its neighbours still do. A lane that passes none
 * within HK_SVD_STEPS goes to LAPACK. Eigenvalues that are there more than once show in a Krylov space as one. For the present
 * that matters only where the space is complete and holds less than the matrix's energy; for the past a lane that may have missed
 * one of their vectors is looked into (svd_missed.c). Either goes to LAPACK, too, and so do all where `solver` says so. */
#include "cpu/sst/lanes.h"
#include "cpu/sst/svd_exact.h"

#define COUNTS 0x1p-17f   /* of the largest |theta|: what an eigenvalue must exceed to count */
#define RESIDUAL 0x1p-16f /* of the largest |theta|: what is taken as converged */
#define PASSED 0x1p-21f   /* of the largest |theta|: a residual that has come down to rounding */
#define MISSING 0x1p-13f  /* of the energy: what a complete Krylov space may lack */

/* One run of Lanczos to convergence. */
struct run {
  struct krylov krylov;
  uint32_t pairs; /* desired pairs */
  uint32_t steps; /* steps done */
  uint32_t check; /* steps at which convergence is checked next */
  uint32_t limit; /* maximum number of steps */
  vec energy;
  vec least;     /* smallest |theta| that counted when the lane's result was taken */
  mask beyond;   /* lanes that went on long after their pairs had converged: rounding has brought others in, in part */
  mask complete; /* lanes whose space was complete when their result was taken */
  mask hides;    /* lanes whose matrix has room for another of that size outside the Krylov space */
  mask done;     /* lanes with a result */
  mask missing;  /* complete lanes with missing energy */
};

static void run_begin(struct run *run, struct hk_work *work, const float *x, uint32_t pairs)
{
  const uint32_t w = work->shape.window, first = pairs + 2 > 8 ? pairs + 2 : 8;
  *run = (struct run){ .pairs = pairs, .limit = w < HK_SVD_STEPS ? w : HK_SVD_STEPS, .energy = spans_energy(x, w) };
  run->check = first < run->limit ? first : run->limit;
  krylov_begin(&run->krylov, work, x, false, true);
}

/* Continues to the next check, and copies T for the eigenproblem. */
static void run_on(struct run *run)
{
  struct hk_work *const work = run->krylov.work;
  for (; run->steps < run->check; run->steps++)
    krylov_step(&run->krylov, run->steps, run->steps + 1 == work->shape.window);
  if (run->steps == work->shape.window)
    ((vec *)work->beta)[run->steps - 1] = (vec){ 0 };
  const uint32_t next = run->steps + (run->steps < 12 ? 4 : run->steps / 3);
  run->check = next < run->limit ? next : run->limit;
}

static void copy_t(const struct run *run)
{
  struct hk_work *const work = run->krylov.work;
  memcpy(work->diagonal, work->alpha, run->steps * sizeof(vec));
  memcpy(work->beside, work->beta, run->steps * sizeof(vec));
}

/* Which lanes pass now for the first time. last: the last components of the eigenvectors, or NULL. What is left to hide in is
 * noted. theta is read and kept. held: the sum over the wanted pairs that count of row^2. */
static mask run_check(struct run *run, const vec *last, const vec *row, vec *held)
{
  struct hk_work *const work = run->krylov.work;
  const vec *const theta = (const vec *)work->diagonal, *const alpha = (const vec *)work->alpha,
                   *const beta = (const vec *)work->beta;
  vec *const left = (vec *)work->beside, top = { 0 }, worst = { 0 }, energy = { 0 };
  const uint32_t m = run->steps, wanted = run->pairs + 1 < m ? run->pairs + 1 : m;
  for (uint32_t i = 0; i < m; i++) {
    left[i] = magnitude(theta[i]);
    top = larger(top, left[i]);
    energy += alpha[i] * alpha[i] + (i + 1 < m ? 2 * beta[i] * beta[i] : every(0));
  }
  vec least = { 0 };
  *held = every(0);
  for (uint32_t pair = 0; pair < wanted; pair++) {
    vec most = left[0], part = row[0], end = last[0];
    mask at = { 0 };
    for (uint32_t i = 1; i < m; i++) {
      const mask better = left[i] > most;
      most = pick(better, left[i], most);
      part = pick(better, row[i], part);
      end = pick(better, last[i], end);
      at = (better & (int32_t)i) | (~better & at);
    }
    if (pair < run->pairs)
      least = most;
    if (pair < run->pairs)
      *held += keep(most > top * COUNTS, part * part);
    worst = larger(worst, magnitude(end));
    for (uint32_t i = 0; i < m; i++)
      left[i] = pick(at == (int32_t)i, every(-1), left[i]);
  }
  const mask pass = ~run->done & (worst * beta[m - 1] <= top * RESIDUAL);
  run->done |= pass;
  const vec unseen = run->energy - energy;
  least = larger(least * (1 - 0x1p-8f), top * COUNTS);
  run->least = pick(pass, least, run->least);
  if (run->steps < run->krylov.work->shape.window)
    run->hides |= pass & (unseen + run->energy * 0x1p-16f > least * least);
  else
    run->hides |= pass & run->krylov.complete;
  run->complete |= pass & run->krylov.complete;
  run->beyond |= pass & ~run->krylov.complete & (worst * beta[m - 1] <= top * PASSED);
  run->missing |= pass & run->krylov.complete & (unseen > run->energy * MISSING);
  return pass;
}

static bool run_over(const struct run *run)
{
  return !any(~run->done) || run->steps == run->limit;
}

static void one_row(vec *row, uint32_t m, uint32_t at)
{
  for (uint32_t i = 0; i < m; i++)
    row[i] = every(i == at);
}

/* y := the eigenvector of largest |theta|, in the given lanes. theta and the rows come from the identity. */
static void take_vector(struct hk_work *work, uint32_t m, mask lanes, vec *y, vec *square)
{
  const vec *const theta = (const vec *)work->diagonal, *const row = (const vec *)work->rows;
  vec top = every(-1);
  for (uint32_t i = 0; i < m; i++) {
    const mask better = magnitude(theta[i]) > top, take = lanes & better;
    top = pick(better, magnitude(theta[i]), top);
    for (uint32_t s = 0; s < m; s++)
      y[s] = pick(take, row[s * m + i], y[s]);
  }
  *square = pick(lanes, top * top, *square);
}

vec svd_present(struct hk_work *work, const struct hk_detector *d)
{
  struct run run;
  vec *const y = (vec *)work->dots_kept, *const rows = (vec *)work->rows, *const mu = (vec *)work->mu;
  vec square = { 0 }, unused;
  run_begin(&run, work, work->present, 1);
  memset(y, 0, run.limit * sizeof *y);
  while (d->solver == HK_SOLVER_KRYLOV && !run_over(&run)) {
    run_on(&run);
    copy_t(&run);
    one_row(rows, run.steps, run.steps - 1);
    eigen_solve(work->diagonal, work->beside, run.steps, work->rows, 1);
    mask pass = run_check(&run, rows, rows, &unused);
    if (run.steps == run.limit)
      pass |= ~run.done; /* taken as they are, should LAPACK fail too */
    if (any(pass)) {
      copy_t(&run);
      eigen_identity(work->rows, run.steps);
      eigen_solve(work->diagonal, work->beside, run.steps, work->rows, run.steps);
      take_vector(work, run.steps, pass, y, &square);
    }
  }
  if (run.steps > 0)
    krylov_combine(work, work->mu, work->dots_kept, run.steps);
  const mask refuse = run.missing | ~run.done;
  for (uint32_t l = 0; any(refuse) && l < HK_LANES; l++) {
    if (!refuse[l] || run.energy[l] == 0)
      continue; /* and mu of a present that is nothing does not count */
    const double exact = hk_exact_present(work->exact, work->present + l, work->mu + l, HK_LANES, work->shape.window);
    if (exact >= 0)
      square[l] = (float)exact;
  }
  /* mu . a >= 0 */
  const vec along = dot(mu, (const vec *)work->q, work->shape.window);
  for (uint32_t i = 0; i < work->shape.window; i++)
    mu[i] = (vec)((mask)mu[i] ^ ((mask)along & INT32_MIN));
  return square;
}

/* Lanczos starts at mu mixed with a random vector, the same for all: from mu alone it would not see what is orthogonal to it. */
static void start(struct hk_work *work)
{
  const uint32_t w = work->shape.window;
  const vec *const mu = (const vec *)work->mu;
  vec *const u = (vec *)work->u;
  float squares = 0;
  for (uint32_t i = 0; i < w; i++) {
    const float x = (float)hk_random_element(0, i);
    u[i] = every(x);
    squares += x * x;
  }
  const float by = 1 / sqrtf(squares);
  for (uint32_t i = 0; i < w; i++)
    u[i] = mu[i] + u[i] * by;
  scale((vec *)work->q, u, inverse(root(dot(u, u, w))), w, work->shape.padded);
}

/* Lanes with a result continue with zeros, so that later results do not depend on the number of steps of other lanes. */
static void svd_leave(struct run *run, mask pass)
{
  const struct hk_shape *const shape = &run->krylov.work->shape;
  vec *const next = (vec *)run->krylov.work->q + (size_t)run->steps * shape->padded;
  if (!any(pass) || run->steps == shape->window)
    return;
  run->krylov.complete |= pass;
  for (uint32_t i = 0; i < shape->window; i++)
    next[i] = keep(~pass, next[i]);
}

vec svd_score(struct hk_work *work, const struct hk_detector *d, uint32_t n)
{
  const uint32_t w = work->shape.window;
  struct run run;
  vec *const along = (vec *)work->dots_kept, *const rows = (vec *)work->rows;
  const vec *const q = (const vec *)work->q, *const mu = (const vec *)work->mu;
  vec held = { 0 }, now;
  run_begin(&run, work, work->past, d->rank);
  start(work);
  uint32_t known = 0;
  while (d->solver == HK_SOLVER_KRYLOV && !run_over(&run)) {
    run_on(&run);
    for (; known < run.steps; known++)
      along[known] = dot(q + (size_t)known * work->shape.padded, mu, w);
    copy_t(&run);
    memcpy(rows, along, run.steps * sizeof *rows);
    one_row(rows + run.steps, run.steps, run.steps - 1);
    eigen_solve(work->diagonal, work->beside, run.steps, work->rows, 2);
    mask pass = run_check(&run, rows + run.steps, rows, &now);
    if (run.steps == run.limit)
      pass |= ~run.done;
    held = pick(pass, now, held);
    svd_leave(&run, pass);
  }
  vec z = 1 - held;
  mask refuse = ~run.done, look = run.done & run.hides;
  for (uint32_t l = n; l < HK_LANES; l++)
    look[l] = 0;
  if (any(look)) {
    look &= run.complete | svd_repeats(work, work->past, look & ~run.complete);
    refuse |= look & run.beyond;
    look &= ~run.beyond;
    if (any(look))
      refuse |= svd_missed(&run.krylov, run.steps, look, run.least);
  }
  for (uint32_t l = 0; any(refuse) && l < n; l++) {
    if (!refuse[l])
      continue;
    const double exact = hk_exact_score(work->exact, work->past + l, work->mu + l, HK_LANES, w, d->rank);
    if (exact >= 0)
      z[l] = (float)exact;
  }
  return z;
}
