/* The name of a section of a configuration. */
#ifndef HK_SECTION_NAME_H
#define HK_SECTION_NAME_H

#include "daemon/config/config_reading.h"

/* The existing sections of a kind. */
struct hk_config_sections {
  const char *kind, *plural;
  const char *names; /* n of them, with a distance of `apart` bytes */
  size_t apart;
  uint32_t n, most;
};

/* Checks the name of a new section. True, and its name in out; or false with a complaint. */
bool hk_config_one_more(struct hk_config_reading *r, struct hk_config_sections there, const char *name,
                        char out[HK_CONFIG_NAME_MAX]);

#endif
