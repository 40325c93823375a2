/* The section [field NAME] of a configuration: many like sensors, each of which gets a derived series. */
#ifndef HK_FIELD_SECTION_H
#define HK_FIELD_SECTION_H

#include "daemon/config/config_reading.h"

/* As struct hk_config_kind has it. */
bool hk_config_field_begin(struct hk_config_reading *r, const char *name);
void hk_config_field_key(struct hk_config_reading *r, const char *name, const char *value);
void hk_config_field_end(struct hk_config_reading *r);

/* Adds the detectors of the fields' series behind all others: of each field those of the derived sensors, then that of its own.
 */
void hk_config_add_fields(struct hk_config_reading *r);

/* Reads the files of neighbours and of models that fields name; what a file says is part of the field's rule. Negative errno of
 * the last fault, of which each is told; 0: there is none. */
int hk_config_read_graphs(struct hk_config *config, hk_config_fault *fault, void *arg);

#endif
