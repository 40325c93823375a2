/* Encoding of results, events and gaps for subscribers: frames of PROTOCOL.md, or JSON lines. */
#ifndef HK_ENCODE_H
#define HK_ENCODE_H

#include "cpu/backend.h"
#include "daemon/buffer.h"
#include "daemon/config.h"
#include "daemon/registry.h"

/* Results of a batch: those whose indices are in chosen[0..n-1]. values: with the points' values (binary; text always has them).
 */
void hk_encode_results(struct hk_buffer *out, enum hk_protocol format, const struct hk_registry *registry,
                       const struct hk_batch *batch, const uint32_t *chosen, uint32_t n, bool values);
/* Events of a batch: those whose indices in batch->event are in chosen[0..n-1]. */
void hk_encode_events(struct hk_buffer *out, enum hk_protocol format, const struct hk_registry *registry,
                      const struct hk_batch *batch, const uint32_t *chosen, uint32_t n);
void hk_encode_gap(struct hk_buffer *out, enum hk_protocol format, uint64_t results, uint64_t events);
/* NAMES frames for slots[0..n-1]. */
void hk_encode_names(struct hk_buffer *out, const struct hk_registry *registry, const uint32_t *slots, uint32_t n);

#endif
