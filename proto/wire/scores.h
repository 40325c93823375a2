/* SCORES: the columns of results in a frame. */
#ifndef HK_SCORES_H
#define HK_SCORES_H

#include "proto/wire/payload.h"

/* SCORES, n at least 1. value, sequence NULL: not sent. The writer chooses the kind of times, and omits the states if all are
 * HANKEL_OK. */
int hk_scores_write(struct hk_writer *w, uint32_t n, const int64_t *time, const double *value, const uint64_t *sequence,
                    const uint32_t *handle, const float *score, const uint8_t *state);
struct hk_scores { /* unaligned columns: memcpy from them */
  uint32_t n;
  uint8_t time_kind;     /* enum hk_time_kind, except ARRIVAL */
  int64_t base;          /* ns: ONE, EVEN, STEPS */
  int64_t step;          /* ns: interval (EVEN), unit (STEPS) */
  const void *times;     /* int64_t (EACH); else NULL */
  const void *values;    /* double; NULL: not sent */
  const void *sequences; /* uint64_t; NULL: not sent */
  const void *handles;   /* uint32_t */
  const void *scores;    /* float */
  const void *steps;     /* uint32_t (STEPS); else NULL */
  const void *states;    /* uint8_t; NULL: all are HANKEL_OK */
};
int hk_scores_read(const struct hk_frame *f, struct hk_scores *s);
/* Expands the times into a column of s->n. */
void hk_scores_times(const struct hk_scores *s, int64_t *time);
/* Size of a whole frame of n results, bytes, at most. wide: how many of values and sequences are sent. */
size_t hk_scores_most(uint32_t n, unsigned wide);

#endif
