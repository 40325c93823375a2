/* The kinds of sections of a configuration, and their keys. */
#ifndef HK_CONFIG_SECTION_KINDS_H
#define HK_CONFIG_SECTION_KINDS_H

#include "daemon/config/config_reading.h"

extern const struct hk_config_kind hk_config_kinds[]; /* first [daemon], which has no name; terminated by one without a word */

/* Adds the detectors of the groups' series, which compute nothing, after all others. */
void hk_config_add_groups(struct hk_config_reading *r);

#endif
