/* Change: the effect of a new configuration on a running daemon.
 *
 * Keys and detectors that a running daemon can take over are taken from the new one; keys that need a restart (marked in
 * daemon_keys.c) and listeners stay unchanged, and are reported by name. A detector is the same as before when its name and all
 * its parameters are: it keeps its number, and sensors that are its own notice nothing, whatever became of its glob and its
 * place. So does the one of a group's series, where the group has the name and the keys that it had. Any other one gets a number
 * that means nothing at the time. */
#ifndef HK_CHANGE_H
#define HK_CHANGE_H

#include "daemon/base/buffer.h"
#include "daemon/config/config.h"

#include <stdbool.h>

/* Makes `read` the next configuration: numbers its detectors, and shares the listeners of `running`. taken: by number, whether it
 * is in use. told: a line for each difference. False: none. */
bool hk_change_make(const struct hk_config *running, struct hk_config *read, const bool taken[HK_DETECTORS_MAX],
                    struct hk_buffer *told);
/* Whether groups differ, or stand in another order. */
bool hk_change_of_groups(const struct hk_config *a, const struct hk_config *b);

#endif
