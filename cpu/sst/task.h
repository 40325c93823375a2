/* A window to score, as kernels and their callers pass it. */
#ifndef HK_TASK_H
#define HK_TASK_H

#include "cpu/rules/window.h"

/* Maximum number of tasks in a group. */
#define HK_GROUP 16

/* One window to score. Owner of what the pointers refer to: the sensor. */
struct hk_task {
  const struct hk_window *window; /* in */
  const float *ring;              /* in: hk_detector_span() samples */
  float *feedback;                /* in and out: w numbers */
  float z;                        /* out: the score, [0, 1] */
  float share;                    /* out: share of the present's energy in mu, [0, 1] */
};

#endif
