/* The state of one sensor as bytes: for snapshots, and for moving a sensor to another backend or machine.
 *
 * Little-endian, no padding:
 *
 *   magic "HKSS", version u16 (3), kind u16 (1: algorithm = graph, 2: shift, 3: novelty, 4: limit; 0: the others), window u32,
 *     gap u32 (graph, novelty: resident, shift: stride; limit: both are the length of a block in ns, the lower half first)
 *   the fields of struct hk_window, then of struct hk_alert, in the order of the tables in state.c
 *   samples: `count` float32, oldest first; feedback: window float32 (graph, shift, novelty, limit: see the state.h of their
 * folders) XXH64 (seed 0) of all before it, u64
 *
 * Version 2, of before windows went on over holes, has three fields fewer of struct hk_window; it is read, and none is written.
 * Samples keep the bit that marks them as filled in. `seen` is on the arrival clock of the one who wrote it.
 *
 * Thread: none is involved; nothing is kept between calls. */
#ifndef HK_STATE_H
#define HK_STATE_H

#include "cpu/rules/alert.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a state with `count` samples; not of graphs. */
size_t hk_state_size(const struct hk_detector *d, uint32_t count);

/* Writes hk_state_size(d, window->count) bytes. ring: as the window left it. */
void hk_state_write(void *out, const struct hk_detector *d, const struct hk_window *window, const struct hk_alert *alert,
                    const float *ring, const float *feedback);

/* Reads a state for a sensor of detector d. Its other keys may be others than those of the detector that wrote it: what there is
 * no room for any more is left out. 0, or -EINVAL: not a state, of another version, damaged, of another algorithm, window or gap
 * (graph: resident, neighbours, or a level that was 0 and is not, or the other way; shift: stride), or with numbers that no
 * sensor can have. After an error nothing was written. The state may lie at any address. */
int hk_state_read(const void *state, size_t size, const struct hk_detector *d, struct hk_window *window, struct hk_alert *alert,
                  float *ring, float *feedback);

/* What a state says of itself, for whom its detector is not at hand. */
struct hk_state_about {
  uint32_t kind;        /* as in its head */
  uint32_t window, gap; /* gap: as in its head */
  uint32_t count;       /* samples */
  int64_t last_time;    /* ns */
  bool raised;          /* an alert stands */
};
/* 0, or -EINVAL: not a state, of another version, or damaged. */
int hk_state_look(const void *state, size_t size, struct hk_state_about *out);

/* Writes another number of its last alert into a state. 0 or -EINVAL. */
int hk_state_renumber(void *state, size_t size, uint32_t number);

/* The parts that states of every kind have in common, for cpu/graph/state.h. */
#define HK_STATE_CHECKSUM 8

/* Bytes before the samples' end. */
size_t hk_state_head_size(uint32_t count);
/* Writes these and returns where they end. */
uint8_t *hk_state_begin(void *out, const struct hk_detector *d, const struct hk_window *window, const struct hk_alert *alert,
                        const float *ring);
/* Writes the checksum of out..at-1 behind them. */
void hk_state_seal(void *out, uint8_t *at);
/* Reads what hk_state_begin has written and tests the checksum. *rest is what stands between the samples and the checksum, *size
 * how much. ring: room for hk_detector_span(d) samples. 0 or -EINVAL; after an error the contents of all are of no meaning. */
int hk_state_open(const void *state, size_t size, const struct hk_detector *d, struct hk_window *window, struct hk_alert *alert,
                  float *ring, const uint8_t **rest, size_t *rest_size);

/* A number of 1, 2, 4 or 8 bytes, to or from little-endian. Returns what is behind it. */
uint8_t *hk_state_put(uint8_t *out, const void *number, size_t size);
const uint8_t *hk_state_take(const uint8_t *in, void *number, size_t size);
/* n float32. */
uint8_t *hk_state_put_floats(uint8_t *out, const float *numbers, size_t n);
const uint8_t *hk_state_take_floats(const uint8_t *in, float *numbers, size_t n);

#ifdef __cplusplus
}
#endif
#endif
