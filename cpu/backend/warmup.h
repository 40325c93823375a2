/* How long a sensor of which nothing is known warms up: which of its points is the first with a score. Plain arithmetic over the
 * detector; test_warmup.c holds it against the backends.
 *
 * Points are counted from the first one that is accepted, or from the one with which the window starts over (window.h). Samples
 * that are filled in count as points. */
#ifndef HK_WARMUP_H
#define HK_WARMUP_H

#include "cpu/detector.h"

/* Number of the first point with a score, from 1. least < most where the window is found from the data (window = auto), or blocks
 * begin with the clock (limit): then it depends on that. */
struct hk_warmup {
  uint32_t least, most;
  int64_t time; /* ns, of algorithm = limit, else 0: it is a time that must have passed since the first point, and not a number of
                   points; least and most are those with the interval that was given, or 0 */
};

/* Of a detector that hk_detector_finish has made. Thread: any. */
struct hk_warmup hk_warmup(const struct hk_detector *detector);

#define HK_WARMUP_TEXT_MAX 96
/* That in words: "point 19", or "one of the points 500 to 1363, by the window that is found". */
void hk_warmup_text(struct hk_warmup warmup, char out[HK_WARMUP_TEXT_MAX]);

#endif
