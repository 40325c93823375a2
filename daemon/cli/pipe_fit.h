/* What the friction and the wave speed of a line or network of pipes are, by a recording of its sensors.
 *
 * Two numbers are looked for: what the friction factors of the file are multiplied by, and what its wave speeds are, the same for
 * all pipes. The model of these (cpu/model/model.h, which adapts nothing meanwhile) goes through the recording; the sum of
 * Huber's rho of what its checks differ by, each over the spread of its own, is made least by steps of Gauss and Newton (P. J.
 * Huber, Robust Statistics, 1981, section 7.8: weights 1 up to 1.345 spreads, then falling), with derivatives by differences.
 * Differences of a model are alike for long, so the standard errors are those of sums over blocks of time (H. White's, by
 * clusters), and not those of values that do not depend on each other.
 *
 * Not every recording shows both. The noise of measured boundaries makes the model quiver, and that says nothing of the line but
 * draws the numbers away from what is right (as errors of what stands on the right side of a regression do). So a number is seen
 * only if it changes what the checks should read by much more than it would if the boundaries stood still but for their noise:
 * the friction where there is a flow, the wave speed where pressure waves go through the line. What is not seen stays as the file
 * has it.
 *
 * Thread: the caller's. */
#ifndef HK_PIPE_FIT_H
#define HK_PIPE_FIT_H

#include "cpu/model/model.h"

#define HK_PIPE_FIT_BLOCKS 10 /* of time that a recording has to have, at least */
#define HK_PIPE_FIT_ERROR 0.1 /* the largest standard error of something that is seen */
#define HK_PIPE_FIT_HOLD 10   /* rows for which a boundary without a value keeps its last */

/* Rows of one interval, one after another; value[row * sensors + sensor], by sensor of the plan, in its unit; NaN: none. */
struct hk_fit_rows {
  uint32_t sensors;
  uint64_t rows;
  double interval; /* s */
  const double *value;
};

/* How a check and the model differ, over all rows in which they are compared. */
struct hk_fit_check {
  double mean, spread; /* of the differences, in the sensor's unit; spread: 1.4826 times the median distance from the median */
  double explained;    /* share of the sensor's variance that the model explains; NaN: it does not move */
  uint64_t values;
};

enum { HK_FIT_FRICTION, HK_FIT_WAVE, HK_FIT_NUMBERS };

struct hk_fit {
  double times[HK_FIT_NUMBERS]; /* what the file's are multiplied by; 1 where it is not seen */
  double error[HK_FIT_NUMBERS]; /* its standard error, as a share of it */
  bool seen[HK_FIT_NUMBERS];
  uint32_t steps, blocks;
  struct hk_fit_check *before, *after; /* by sensor of the plan; hk_fit_close frees them */
};

/* text: a model file of one line or a network that hk_model_plan_parse takes. 0, also where nothing is seen; -EINVAL: the
 * recording is too short, or the line cannot be computed, with a message; -ENOMEM. tell: called after each pass through the
 * recording with the approximate share of finished work; NULL: not called. */
int hk_fit_run(struct hk_fit *out, const char *text, size_t length, const struct hk_fit_rows *rows, void (*tell)(void *, double),
               void *arg, char *error, size_t size);
void hk_fit_close(struct hk_fit *fit);

/* The text of a model file with its friction factors and wave speeds multiplied, those of each line by numbers of its own; all
 * else, comments too, is as it was. NULL: no memory. The caller frees it. */
char *hk_fit_text(const char *text, size_t length, const double (*times)[HK_FIT_NUMBERS], size_t *out_length);
/* The same of one line of several: what belongs to others is empty, so that numbers of lines are those of the file. */
char *hk_fit_line(const char *text, size_t length, uint32_t line);

#endif
