/* Device: an opened backend, the deliveries with batches in its memory, and the wake-up from its threads.
 *
 *   hk_device_open -> (batches are submitted and come back)... -> hk_device_close
 *                                                              -> hk_device_abandon -> hk_device_bury
 *
 * A failed or hanging device is abandoned as a whole: a separate thread waits for batches in flight or being published, frees
 * them and closes the backend, however long that takes. If the device hangs for ever, thread, batches and backend remain until
 * the process ends, which is deliberate: memory that the device may still write to must stay.
 *
 * Thread: the shard's; others may also call the backend under `calls`, to add and remove sensors. An abandoned device belongs to
 * its closing thread. */
#ifndef HK_DEVICE_H
#define HK_DEVICE_H

#include "daemon/base/wake.h"
#include "daemon/scoring/backends.h"
#include "daemon/scoring/delivery.h"
#include "daemon/sensors/slot_binding.h"

#include <pthread.h>

#define HK_BATCHES (2 * HK_IN_FLIGHT) /* of points: in flight, and being published; */
#define HK_BATCHES_HELD 24            /* additional ones if they are small and wait for a journal, whose commit may take long */
#define HK_BATCHES_MOST (HK_BATCHES + HK_BATCHES_HELD)
#define HK_EXPORTS 2 /* batches that export: one in flight, one being saved */
#define HK_EXPORT_SENSORS 1024u
#define HK_EXPORT_BYTES (1u << 20) /* of images */

struct hk_device {
  const struct hk_backend_kind *kind;
  struct hk_backend *backend;
  pthread_mutex_t calls;                   /* held while the backend is called */
  struct hk_slot_binding binding;          /* for the registry: binds slots on this backend, under `calls` */
  struct hk_delivery *exports[HK_EXPORTS]; /* each with a batch that has room for images; NULL without durability */
  uint32_t batches;
  struct hk_delivery *deliveries[HK_BATCHES_MOST + 1]; /* each owns a batch; number `batches` is for sweeps */
  pthread_mutex_t lock;
  struct hk_wake *wake; /* under lock: woken when a batch has finished; NULL: none */
  atomic_uint lent;     /* deliveries that loops have, or that are not back at the shard yet */
  uint32_t in_flight;   /* batches that the closing thread waits for */
  bool closing;         /* there is a closing thread */
  pthread_t closer;
};

/* The owner of a device. */
struct hk_device_place {
  uint32_t number, of;                 /* of the shard, and the number of shards: it has this share of the sensors */
  struct hk_wake *wake;                /* outlives the device; NULL: the backend is only queried, and no batches are made */
  const struct hk_detector *detectors; /* by number; NULL: the configuration's */
  uint32_t n_detectors;
};

/* Opens the backend of a choice. Returns 0 and *out, or a negative errno with a message. */
int hk_device_open(struct hk_device **out, const struct hk_backend_kind *kind, const struct hk_config *config, uint64_t memory,
                   const struct hk_device_place *place, char *error, size_t size);
/* Opens the configured backend; `auto` is the GPU if there is one, otherwise the CPU, and then excuse says why not the GPU. */
int hk_device_choose(struct hk_device **out, const struct hk_backend_kind *kinds, const struct hk_config *config,
                     const struct hk_device_place *place, char *excuse, size_t excuse_size, char *error, size_t size);
/* Closes a device with nothing in flight. */
void hk_device_close(struct hk_device *device);

/* Gives up a device; never waits. in_flight: batches that have not been reaped. No thread is woken from now on. */
void hk_device_abandon(struct hk_device *device, uint32_t in_flight);
/* Waits at most `seconds` for an abandoned device to be closed. False: it hangs; the process can only end with _exit. */
bool hk_device_bury(struct hk_device *device, unsigned seconds);

/* Lets a new sensor continue the numbers of its former alerts. slot: within the shard. Returns 0 or a negative errno. */
int hk_device_carry_number(struct hk_backend *backend, const struct hk_detector *detector, uint32_t slot, uint32_t number);

#endif
