/* The section [field NAME] of a configuration: many similar sensors, each of which gets a derived series. */
#ifndef HK_FIELD_SECTION_H
#define HK_FIELD_SECTION_H

#include "daemon/config/config_reading.h"

/* Functions of a struct hk_config_kind. */
bool hk_config_field_begin(struct hk_config_reading *r, const char *name);
void hk_config_field_key(struct hk_config_reading *r, const char *name, const char *value);
void hk_config_field_end(struct hk_config_reading *r);

/* Adds the detectors of the fields' series after all others: for each field those of the derived sensors, then that of its own.
 * */
void hk_config_add_fields(struct hk_config_reading *r);

/* Reads the files of neighbours and of models that fields name; a file's contents are part of the field's rule. Reports each
 * fault. Returns 0, or the negative errno of the last fault. */
int hk_config_read_graphs(struct hk_config *config, hk_config_fault *fault, void *arg);

#endif
