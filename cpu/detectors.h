/* Detectors of several algorithms for the same sensors, configured as one: `algorithm = ika, graph`.
 *
 * The first algorithm is the primary one, the others are its companions. A key sets all of them to which it applies, and must
 * apply to at least one; `graph.window = 40` sets one algorithm only and takes precedence over `window`. Each algorithm has its
 * own defaults, as if it were the only one.
 *
 * In a text of "key=value,key=value" an item without = continues the preceding list: "algorithm=ika,graph,window=96". */
#ifndef HK_DETECTORS_H
#define HK_DETECTORS_H

#include "cpu/detector.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HK_ALGORITHMS 6 /* maximum for one sensor: each once */
#define HK_COMPANIONS (HK_ALGORITHMS - 1)

/* The recommended detectors for a sensor of which nothing is known: conf/hankeld.conf has them for every sensor, and `hankel
 * replay` and `hankel evaluate` use them without --detector. Not the default of the keys: that is `ika` alone, because the others
 * need seventy times its memory. ika gives the score and no alerts: see tests/bench/results/detection-example.txt, also for the
 * quality of the alerts of the others. */
#define HK_DETECTORS_UNTUNED                                                                                                     \
  "algorithm=ika,graph,novelty,ika.alert=off," HK_UNTUNED_GRAPH("graph.") "," HK_UNTUNED_NOVELTY("novelty.")
/* Their keys for graph and novelty, each after a prefix. */
#define HK_UNTUNED_GRAPH(prefix) prefix "roughness=0.85," prefix "shortest=2," prefix "locality=0.2"
#define HK_UNTUNED_NOVELTY(prefix) prefix "resident=5000"

/* Detectors under construction. Zero-initialise. Owner: the caller. */
struct hk_detectors_draft {
  struct hk_detector_draft shared;
  struct hk_detector_draft own[HK_ALGORITHMS]; /* by enum hk_algorithm: keys prefixed with its name */
  uint8_t algorithm[HK_ALGORITHMS];            /* n algorithms in the given order */
  uint32_t n;
};

/* Sets one key, optionally prefixed with the name of an algorithm and a dot. Returns 0, or -EINVAL with a message. */
int hk_detectors_set(struct hk_detectors_draft *draft, const char *key, const char *value, char *error, size_t size);

/* Makes a detector of each algorithm, the primary one first. Returns their number, or -EINVAL with a message. */
int hk_detectors_finish(const struct hk_detectors_draft *draft, struct hk_detector out[HK_ALGORITHMS], char *error, size_t size);

/* Parses "key=value,key=value". Returns as hk_detectors_finish. */
int hk_detectors_parse(const char *text, struct hk_detector out[HK_ALGORITHMS], char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
