/* Change: the effect of a new configuration on a running daemon.
 *
 * The keys and detectors that a running daemon can adopt come from the new configuration; keys that need a restart (marked in
 * daemon_keys.c) and listeners stay unchanged, and are reported by name. A detector is unchanged if its name and all its
 * parameters are: it keeps its number, and its sensors are unaffected, even if its glob or place has changed. The same holds for
 * the detector of a group's series if the group's name and keys are unchanged. Any other detector gets an unused number. */
#ifndef HK_CONFIG_DIFF_H
#define HK_CONFIG_DIFF_H

#include "daemon/base/buffer.h"
#include "daemon/config/config.h"

#include <stdbool.h>

/* Makes `read` the next configuration: numbers its detectors, and shares the listeners of `running`. taken: by number, whether it
 * is in use. told: receives a line for each difference. False: no difference. */
bool hk_change_make(const struct hk_config *running, struct hk_config *read, const bool taken[HK_DETECTORS_MAX],
                    struct hk_buffer *told);
/* Whether groups, or their order, differ. */
bool hk_change_of_groups(const struct hk_config *a, const struct hk_config *b);

#endif
