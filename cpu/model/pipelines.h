/* The lines of a plan, each a pipeline.h, which are advanced together: the host's kind (pipelines_kind.h), and what a step takes.
 *
 * Thread: the owner's. */
#ifndef HK_PIPELINES_H
#define HK_PIPELINES_H

#include "cpu/model/pipelines_kind.h"

/* The kind of the host, for lines of pipes and heat lines. number: threads, at most one for each line; 0: one for each core. Of a
 * heat line s is the temperature, end[0].is and end[1].is are it and the flow at the first node, and friction is the factor of
 * the losses. */
extern const struct hk_pipelines_kind hk_pipelines_host;
/* Approximate bytes on the host with one thread. */
uint64_t hk_pipelines_need(const struct hk_model_plan *plan);

/* Estimates the seconds of a step of all lines on one thread of this machine: measures the median of some steps of the longest
 * line, and scales it to all cells; of a network, measures its steps. Returns 0 or a negative errno: the line cannot be solved;
 * -E2BIG: the network is too large for its solver. */
int hk_pipelines_measure(const struct hk_model_plan *plan, double interval, double *seconds);

/* Least number of lines for which a GPU is faster; a single line takes it several times as long as a core. */
#define HK_PIPELINES_DEVICE_LEAST 32u

#endif
