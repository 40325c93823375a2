/* What `hankel bench` measures: one detector of its options, or the detectors of a daemon's configuration.
 *
 * Each section of a configuration gets the same number of sensors, and each sensor a series for each algorithm of its section, as
 * in the daemon. Series i has detector i % n. Groups are not measured: a thread of the daemon computes them, not a backend.
 *
 * Owner: the caller. Thread: one. */
#ifndef HK_BENCH_PLAN_H
#define HK_BENCH_PLAN_H

#include "daemon/cli/load.h"
#include "daemon/config/config.h"

struct hk_bench_plan {
  const char *path; /* path of the configuration; NULL: one detector, from the options */
  struct hk_config config;
  struct hk_detector *detectors; /* n of them: for each section its detector, then those of its further algorithms */
  uint32_t n, sections;
};

/* Reads a configuration. Returns 0, or HK_EXIT_FAILED after a message. The caller calls hk_bench_plan_free in both cases. */
int hk_bench_plan_read(struct hk_bench_plan *plan, char **argv, const char *path);
/* Makes a plan of one detector. keys: "" is the default. Returns 0, or HK_EXIT_USAGE after a message; to free as above. */
int hk_bench_plan_parse(struct hk_bench_plan *plan, char **argv, const char *keys);
void hk_bench_plan_free(struct hk_bench_plan *plan); /* zeroed is fine */

/* Number of series of `sensors` sensors, distributed equally over the sections; and the inverse. */
uint32_t hk_bench_plan_series(const struct hk_bench_plan *plan, uint32_t sensors);
uint32_t hk_bench_plan_sensors(const struct hk_bench_plan *plan, uint32_t series);

/* Whether each point of each series has a score after the warm-up. */
bool hk_bench_plan_scores_all(const struct hk_bench_plan *plan);

/* Prints what is measured: a line for each detector, what is omitted, and the limits of the configuration that the number of
 * sensors exceeds. */
void hk_bench_plan_print(const struct hk_bench_plan *plan, const struct hk_load *load);

#endif
