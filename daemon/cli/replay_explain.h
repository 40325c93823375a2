/* Prints the end of `hankel replay` on standard error: sensors without a score, ignored points, and sensors that are counters. */
#ifndef HK_REPLAY_EXPLAIN_H
#define HK_REPLAY_EXPLAIN_H

#include "cpu/rules/rate.h"
#include "daemon/cli/fielded.h"
#include "daemon/cli/recording.h"
#include "proto/wire/event_message.h"

/* Counts of a slot, sensor * algorithms + algorithm. */
struct hk_replayed_points {
  struct hk_rate rate; /* for counters */
  uint64_t points, late, rejected;
  bool scored; /* at least one point was */
};

/* Owner of all: the caller. */
struct hk_replayed {
  const struct hk_recordings *csv;
  const struct hk_fielded *field; /* NULL: none */
  const struct hk_detector *detectors;
  uint32_t algorithms;
  const struct hk_replayed_points *of; /* by slot */
};

/* The name of a sensor in the results. */
const char *hk_replayed_sensor(const struct hk_recordings *csv, const struct hk_fielded *field, uint32_t sensor);

void hk_replayed_explain(const struct hk_replayed *replayed);

/* An event as it is printed. by: who is to blame (secondary), or the sensor where a change of a line began; NULL: neither. */
struct hankel_event hk_replayed_event(const struct hk_event *event, const char *name, const char *by, bool secondary);

#endif
