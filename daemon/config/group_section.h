/* The section [group NAME] of a configuration: the sensors of many machines, which are looked at together. */
#ifndef HK_GROUP_SECTION_H
#define HK_GROUP_SECTION_H

#include "daemon/config/config_reading.h"

/* Functions of a struct hk_config_kind. */
bool hk_config_group_begin(struct hk_config_reading *r, const char *name);
void hk_config_group_key(struct hk_config_reading *r, const char *name, const char *value);
void hk_config_group_end(struct hk_config_reading *r);

/* Makes a second group of each with statistic = both; then adds the detectors of the groups' series, which compute nothing, after
 * all others. */
void hk_config_add_groups(struct hk_config_reading *r);

#endif
