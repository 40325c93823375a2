/* Opening a compute backend by name, for the commands that score without a daemon. */
#ifndef HK_CHOOSE_H
#define HK_CHOOSE_H

#include "cpu/backend.h"

/* The names that --backend takes, NULL at the end; the index is what hk_choose_backend wants. */
extern const char *const hk_choices[];

/* Opens the backend; `auto` (0) is cuda where that opens, else cpu. 0 and *out, or a negative errno with a message. */
int hk_choose_backend(struct hk_backend **out, int choice, const struct hk_backend_config *config, char *error, size_t size);

#endif
