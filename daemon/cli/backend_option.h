/* Opens a compute backend by name, for commands that score without a daemon. */
#ifndef HK_BACKEND_OPTION_H
#define HK_BACKEND_OPTION_H

#include "cpu/backend.h"

/* The values of --backend, terminated by NULL. An index into it is the `choice` of hk_choose_backend. */
extern const char *const hk_choices[];

/* Opens a backend; `auto` (0) is cuda if that opens, else cpu. Returns 0 and *out, or a negative errno with a message. */
int hk_choose_backend(struct hk_backend **out, int choice, const struct hk_backend_config *config, char *error, size_t size);

#endif
