/* Detectors of several algorithms for the same sensors, written as one: `algorithm = ika, graph`.
 *
 * The first algorithm is the primary one, the others are its companions. A key counts for those of them to which it says
 * something, and must for one at least; `graph.window = 40` counts for one alone and goes before `window`. What no key says of an
 * algorithm is its default, as if it stood alone.
 *
 * In a text of "key=value,key=value" an item without = goes on with the list before it: "algorithm=ika,graph,window=96". */
#ifndef HK_DETECTORS_H
#define HK_DETECTORS_H

#include "cpu/detector.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HK_ALGORITHMS 6 /* of one sensor, at most: each once */
#define HK_COMPANIONS (HK_ALGORITHMS - 1)

/* What a sensor is best looked at with of which nothing is known: conf/hankeld.conf has it for every sensor, `hankel replay` and
 * `hankel evaluate` where no detector is given. Not what a key that is left out means: that is `ika` alone, for the others take
 * seventy times its memory. ika gives the score and no alerts: tests/bench/results/detection-example.txt says why, and what the
 * others' are worth. */
#define HK_DETECTORS_UNTUNED                                                                                                     \
  "algorithm=ika,graph,novelty,ika.alert=off," HK_UNTUNED_GRAPH("graph.") "," HK_UNTUNED_NOVELTY("novelty.")
/* Its keys for the graph and for novelty, each behind a prefix. */
#define HK_UNTUNED_GRAPH(prefix) prefix "roughness=0.85," prefix "shortest=2," prefix "locality=0.2"
#define HK_UNTUNED_NOVELTY(prefix) prefix "resident=5000"

/* Under construction. Zeroed at first. Owner: the caller. */
struct hk_detectors_draft {
  struct hk_detector_draft shared;
  struct hk_detector_draft own[HK_ALGORITHMS]; /* by enum hk_algorithm: keys with its name before them */
  uint8_t algorithm[HK_ALGORITHMS];            /* as they were given, n of them; 0: the key was not */
  uint32_t n;
};

/* Sets one key, with an algorithm's name and a dot before it or not. Returns 0, or -EINVAL with a message. */
int hk_detectors_set(struct hk_detectors_draft *draft, const char *key, const char *value, char *error, size_t size);

/* Makes a detector of each algorithm, the primary one first; returns how many, or -EINVAL with a message. */
int hk_detectors_finish(const struct hk_detectors_draft *draft, struct hk_detector out[HK_ALGORITHMS], char *error, size_t size);

/* Parses "key=value,key=value". As hk_detectors_finish. */
int hk_detectors_parse(const char *text, struct hk_detector out[HK_ALGORITHMS], char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
