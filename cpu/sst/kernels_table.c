/* The table of one instruction set, and the scoring of a group. */
#include "cpu/sst/lanes.h"

static void group(struct hk_work *work, const struct hk_detector *d, struct hk_task *task, uint32_t n)
{
  const struct spans spans = spans_load(work, d, task, n);
  if (!any(~spans.present_zero)) { /* constant sensors cost little */
    for (uint32_t l = 0; l < n; l++)
      task[l].z = task[l].share = 0;
    return;
  }
  feedback_load(work, task, n, hk_detector_span(d));
  const bool svd = d->algorithm == HK_ALGORITHM_SVD;
  const vec energy = spans_energy(work->present, d->window);
  const vec square = svd ? svd_present(work, d) : ika_present(work, d);
  feedback_store(work, task, n, spans.present_zero);
  vec z = svd ? svd_score(work, d, n) : ika_score(work, d);
  z = pick(spans.past_zero, every(1), z);
  z = keep(~spans.present_zero, larger(every(0), pick(z > 1, every(1), z)));
  vec share = keep(~spans.present_zero, square * inverse(energy));
  share = pick(share > 1, every(1), share);
  for (uint32_t l = 0; l < n; l++) {
    task[l].z = z[l];
    task[l].share = share[l];
  }
}

#define STRING2(x) #x
#define STRING(x) STRING2(x)

#ifdef HK_HALF
extern const struct hk_kernels HK_PASTE(hk_kernels, HK_HALF);
#endif

extern const struct hk_kernels FOR_ISA(hk_kernels);
const struct hk_kernels FOR_ISA(hk_kernels) = {
  .name = STRING(HK_ISA),
  .lanes = HK_LANES,
#ifdef HK_HALF
  .half = &HK_PASTE(hk_kernels, HK_HALF),
#endif
  .score = group,
  .add_node = graph_add,
  .best_split = graph_profile,
  .novelty_pass = novelty_distances,
  .novelty_bring = novelty_lags_bring,
  .picture = &picture_rows,
  .load = spans_load_only,
  .split = hankel_split,
  .product = hankel_product,
  .eigen = eigen_solve,
};
