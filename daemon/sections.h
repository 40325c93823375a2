/* Sections: the detectors of a configuration in the order in which they are asked whether a sensor is theirs, each with the
 * number that it has with backends and registry.
 *
 * They never change once made: another configuration has other ones, and these go with the last reference. Thread: any. */
#ifndef HK_SECTIONS_H
#define HK_SECTIONS_H

#include "daemon/config.h"

#include <stdbool.h>
#include <stddef.h>

struct hk_sections;

/* Of the configuration's detectors, which are copied. 0 and *out with one reference, or -ENOMEM. */
int hk_sections_new(struct hk_sections **out, const struct hk_config *config);
struct hk_sections *hk_sections_hold(struct hk_sections *sections); /* one reference more */
void hk_sections_release(struct hk_sections *sections);             /* NULL is fine */

/* The number of the first detector whose glob matches a name. False: there is none. */
bool hk_sections_find(const struct hk_sections *sections, const char *name, size_t length, uint32_t *number);

#endif
