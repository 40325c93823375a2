/* The sensors of a backend that computes on the host: binds slots to records, allocates records, and groups the points of a batch
 * by sensor.
 *
 * A record is a struct hk_sensor followed by the ring and the feedback vector, or the graph. Records of a detector are contiguous
 * in slabs; slabs are never moved, nor freed while a slot is bound to the detector, so records do not move.
 *
 * Thread: one (the shard's) for all functions except hk_sensors_sweep, which a worker may call concurrently. */
#ifndef HK_SENSOR_STORE_H
#define HK_SENSOR_STORE_H

#include "cpu/backend.h"
#include "cpu/rules/alert.h"
#include "cpu/rules/window.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All data of one sensor. 16-byte aligned. Owner: the thread that processes the sensor's points. */
struct hk_sensor {
  struct hk_window window;
  struct hk_alert alert;
  uint32_t detector; /* number */
  uint32_t slot;
  /* then: ring, hk_detector_span() samples; feedback, w samples, or for algorithm = graph hk_graph_size() bytes */
};

/* The points of one sensor in a batch: `first` is the earliest, hk_chains.next links the others in order. */
struct hk_chain {
  struct hk_sensor *sensor;
  uint32_t first;
};

#define HK_CHAIN_END UINT32_MAX         /* in next: the sensor has no more points */
#define HK_CHAIN_EVENT (UINT32_MAX - 1) /* in next, once the point is done: it caused the event at the same index */

/* The points of a batch grouped by sensor. Stored in the batch's work column. */
struct hk_chains {
  struct hk_chain *chain; /* one for each sensor of the batch; those of a detector are contiguous */
  uint32_t *next;         /* aligned with the batch's points */
  uint32_t n;
};

struct hk_slot;
struct hk_pool;

/* Owner: the backend that embeds it. */
struct hk_sensors {
  struct hk_detector *detectors; /* own copy; window 0: the number is undefined */
  uint32_t n_detectors, room;    /* room: maximum of detector numbers */
  uint32_t max;                  /* slots */
  uint32_t n_touched;            /* length of `touched`, while a batch is examined */
  uint32_t sweep_from;           /* where the next sweep begins: the last one may have run out of room */
  _Atomic uint32_t high;         /* all slots ever bound are below it */
  size_t sample_size;            /* bytes of one sample */
  uint64_t memory, limit;        /* bytes in slabs; limit 0 = none */
  struct hk_slot *slots;         /* address space for all slots, memory for the touched ones */
  struct hk_pool *pools;         /* one for each detector */
  uint32_t *touched;             /* detectors in the batch being examined */
};

/* Returns 0, or a negative errno with a message; then there is nothing to close. */
int hk_sensors_open(struct hk_sensors *s, const struct hk_backend_config *config, size_t sample_size, char *error, size_t size);
void hk_sensors_close(struct hk_sensors *s);

/* Redefines a detector number (NULL: undefines it) and frees its slabs. The number is below s->room, and no slot is bound to
 * it. */
void hk_sensors_define(struct hk_sensors *s, uint32_t number, const struct hk_detector *d);
/* Number of sensors bound to a detector. */
uint32_t hk_sensors_bound(const struct hk_sensors *s, uint32_t detector);

/* As in struct hk_backend_ops. Memory is allocated in slabs, so `need` grows in steps: it is what adding these sensors takes from
 * the limit if none existed. It excludes the slot table, 16 bytes for each slot up to the highest in use. */
uint64_t hk_sensors_need(const struct hk_sensors *s, uint32_t detector, uint64_t sensors);

/* Binds a slot. *out: window and alert are zero except the seed, samples are not written yet. Returns 0, HK_FULL (memory limit
 * reached, or slot out of range), -EEXIST (slot bound), -EINVAL (no such detector) or -ENOMEM. hk_sensors_show makes the sensor
 * visible to sweeps once it is complete. */
int hk_sensors_add(struct hk_sensors *s, uint32_t slot, uint32_t detector, uint64_t seed, struct hk_sensor **out);
void hk_sensors_show(struct hk_sensors *s, struct hk_sensor *sensor);
void hk_sensors_remove(struct hk_sensors *s, uint32_t slot);

/* The sensor bound to a slot, or NULL. */
struct hk_sensor *hk_sensors_at(const struct hk_sensors *s, uint32_t slot);

/* Groups the points of a batch by sensor. Returns 0, or -EINVAL: a slot is not bound, a sensor has more than HK_BATCH_PER_SENSOR
 * points, or n exceeds the capacity. */
int hk_sensors_chains(struct hk_sensors *s, const struct hk_batch *batch, struct hk_chains *out);

/* Finds silent sensors, and fills in the batch's events. Stops when there is no room for more; the next sweep continues there. */
void hk_sensors_sweep(struct hk_sensors *s, struct hk_batch *batch);

static inline const struct hk_detector *hk_sensor_detector(const struct hk_sensors *s, const struct hk_sensor *sensor)
{
  return &s->detectors[sensor->detector];
}

/* The samples of a record: the ring, followed by the feedback vector or the graph. */
static inline void *hk_sensor_samples(struct hk_sensor *sensor)
{
  return sensor + 1;
}

#ifdef __cplusplus
}
#endif
#endif
