/* Device: an opened backend, the batches in its memory, and the wake-up from its threads.
 *
 *   hk_device_open -> (batches go to and fro)... -> hk_device_close
 *                                                -> hk_device_abandon -> hk_device_bury
 *
 * A device that failed or hangs is abandoned whole: a thread of its own waits for what is in flight, frees the batches and
 * closes the backend, however long that takes. On a device that hangs it takes for ever; then thread, batches and backend
 * are left behind until the process ends, which is deliberate: whatever the device may still write to must stay.
 *
 * Thread: the loop's. Once abandoned, the device is its closing thread's. */
#ifndef HK_DEVICE_H
#define HK_DEVICE_H

#include "daemon/backend.h"

#include <pthread.h>
#include <uv.h>

struct hk_device {
  const struct hk_backend_kind *kind;
  struct hk_backend *backend;
  struct hk_batch *batches[HK_IN_FLIGHT + 1]; /* owner: room for a number of each point; the last is for sweeps */
  pthread_mutex_t lock;
  uv_async_t *wake;   /* under lock: told when a batch has finished; NULL: nobody is */
  uint32_t in_flight; /* batches that the closing thread waits for */
  bool closing;       /* there is a closing thread */
  pthread_t closer;
};

/* Opens the backend of a choice. wake: an open handle that outlives the device, or NULL: the backend is only to be asked, and no
 * batches are made. 0 and *out, or a negative errno with a message. */
int hk_device_open(struct hk_device **out, const struct hk_backend_kind *kind, const struct hk_config *config, uint64_t memory,
                   uv_async_t *wake, char *error, size_t size);
/* Opens what the configuration names; `auto` is the GPU where there is one, else the CPU, and then excuse says why not the GPU.
 */
int hk_device_choose(struct hk_device **out, const struct hk_backend_kind *kinds, const struct hk_config *config,
                     uv_async_t *wake, char *excuse, size_t excuse_size, char *error, size_t size);
/* Nothing may be in flight. */
void hk_device_close(struct hk_device *device);

/* Never waits. in_flight: batches that have not been reaped. Nobody is woken from now on. */
void hk_device_abandon(struct hk_device *device, uint32_t in_flight);
/* Gives an abandoned device `seconds` to get closed. False: it hangs; the process can only be ended with _exit. */
bool hk_device_bury(struct hk_device *device, unsigned seconds);

#endif
