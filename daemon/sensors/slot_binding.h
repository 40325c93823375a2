/* What the registry has to know of the device of a shard, to bind sensors to its slots and to say why one was refused. The
 * device's owner (scoring/device.h) fills it in; it is the device's, and lives as long. */
#ifndef HK_SLOT_BINDING_H
#define HK_SLOT_BINDING_H

#include "cpu/backend.h"

#include <pthread.h>
#include <stdbool.h>

struct hk_slot_binding {
  struct hk_backend *backend;
  pthread_mutex_t *calls; /* held while the backend is called */
  bool may_fail;          /* a separate device, which may be lost while the rest of the machine works */
  /* What the backend last failed of, in words; "" when of nothing. */
  const char *(*words)(const struct hk_slot_binding *binding);
};

#endif
