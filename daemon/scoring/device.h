/* Device: an opened backend, the deliveries with batches in its memory, and the wake-up from its threads.
 *
 *   hk_device_open -> (batches go to and fro)... -> hk_device_close
 *                                                -> hk_device_abandon -> hk_device_bury
 *
 * A failed or hanging device is abandoned as a whole: a separate thread waits for batches in flight or being published, frees
 * them and closes the backend, however long that takes. If the device hangs for ever, thread, batches and backend remain until
 * the process ends, which is deliberate: memory that the device may still write to must stay.
 *
 * Thread: the shard's; others may call the backend under `calls` too, to add and remove sensors. Once abandoned, the device is
 * its closing thread's. */
#ifndef HK_DEVICE_H
#define HK_DEVICE_H

#include "daemon/base/wake.h"
#include "daemon/scoring/backends.h"
#include "daemon/scoring/delivery.h"
#include "daemon/sensors/slot_binding.h"

#include <pthread.h>

#define HK_BATCHES (2 * HK_IN_FLIGHT) /* of points: in flight, and being published; */
#define HK_BATCHES_HELD 24            /* and more where they are small and wait for a journal: a commit may take a while */
#define HK_BATCHES_MOST (HK_BATCHES + HK_BATCHES_HELD)
#define HK_EXPORTS 2 /* batches that export: one in flight, one being saved */
#define HK_EXPORT_SENSORS 1024u
#define HK_EXPORT_BYTES (1u << 20) /* of images */

struct hk_device {
  const struct hk_backend_kind *kind;
  struct hk_backend *backend;
  pthread_mutex_t calls;                   /* held while the backend is called */
  struct hk_slot_binding binding;          /* for the registry, of these */
  struct hk_delivery *exports[HK_EXPORTS]; /* each with a batch that has room for images; NULL where nothing is durable */
  uint32_t batches;
  struct hk_delivery *deliveries[HK_BATCHES_MOST + 1]; /* each with a batch, whose owner it is; number `batches` is for sweeps */
  pthread_mutex_t lock;
  struct hk_wake *wake; /* under lock: woken when a batch has finished; NULL: none */
  atomic_uint lent;     /* deliveries that loops have, or that have not got back to the shard yet */
  uint32_t in_flight;   /* batches that the closing thread waits for */
  bool closing;         /* there is a closing thread */
  pthread_t closer;
};

/* The owner of a device. */
struct hk_device_place {
  uint32_t number, of;                 /* the shard's, and how many there are: of the sensors it has this share */
  struct hk_wake *wake;                /* outlives the device; NULL: the backend is only queried, and no batches are made */
  const struct hk_detector *detectors; /* by number; NULL: the configuration's */
  uint32_t n_detectors;
};

/* Opens the backend of a choice. 0 and *out, or a negative errno with a message. */
int hk_device_open(struct hk_device **out, const struct hk_backend_kind *kind, const struct hk_config *config, uint64_t memory,
                   const struct hk_device_place *place, char *error, size_t size);
/* Opens the configured backend; `auto` is the GPU if there is one, otherwise the CPU, and then excuse says why not the GPU.
 */
int hk_device_choose(struct hk_device **out, const struct hk_backend_kind *kinds, const struct hk_config *config,
                     const struct hk_device_place *place, char *excuse, size_t excuse_size, char *error, size_t size);
/* Nothing may be in flight. */
void hk_device_close(struct hk_device *device);

/* Never waits. in_flight: batches that have not been reaped. Nobody is woken from now on. */
void hk_device_abandon(struct hk_device *device, uint32_t in_flight);
/* Gives an abandoned device `seconds` to get closed. False: it hangs; the process can only be ended with _exit. */
bool hk_device_bury(struct hk_device *device, unsigned seconds);

/* Lets a new sensor continue the numbers of its former alerts. slot: within the shard. 0 or a negative errno. */
int hk_device_carry_number(struct hk_backend *backend, const struct hk_detector *detector, uint32_t slot, uint32_t number);

#endif
