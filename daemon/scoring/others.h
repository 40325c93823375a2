/* Others: the names of the sensors that other machines of a cluster score, so that their results can be shown here. Nothing is
 * computed for them, and they take no memory of a device. */
#ifndef HK_OTHERS_H
#define HK_OTHERS_H

#include "daemon/sensors/registry.h"

struct hk_others {
  struct hk_registry *registry; /* for publishers; its slots are below max_sensors of the configuration at the start */
  struct hk_slot_binding binding;
  pthread_mutex_t calls;
  uint32_t detector; /* number of a detector, which means nothing */
};

/* config: outlives its use here. Returns 0 or a negative errno; to free in either case, if *out is not NULL. */
int hk_others_new(struct hk_others **out, const struct hk_config *config);
void hk_others_free(struct hk_others *others); /* NULL is allowed */
/* The slot of a name. Returns 0, or an enum hankel_refusal: no room, or it is no name. Thread: the cluster's. */
int hk_others_take(struct hk_others *others, struct hk_string name, uint32_t *slot);

#endif
