/* Latency histogram: how often something took how long, and the time that a share of it took at most.
 *
 * Buckets are log-linear: one for each of the first HK_HISTOGRAM_PART ns, then HK_HISTOGRAM_PART of equal width in every power of
 * two, so that a bucket is never wider than 1/32 of its times. Adding is an index and an increment; times beyond the last bucket
 * (18 minutes) count in it.
 *
 * Thread: one writer; anyone may read meanwhile and sees counts that are a moment old. */
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

/* Counts `n` times something that took so many ns; less than 0 counts as 0 (two clocks). */
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

/* Adds what `from` has counted to `to`, whose writer the caller is. */
void hk_histogram_sum(struct hk_histogram *to, const struct hk_histogram *from);
uint64_t hk_histogram_count(const struct hk_histogram *h);
/* How many took so many ns at most, of those whose bucket says so: never too many. */
uint64_t hk_histogram_within(const struct hk_histogram *h, uint64_t ns);
/* ns that all of them took together, each counted as the upper end of its bucket: never too little, and 1/32 too much at most. */
double hk_histogram_total(const struct hk_histogram *h);
/* ns that a share (0..1) of it took at most: the upper end of the bucket, so never too little; 0 when nothing was counted. */
uint64_t hk_histogram_quantile(const struct hk_histogram *h, double share);

#endif
