/* Engine: the common part of the backends that compute on the host. It binds sensors, groups the points of batches by sensor,
 * passes batches to worker threads and returns them in order; a backend embeds it and adds the processing of a sensor's
 * points.
 *
 * The hk_engine_* functions of the second half are entries of the backend's table of operations.
 *
 * Thread: as in backend.h. */
#ifndef HK_ENGINE_H
#define HK_ENGINE_H

#include "cpu/backend.h"
#include "cpu/backend/queue.h"
#include "cpu/backend/sensor_store.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The functions in which such backends differ. */
struct hk_engine_kind {
  size_t sample_size; /* bytes of a sample: sizeof(hk_real) of the backend */
  bool lapack;        /* computes with it, whatever the detector */
  /* Makes the work space of one thread. Returns 0 and *out, or -ENOMEM. */
  int (*worker_new)(void **out, const struct hk_detector *detectors, uint32_t n_detectors);
  void (*worker_free)(void *worker); /* NULL is allowed */
  /* Sets the feedback vector of a sensor that was just bound. */
  void (*reset)(struct hk_sensor *sensor, const struct hk_detector *d);
  /* Processes the points of n sensors: fills in score and state of each, and calls hk_engine_event for those that cause an event.
   * Called from worker threads; concurrent calls have no sensor in common. */
  void (*run)(void *worker, const struct hk_detector *detectors, struct hk_batch *batch, const struct hk_chain *chain,
              uint32_t *next, uint32_t n);
  /* As export_ in struct hk_backend_ops, for a sensor. Also called from worker threads, like `run`. */
  int64_t (*export_)(struct hk_sensor *sensor, const struct hk_detector *d, void *state, size_t size);
};

/* A backend on the host. Owner: the caller of hk_engine_open. */
struct hk_engine {
  struct hk_backend backend;
  const struct hk_engine_kind *kind;
  struct hk_sensors sensors;
  struct hk_queue *queue;
  void **worker;
  uint32_t threads;
};

/* Records an event at a point, for `run`. The chain must not be followed through this point afterwards. */
static inline void hk_engine_event(struct hk_batch *batch, uint32_t *next, uint32_t point, const struct hk_event *event)
{
  batch->event[point] = *event;
  batch->event[point].index = point;
  batch->event[point].slot = batch->slot[point];
  next[point] = HK_CHAIN_EVENT;
}

/* Opens an engine with `threads` worker threads. Returns 0 and *out, or a negative errno with a message. */
int hk_engine_open(struct hk_backend **out, const struct hk_backend_ops *ops, const struct hk_engine_kind *kind,
                   const struct hk_backend_config *config, uint32_t threads, char *error, size_t size);

uint64_t hk_engine_need(const struct hk_backend *b, uint32_t detector, uint64_t sensors);
int hk_engine_add(struct hk_backend *b, uint32_t slot, uint32_t detector, uint64_t seed);
int hk_engine_define(struct hk_backend *b, const struct hk_definition *definitions, uint32_t n, char *error, size_t size);
void hk_engine_limit(struct hk_backend *b, uint64_t memory);
void hk_engine_remove(struct hk_backend *b, uint32_t slot);
int hk_engine_submit(struct hk_backend *b, struct hk_batch *batch);
struct hk_batch *hk_engine_reap(struct hk_backend *b);
void hk_engine_wait(struct hk_backend *b);
int64_t hk_engine_export(struct hk_backend *b, uint32_t slot, void *state, size_t size);
uint64_t hk_engine_image_most(const struct hk_detector *d);
const void *hk_engine_state_of(void *image, const struct hk_detector *d, void *room, size_t *size);
void *hk_engine_alloc(struct hk_backend *b, size_t bytes);
void hk_engine_free(struct hk_backend *b, void *memory);
void hk_engine_close(struct hk_backend *b);

#ifdef __cplusplus
}
#endif
#endif
