/* Provisional scores: a smaller window scores a sensor of algorithm ika or svd with `provisional = yes` until the wanted window
 * is full. Its detector is ika with window HK_PROVISIONAL_WINDOW and the defaults of its other keys, but interval, fill,
 * max_fill, rate, hold and false_alarms as the sensor's; it raises no alerts where the sensor raises none. It has its first score
 * at point HK_PROVISIONAL_FIRST.
 *
 * It is computed by the caller, on the host, from the points and results of batches that have come back. So every backend has the
 * same provisional results, no backend knows of them, and results of full windows do not depend on them.
 *
 *   hk_provisional_new -> (a batch comes back -> hk_provisional_complete)... -> hk_provisional_free
 *
 * A result in state warming becomes HK_STATE_PROVISIONAL, with a score, once the small window is full. Events have the mark
 * HK_PROVISIONAL_MARK, and severity 0: unknown. A sensor counts them with its other alerts, so the numbers of events of the
 * backend are raised by the number of provisional alerts so far. When the wanted window is full, a standing provisional alert is
 * cleared at that point, and the small window is freed. It returns if the wanted window starts anew.
 *
 * Results depend on the sensor's points alone, not on how they are cut into batches, with one exception: an event for which a
 * batch has no room (each of its points has one) is left out.
 *
 * Thread: one at a time. */
#ifndef HK_PROVISIONAL_H
#define HK_PROVISIONAL_H

#include "cpu/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_PROVISIONAL_FIRST (3 * HK_PROVISIONAL_WINDOW - 1) /* point with the first score */
#define HK_PROVISIONAL_MARK 4                                /* in the marks of an event: HANKEL_PROVISIONAL of hankel.h */
#define HK_PROVISIONAL_SAVED 1024u                           /* maximum bytes of what is saved of a sensor */

/* The small windows of a set of sensors. */
struct hk_provisional;

/* What is known of a sensor by its slot. */
struct hk_provisional_sensors {
  void *arg;
  const struct hk_detector *(*detector)(void *arg, uint32_t slot); /* of the sensor; NULL: none */
  uint32_t (*number)(void *arg, uint32_t slot);                    /* of its last alert; NULL: not known otherwise */
};

/* Returns 0 and *out, or -ENOMEM. */
int hk_provisional_new(struct hk_provisional **out);
void hk_provisional_free(struct hk_provisional *p); /* NULL is allowed */

/* Completes a batch of points with results, batch->status 0; its slots are those of the backend. Returns 0, or -ENOMEM: some of
 * its points have no provisional result. */
int hk_provisional_complete(struct hk_provisional *p, const struct hk_provisional_sensors *sensors, struct hk_batch *batch);

/* Writes what is to be saved of a sensor after the batches so far, at most HK_PROVISIONAL_SAVED bytes; returns their number, 0:
 * nothing. hk_provisional_restore: continues from it, for a sensor with detector d, whose slot has no small window. Returns 0,
 * -EINVAL (damaged) or -ENOMEM, and then changes nothing. */
size_t hk_provisional_save(const struct hk_provisional *p, uint32_t slot, void *out);
int hk_provisional_restore(struct hk_provisional *p, uint32_t slot, const struct hk_detector *d, const void *saved, size_t size);
/* The slot is about to be given to another sensor. */
void hk_provisional_forget(struct hk_provisional *p, uint32_t slot);

/* Bytes that a small window takes. */
size_t hk_provisional_bytes(void);

#endif
