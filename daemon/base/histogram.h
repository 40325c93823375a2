/* Latency histogram: counts durations, and computes their quantiles.
 *
 * Buckets are log-linear: one for each of the first HK_HISTOGRAM_PART ns, then HK_HISTOGRAM_PART of equal width in each power of
 * two, so a bucket is at most 1/32 as wide as its times. The last bucket also counts longer times (over 18 minutes).
 *
 * Thread: one writer; any thread may read, and sees counts that may be slightly old. */
#ifndef HK_HISTOGRAM_H
#define HK_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HK_HISTOGRAM_PART 32u
#define HK_HISTOGRAM_PART_BITS 5
#define HK_HISTOGRAM_BITS 40 /* ns: times up to 2^40 are told apart */
#define HK_HISTOGRAM_BUCKETS ((HK_HISTOGRAM_BITS - HK_HISTOGRAM_PART_BITS + 1) * HK_HISTOGRAM_PART)

struct hk_histogram { /* all zero: nothing counted */
  _Atomic uint64_t count[HK_HISTOGRAM_BUCKETS];
};

/* Counts a duration of `ns` n times; a negative one (of two clocks) counts as 0. */
static inline void hk_histogram_add(struct hk_histogram *h, int64_t ns, uint64_t n)
{
  const uint64_t most = ((uint64_t)1 << HK_HISTOGRAM_BITS) - 1, t = ns < 0 ? 0 : (uint64_t)ns < most ? (uint64_t)ns : most;
  uint32_t bucket = (uint32_t)t;
  if (t >= HK_HISTOGRAM_PART) {
    const uint32_t shift = 63 - HK_HISTOGRAM_PART_BITS - (uint32_t)__builtin_clzll(t);
    bucket = (shift << HK_HISTOGRAM_PART_BITS) + (uint32_t)(t >> shift);
  }
  _Atomic uint64_t *count = &h->count[bucket];
  atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Adds the counts of `from` to `to`. Thread: the writer of `to`. */
void hk_histogram_sum(struct hk_histogram *to, const struct hk_histogram *from);
uint64_t hk_histogram_count(const struct hk_histogram *h);
/* Number of durations in buckets that end at or below `ns`: never too high. */
uint64_t hk_histogram_within(const struct hk_histogram *h, uint64_t ns);
/* Sum of all durations, ns, each taken as the upper end of its bucket: at most 1/32 too high, never too low. */
double hk_histogram_total(const struct hk_histogram *h);
/* Quantile `share` (0..1), ns: the upper end of its bucket, so never too low; 0 if nothing was counted. */
uint64_t hk_histogram_quantile(const struct hk_histogram *h, double share);

#endif
