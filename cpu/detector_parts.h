/* Between the files that read detectors: detector.c knows the keys, detectors.c what several algorithms have in common. */
#ifndef HK_DETECTOR_PARTS_H
#define HK_DETECTOR_PARTS_H

#include "cpu/detectors.h"

/* Those of the keys that were given which say nothing of an algorithm, or have a value that means nothing to it; bits as in
 * `given`. */
uint32_t hk_detector_strange(const struct hk_detector_draft *draft, uint8_t algorithm);

/* Takes some of the keys that another draft was given, over what there is. */
void hk_detector_take(struct hk_detector_draft *to, const struct hk_detector_draft *from, uint32_t keys);

/* The name of the first of some keys; there is one. */
const char *hk_detector_key(uint32_t keys);

/* The algorithm of a name, or -EINVAL. */
int hk_algorithm_find(const char *name);

#endif
