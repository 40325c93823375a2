/* How long a new sensor warms up: the number of its first point with a score. Plain arithmetic on the detector; test_warmup.c
 * checks it against the backends.
 *
 * Points are counted from the first accepted one, or from the one with which the window starts over (window.h). Filled-in samples
 * count as points. */
#ifndef HK_WARMUP_H
#define HK_WARMUP_H

#include "cpu/detector.h"

/* Number of the first point with a score, from 1. least < most if it depends on the determined window (window = auto), or on
 * where the blocks begin (limit). */
struct hk_warmup {
  uint32_t least, most;
  int64_t time; /* limit: ns since the first point that must have passed, and least and most are the points in that at the given
                   interval, or 0 without one; other algorithms: 0 */
};

/* The widest window that can be found (window = auto), samples; without auto, the window. Thread: any. */
uint32_t hk_warmup_widest(const struct hk_detector *detector);

/* Computes the warm-up of a detector from hk_detector_finish. Thread: any. */
struct hk_warmup hk_warmup(const struct hk_detector *detector);

#define HK_WARMUP_TEXT_MAX 96
/* Describes it: "point 19", or "one of the points 400 to 1106, depending on the window that is found". */
void hk_warmup_text(struct hk_warmup warmup, char out[HK_WARMUP_TEXT_MAX]);

#endif
