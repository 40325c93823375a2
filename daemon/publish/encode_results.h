/* Encoding of results, events and gaps for subscribers: frames of PROTOCOL.md, or JSON lines. */
#ifndef HK_ENCODE_RESULTS_H
#define HK_ENCODE_RESULTS_H

#include "cpu/backend.h"
#include "daemon/base/buffer.h"
#include "daemon/config/config.h"
#include "daemon/durable/event_log.h"
#include "daemon/publish/view.h"
#include "daemon/sensors/registry.h"

#define HK_RESULTS_FRAME 31744u /* results in one frame: small enough to stay in a core's cache until it is sent */

/* Encodes the chosen results first..first+n-1 of a batch; binary: at most HK_RESULTS_FRAME, one frame. values: include the
 * points' values (text always does). sequence: of the batch's points; NULL: omitted. Text reads the registry's names, so call
 * between hk_registry_read and hk_registry_read_end. */
void hk_encode_results(struct hk_buffer *out, enum hk_protocol format, const struct hk_registry *registry,
                       const struct hk_batch *batch, const struct hk_choice *chosen, uint32_t first, uint32_t n, bool values,
                       const uint64_t *sequence);
/* Encodes the chosen events of batch->event. Names as above. what: of the subscription; position and sequence, if it asks for
 * them, are 0 or omitted, because these events have none. by: who acknowledged, for events of that kind; at most HK_WHO_MAX
 * bytes. */
void hk_encode_events(struct hk_buffer *out, enum hk_protocol format, const struct hk_registry *registry,
                      const struct hk_batch *batch, const struct hk_choice *chosen, uint32_t what, struct hk_string by);
/* Encodes events of the log, at most HK_LOGGED_FRAME; binary: after a NAMES frame with the names of all their sensors, under
 * handles that no sensor has. what: of the subscription. */
#define HK_LOGGED_FRAME 255u
void hk_encode_logged(struct hk_buffer *out, enum hk_protocol format, const struct hk_logged *events, uint32_t n, uint32_t what);
/* Encodes a change of an incident as a frame or a line. */
void hk_encode_incident(struct hk_buffer *out, enum hk_protocol format, const struct hk_logged_incident *incident, uint32_t what);
/* Appends the optional members of an event, each after a comma: maintenance, secondary, held alerts, resemblance, novelty, and
 * the time of a limit. */
void hk_encode_remarks(struct hk_buffer *out, const struct hk_event *event);
void hk_encode_gap(struct hk_buffer *out, enum hk_protocol format, uint64_t results, uint64_t events);
/* Encodes NAMES frames for slots[0..n-1]. Names as above. */
void hk_encode_names(struct hk_buffer *out, const struct hk_registry *registry, const uint32_t *slots, uint32_t n);

#endif
