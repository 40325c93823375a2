/* The state of one sensor as bytes: for snapshots, and for moving a sensor to another backend or machine.
 *
 * Little-endian, no padding:
 *
 *   samples: `count` float32, oldest first
 *   feedback: window float32 (graph, shift, novelty, limit: see the state.h of their folders)
 *   XXH64 (seed 0) of all before it, u64
 *
 * Version 2, from before windows continued over holes, lacks three fields of struct hk_window; it is read, but not written.
 * Samples keep the bit that marks them as filled in. `seen` is on the arrival clock of the writer.
 *
 * Thread: any; nothing is kept between calls. */
#ifndef HK_STATE_H
#define HK_STATE_H

#include "cpu/rules/alert.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a state with `count` samples; not for graphs. */
size_t hk_state_size(const struct hk_detector *d, uint32_t count);

/* Writes hk_state_size(d, window->count) bytes. ring: the window's ring. */
void hk_state_write(void *out, const struct hk_detector *d, const struct hk_window *window, const struct hk_alert *alert,
                    const float *ring, const float *feedback);

/* Reads a state for a sensor of detector d. Other keys may differ from those of the detector that wrote it: samples for which
 * there is no room are dropped. Returns 0, or -EINVAL: not a state, of another version, damaged, of another algorithm, window or
 * gap (graph: resident, neighbours, or whether level is 0; shift: stride), or with numbers that no sensor can have. After an
 * error nothing was written. The state need not be aligned. */
int hk_state_read(const void *state, size_t size, const struct hk_detector *d, struct hk_window *window, struct hk_alert *alert,
                  float *ring, float *feedback);

/* Description of a state, for callers without its detector. */
struct hk_state_about {
  uint32_t kind;        /* as in its head */
  uint32_t window, gap; /* gap: as in its head */
  uint32_t count;       /* samples */
  int64_t last_time;    /* ns */
  bool raised;          /* an alert is raised */
};
/* Returns 0, or -EINVAL: not a state, of another version, or damaged. */
int hk_state_look(const void *state, size_t size, struct hk_state_about *out);

/* Changes the number of the last alert in a state. Returns 0 or -EINVAL. */
int hk_state_renumber(void *state, size_t size, uint32_t number);

/* The parts common to states of every kind, for the state.h of graph, shift, novelty and limit. */
#define HK_STATE_CHECKSUM 8

/* Bytes up to the end of the samples. */
size_t hk_state_head_size(uint32_t count);
/* Writes these bytes and returns their end. */
uint8_t *hk_state_begin(void *out, const struct hk_detector *d, const struct hk_window *window, const struct hk_alert *alert,
                        const float *ring);
/* Writes the checksum of out..at-1 at `at`. */
void hk_state_seal(void *out, uint8_t *at);
/* Reads what hk_state_begin wrote, and checks the checksum. *rest, *rest_size: the bytes between the samples and the checksum.
 * ring: room for hk_detector_span(d) samples. Returns 0 or -EINVAL; after an error all outputs are undefined. */
int hk_state_open(const void *state, size_t size, const struct hk_detector *d, struct hk_window *window, struct hk_alert *alert,
                  float *ring, const uint8_t **rest, size_t *rest_size);

/* Writes or reads a little-endian number of 1, 2, 4 or 8 bytes. Returns the address after it. */
uint8_t *hk_state_put(uint8_t *out, const void *number, size_t size);
const uint8_t *hk_state_take(const uint8_t *in, void *number, size_t size);
/* The same for n float32. */
uint8_t *hk_state_put_floats(uint8_t *out, const float *numbers, size_t n);
const uint8_t *hk_state_take_floats(const uint8_t *in, float *numbers, size_t n);

#ifdef __cplusplus
}
#endif
#endif
