/* What `hankel bench` measures: one detector of its options, or the detectors of a daemon's configuration.
 *
 * Of a configuration every section gets the same number of sensors, and each of these a series for every algorithm of its
 * section, as in the daemon. Series i has detector i % n. Groups are left out: a thread of the daemon computes them, and no
 * backend.
 *
 * Owner: the caller. Thread: one. */
#ifndef HK_BENCH_PLAN_H
#define HK_BENCH_PLAN_H

#include "daemon/cli/load.h"
#include "daemon/config/config.h"

struct hk_bench_plan {
  const char *path; /* of the configuration; NULL: there is one detector, of the options */
  struct hk_config config;
  struct hk_detector *detectors; /* n of them: each section's, and behind it those of its further algorithms */
  uint32_t n, sections;
};

/* Reads a configuration. 0, or HK_EXIT_FAILED after a message. hk_bench_plan_free is due either way. */
int hk_bench_plan_read(struct hk_bench_plan *plan, char **argv, const char *path);
/* One detector of keys, "" for the default. 0, or HK_EXIT_USAGE after a message. As above. */
int hk_bench_plan_parse(struct hk_bench_plan *plan, char **argv, const char *keys);
void hk_bench_plan_free(struct hk_bench_plan *plan); /* zeroed is fine */

/* Series that `sensors` sensors have, with as many sensors for one section as for the other. The inverse: of as many series. */
uint32_t hk_bench_plan_series(const struct hk_bench_plan *plan, uint32_t sensors);
uint32_t hk_bench_plan_sensors(const struct hk_bench_plan *plan, uint32_t series);

/* Whether each point of each series must have a score, once all have warmed up. */
bool hk_bench_plan_scores_all(const struct hk_bench_plan *plan);

/* Prints what of the configuration is measured: a line for each detector, what is left out, and which limits of the configuration
 * so many sensors would be over. */
void hk_bench_plan_print(const struct hk_bench_plan *plan, const struct hk_load *load);

#endif
