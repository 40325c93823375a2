/* What the registry needs of a shard's device to bind sensors to its slots and to explain refusals. The device's owner
 * (scoring/device.h) fills it in; it belongs to the device, and lives as long. */
#ifndef HK_SLOT_BINDING_H
#define HK_SLOT_BINDING_H

#include "cpu/backend.h"

#include <pthread.h>
#include <stdbool.h>

struct hk_slot_binding {
  struct hk_backend *backend;
  pthread_mutex_t *calls; /* held while the backend is called */
  bool may_fail;          /* a separate device, which may be lost while the rest of the machine works */
  /* Describes the last failure of the backend; "": none. */
  const char *(*words)(const struct hk_slot_binding *binding);
};

#endif
