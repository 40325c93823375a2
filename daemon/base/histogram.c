/* Reading histograms. See histogram.h. */
#include "daemon/base/histogram.h"

void hk_histogram_sum(struct hk_histogram *to, const struct hk_histogram *from)
{
  for (uint32_t i = 0; i < HK_HISTOGRAM_BUCKETS; i++) {
    const uint64_t n = atomic_load_explicit(&from->count[i], memory_order_relaxed);
    atomic_store_explicit(&to->count[i], atomic_load_explicit(&to->count[i], memory_order_relaxed) + n, memory_order_relaxed);
  }
}

uint64_t hk_histogram_count(const struct hk_histogram *h)
{
  uint64_t all = 0;
  for (uint32_t i = 0; i < HK_HISTOGRAM_BUCKETS; i++)
    all += atomic_load_explicit(&h->count[i], memory_order_relaxed);
  return all;
}

/* The longest time of a bucket. */
static uint64_t upper_end(uint32_t bucket)
{
  if (bucket < 2 * HK_HISTOGRAM_PART)
    return bucket;
  const uint32_t shift = (bucket >> HK_HISTOGRAM_PART_BITS) - 1;
  const uint64_t part = (bucket & (HK_HISTOGRAM_PART - 1)) + HK_HISTOGRAM_PART;
  return ((part + 1) << shift) - 1;
}

uint64_t hk_histogram_quantile(const struct hk_histogram *h, double share)
{
  const double wanted = share * (double)hk_histogram_count(h);
  uint64_t sum = 0;
  uint32_t last = 0;
  for (uint32_t i = 0; i < HK_HISTOGRAM_BUCKETS; i++) {
    const uint64_t n = atomic_load_explicit(&h->count[i], memory_order_relaxed);
    if (n == 0)
      continue;
    sum += n;
    last = i;
    if ((double)sum >= wanted)
      break;
  }
  return sum > 0 ? upper_end(last) : 0;
}

uint64_t hk_histogram_within(const struct hk_histogram *h, uint64_t ns)
{
  uint64_t sum = 0;
  for (uint32_t i = 0; i < HK_HISTOGRAM_BUCKETS && upper_end(i) <= ns; i++)
    sum += atomic_load_explicit(&h->count[i], memory_order_relaxed);
  return sum;
}

double hk_histogram_total(const struct hk_histogram *h)
{
  double sum = 0;
  for (uint32_t i = 0; i < HK_HISTOGRAM_BUCKETS; i++)
    sum += (double)atomic_load_explicit(&h->count[i], memory_order_relaxed) * (double)upper_end(i);
  return sum;
}
