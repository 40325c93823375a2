/* The state of one sensor as bytes: for snapshots, and for moving a sensor to another backend or machine.
 *
 * Little-endian, no padding:
 *
 *   magic "HKSS", version u16 (1), 0 u16, window u32, gap u32
 *   the fields of struct hk_window, then of struct hk_alert, in the order of the tables in state.c
 *   samples: `count` float32, oldest first; feedback: window float32
 *   XXH64 (seed 0) of all before it, u64
 *
 * Samples keep the bit that marks them as filled in. `seen` is on the arrival clock of the one who wrote it.
 *
 * Thread: none is involved; nothing is kept between calls. */
#ifndef HK_STATE_H
#define HK_STATE_H

#include "cpu/alert.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a state with `count` samples. */
size_t hk_state_size(const struct hk_detector *d, uint32_t count);

/* Writes hk_state_size(d, window->count) bytes. ring: as the window left it. */
void hk_state_write(void *out, const struct hk_detector *d, const struct hk_window *window, const struct hk_alert *alert,
                    const float *ring, const float *feedback);

/* Reads a state for a sensor of detector d. 0, or -EINVAL: not a state, of another version, damaged, of another window or
 * gap, or with numbers that no sensor can have. After an error nothing was written. The state may lie at any address. */
int hk_state_read(const void *state, size_t size, const struct hk_detector *d, struct hk_window *window, struct hk_alert *alert,
                  float *ring, float *feedback);

#ifdef __cplusplus
}
#endif
#endif
