/* Scoring on the CPU: the work space of a thread, and the division of groups into as many tasks as the kernels have lanes. */
#include "cpu/sst/score.h"
#include "cpu/sst/kernels.h"
#include "cpu/sst/svd_exact.h"

#include <errno.h>
#include <stdlib.h>

struct hk_scorer {
  const struct hk_kernels *kernels;
  struct hk_work work;
  float *memory;
};

static size_t score_larger(size_t a, size_t b)
{
  return a > b ? a : b;
}

/* Work space that the detectors need, in numbers for each lane. */
struct need {
  size_t span, padded, window, tree, steps, rows, krylov;
  int svd;
};

static struct need need_of(const struct hk_detector *detectors, size_t n_detectors)
{
  struct need need = { 0 };
  for (size_t i = 0; i < n_detectors; i++) {
    const struct hk_detector *d = detectors + i;
    if ((d->algorithm != HK_ALGORITHM_IKA && d->algorithm != HK_ALGORITHM_SVD) ||
        d->window == 0) /* needs no such work space; undefined */
      continue;
    const struct hk_shape shape = hk_shape(d->window);
    const int svd = d->algorithm == HK_ALGORITHM_SVD;
    size_t steps = score_larger(d->products, d->krylov);
    if (svd)
      steps = d->window < HK_SVD_STEPS ? d->window : HK_SVD_STEPS;
    need.svd |= svd;
    need.span = score_larger(need.span, hk_detector_span(d));
    need.window = score_larger(need.window, d->window);
    need.padded = score_larger(need.padded, shape.padded);
    need.tree = score_larger(need.tree, hk_tree_size(shape.padded, shape.levels));
    need.steps = score_larger(need.steps, steps);
    need.rows = score_larger(need.rows, steps * score_larger(steps, 2));
    need.krylov = score_larger(need.krylov, (steps + 1) * shape.padded);
  }
  return need;
}

int hk_scorer_new(struct hk_scorer **out, const struct hk_detector *detectors, size_t n_detectors)
{
  struct hk_scorer *scorer = calloc(1, sizeof *scorer);
  if (!scorer)
    return -ENOMEM;
  scorer->kernels = hk_kernels();
  struct hk_work *const work = &scorer->work;
  const struct need need = need_of(detectors, n_detectors);
  struct {
    float **block;
    size_t numbers;
  } blocks[] = {
    { &work->lines, (need.span + 15) / 16 * 16 },
    { &work->past, 2 * need.padded },
    { &work->present, 2 * need.padded },
    { &work->tree, need.tree },
    { &work->q, need.krylov },
    { &work->again, need.svd ? (HK_SVD_AGAIN + 1) * need.padded : 0 },
    { &work->u, need.padded },
    { &work->v, need.padded },
    { &work->mu, need.padded },
    { &work->sum, 2 * need.padded },
    { &work->alpha, need.steps },
    { &work->beta, need.steps },
    { &work->dots, need.steps },
    { &work->dots_kept, need.steps },
    { &work->diagonal, need.steps },
    { &work->beside, need.steps },
    { &work->rows, need.rows },
  };
  const size_t lanes = scorer->kernels->lanes;
  size_t numbers = 0;
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
    numbers += blocks[i].numbers;
  const size_t bytes = (numbers * lanes * sizeof(float) + 63) / 64 * 64;
  scorer->memory = aligned_alloc(64, score_larger(bytes, 64));
  if (need.svd)
    work->exact = hk_exact_new((uint32_t)need.window);
  if (!scorer->memory || (need.svd && !work->exact)) {
    hk_scorer_free(scorer);
    return -ENOMEM;
  }
  float *at = scorer->memory;
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
    *blocks[i].block = at;
    at += blocks[i].numbers * lanes;
  }
  *out = scorer;
  return 0;
}

void hk_scorer_free(struct hk_scorer *scorer)
{
  if (!scorer)
    return;
  hk_exact_free(scorer->work.exact);
  free(scorer->memory);
  free(scorer);
}

void hk_score(struct hk_scorer *scorer, const struct hk_detector *d, struct hk_task *task, size_t n)
{
  scorer->work.shape = hk_shape(d->window);
  while (n > 0) {
    const struct hk_kernels *k = scorer->kernels;
    while (k->half && n <= k->half->lanes)
      k = k->half;
    const uint32_t now = n < k->lanes ? (uint32_t)n : k->lanes;
    k->score(&scorer->work, d, task, now);
    task += now;
    n -= now;
  }
}

void hk_feedback_reset(float *feedback, uint64_t seed, uint32_t window)
{
  double squares = 0;
  for (uint32_t i = 0; i < window; i++) {
    const double x = hk_random_element(seed, i);
    squares += x * x;
  }
  const double by = squares > 0 ? 1 / sqrt(squares) : 0;
  for (uint32_t i = 0; i < window; i++)
    feedback[i] = (float)(hk_random_element(seed, i) * by);
}
