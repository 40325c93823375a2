/* The sensors of a backend that computes on the host: which slot is bound to which record, where records live, and how the
 * points of a batch are told apart by sensor.
 *
 * A record is a struct hk_sensor followed by the ring and the feedback vector, or the graph. Records of a detector stand side by
 * side in slabs; a slab is never moved nor given back before close, so a record stays where it is.
 *
 * Thread: one (the shard's) for all functions but hk_sensors_sweep, which a worker may call at the same time. */
#ifndef HK_SENSORS_H
#define HK_SENSORS_H

#include "cpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Everything about one sensor. 16-byte aligned; whoever processes the sensor's points owns it at that time. */
struct hk_sensor {
  struct hk_window window;
  struct hk_alert alert;
  uint32_t detector; /* number */
  uint32_t slot;
  /* then: ring, hk_detector_span() samples; feedback, w samples, or for algorithm = graph hk_graph_size() bytes */
};

/* The points of one sensor in a batch: `first` is the earliest, hk_chains.next leads to the others in order. */
struct hk_chain {
  struct hk_sensor *sensor;
  uint32_t first;
};

#define HK_CHAIN_END UINT32_MAX         /* in next: the sensor has no more points */
#define HK_CHAIN_EVENT (UINT32_MAX - 1) /* in next, once the point is done: it caused the event at the same index */

/* A batch told apart by sensor. Lives in the batch's work column. */
struct hk_chains {
  struct hk_chain *chain; /* one for each sensor of the batch, those of a detector side by side */
  uint32_t *next;         /* aligned with the batch's points */
  uint32_t n;
};

struct hk_slot;
struct hk_pool;

/* Owner: the backend that embeds it. */
struct hk_sensors {
  struct hk_detector *detectors; /* our copy; window 0: the number means nothing */
  uint32_t n_detectors, room;    /* room: numbers that there may be */
  uint32_t max;                  /* slots */
  uint32_t n_touched;            /* of `touched`, while a batch is looked through */
  uint32_t sweep_from;           /* where the next sweep begins: the last one may have run out of room */
  _Atomic uint32_t high;         /* slots ever bound lie below */
  size_t sample_size;            /* bytes of one sample */
  uint64_t memory, limit;        /* bytes in slabs; limit 0 = none */
  struct hk_slot *slots;         /* address space for all, memory for those touched */
  struct hk_pool *pools;         /* one for each detector */
  uint32_t *touched;             /* detectors that the batch being looked through has */
};

/* 0, or a negative errno with a message. After an error there is nothing to close. */
int hk_sensors_open(struct hk_sensors *s, const struct hk_backend_config *config, size_t sample_size, char *error, size_t size);
void hk_sensors_close(struct hk_sensors *s);

/* Gives a number a new meaning (NULL: none) and its slabs back. It is below s->room, and no slot is bound to it. */
void hk_sensors_define(struct hk_sensors *s, uint32_t number, const struct hk_detector *d);
/* Sensors bound to a detector. */
uint32_t hk_sensors_bound(const struct hk_sensors *s, uint32_t detector);

/* As in struct hk_backend_ops. Memory is taken a slab at a time, so `need` grows in steps: it is what adding so many sensors
 * takes from the limit when none was there. The slot table, 16 bytes for each slot up to the highest in use, is not in it. */
uint64_t hk_sensors_need(const struct hk_sensors *s, uint32_t detector, uint64_t sensors);

/* Binds a slot and gives *out: window and alert zero but for the seed, samples not yet written. 0, HK_FULL (no memory under
 * the limit, or slot out of range), -EEXIST (slot bound), -EINVAL (no such detector), -ENOMEM. hk_sensors_show makes it
 * known to sweeps, once it is whole. */
int hk_sensors_add(struct hk_sensors *s, uint32_t slot, uint32_t detector, uint64_t seed, struct hk_sensor **out);
void hk_sensors_show(struct hk_sensors *s, struct hk_sensor *sensor);
void hk_sensors_remove(struct hk_sensors *s, uint32_t slot);

/* The sensor bound to a slot, or NULL. */
struct hk_sensor *hk_sensors_at(const struct hk_sensors *s, uint32_t slot);

/* Tells the points of a batch apart by sensor. 0, or -EINVAL: a slot is not bound, a sensor has over HK_BATCH_PER_SENSOR
 * points, or n is more than the capacity. */
int hk_sensors_chains(struct hk_sensors *s, const struct hk_batch *batch, struct hk_chains *out);

/* Looks for silent sensors: fills in the batch's events. Stops when there is no room for more; the next sweep goes on there. */
void hk_sensors_sweep(struct hk_sensors *s, struct hk_batch *batch);

static inline const struct hk_detector *hk_sensor_detector(const struct hk_sensors *s, const struct hk_sensor *sensor)
{
  return &s->detectors[sensor->detector];
}

/* The samples of a record: the ring first, the feedback vector or the graph after it. */
static inline void *hk_sensor_samples(struct hk_sensor *sensor)
{
  return sensor + 1;
}

#ifdef __cplusplus
}
#endif
#endif
