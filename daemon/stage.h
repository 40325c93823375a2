/* Stage: points that were accepted and wait for a batch, as columns in the order in which they came.
 *
 * push -> (fill a batch -> scored elsewhere -> done)...
 *
 * A batch takes the points in order, but at most HK_BATCH_PER_SENSOR of one sensor. What one sensor has beyond that is put
 * aside in a chain of its own, in order, and goes first into the next batches; so it delays nobody else, and every point is
 * moved at most twice.
 *
 * Every point has a source (a connection or a UDP listener), whose points that are not scored yet are counted: that is what
 * back-pressure and goodbyes go by. Memory is taken at the start, for `backlog` points; `room` says how many more fit.
 * Thread: the loop's. */
#ifndef HK_STAGE_H
#define HK_STAGE_H

#include "cpu/backend.h"

#include <stdbool.h>

struct hk_stage;

/* backlog: points; max_sensors: slots are below it. 0 and *out, or -ENOMEM. */
int hk_stage_new(struct hk_stage **out, uint32_t backlog, uint32_t max_sensors);
void hk_stage_free(struct hk_stage *stage); /* NULL is fine */

/* A new source. 0 and *out, or -ENOMEM. */
int hk_stage_open(struct hk_stage *stage, uint32_t *out);
/* No more points of this source will come. Its number is used again once its last point is done. */
void hk_stage_close(struct hk_stage *stage, uint32_t source);
/* Points of a source that are not done yet. */
uint32_t hk_stage_pending(const struct hk_stage *stage, uint32_t source);
/* Points of a sensor that are not done yet. */
uint32_t hk_stage_pending_of(const struct hk_stage *stage, uint32_t slot);

uint32_t hk_stage_room(const struct hk_stage *stage);    /* points that can be pushed */
uint32_t hk_stage_waiting(const struct hk_stage *stage); /* points that were pushed and are in no batch yet */

/* Takes a point; there must be room. */
void hk_stage_push(struct hk_stage *stage, uint32_t source, uint32_t slot, int64_t time, double value);

/* Takes out the points that wait for sensors that are gone. Returns how many. */
uint32_t hk_stage_purge(struct hk_stage *stage, bool (*gone)(void *arg, uint32_t slot), void *arg);

/* Moves what waits into an empty batch, as much as it holds and at most `most` points. sources: batch->capacity numbers, receives
 * the source of each. */
void hk_stage_fill(struct hk_stage *stage, struct hk_batch *batch, uint32_t most, uint32_t *sources);
/* The points of a batch have been dealt with. */
void hk_stage_done(struct hk_stage *stage, const struct hk_batch *batch, const uint32_t *sources);

#endif
