/* The kinds of sections of a configuration, and their keys. */
#ifndef HK_CONFIG_SECTION_KINDS_H
#define HK_CONFIG_SECTION_KINDS_H

#include "daemon/config/config_reading.h"

extern const struct hk_config_kind hk_config_kinds[]; /* first [daemon], which has no name; terminated by one without a word */

#endif
