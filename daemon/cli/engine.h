/* Opening a compute backend by name, for the commands that score without a daemon. */
#ifndef HK_ENGINE_H
#define HK_ENGINE_H

#include "cpu/backend.h"

/* The names that --backend takes, NULL at the end; the index is what hk_engine_open wants. */
extern const char *const hk_engine_names[];

/* Opens the backend; `auto` (0) is cuda where that opens, else cpu. 0 and *out, or a negative errno with a message. */
int hk_engine_open(struct hk_backend **out, int name, const struct hk_backend_config *config, char *error, size_t size);

#endif
