/* Acknowledgement of an alert: a request of a loop to a shard. Both hold a reference until it is answered.
 *
 *   loop:   hk_acknowledgement_new -> hk_acknowledgement_post -> ... -> hk_acknowledgement_release
 *   shard:                                                       sets the outcome, and releases it
 *
 * Thread: the loop's, except for the functions of the shard. */
#ifndef HK_ACKNOWLEDGE_H
#define HK_ACKNOWLEDGE_H

#include "daemon/scoring/shard.h"
#include "proto/wire/message.h"

#include <stdatomic.h>

#define HK_ACKNOWLEDGEMENT_WAITS 1

struct hk_shard;

struct hk_acknowledgement {
  struct hk_acknowledgement *next; /* the shard's */
  uint32_t handle;                 /* of the sensor */
  uint32_t number;                 /* of the alert; 0: whichever stands, replaced by its number */
  int64_t when;                    /* ns, wall clock */
  uint64_t position;               /* in the event log; 0: not logged */
  atomic_int outcome; /* HK_ACKNOWLEDGEMENT_WAITS; 0: acknowledged; -ENOENT: that alert does not stand; -EALREADY: `by` had, at
                         `when`; -ENOMEM */
  atomic_uint holders;
  char by[HK_WHO_MAX + 1];
};

/* Makes an acknowledgement; NULL: no memory. by: 1 to HK_WHO_MAX bytes. */
struct hk_acknowledgement *hk_acknowledgement_new(uint32_t handle, uint32_t number, struct hk_string by, int64_t when);
void hk_acknowledgement_release(struct hk_acknowledgement *acknowledgement); /* NULL is allowed */
/* Hands it to the shard of the sensor, which wakes all loops when it has answered. */
void hk_acknowledgement_post(struct hk_shard *shard, struct hk_acknowledgement *acknowledgement);

/* Processes posted acknowledgements. Returns whether there were any. */
bool hk_shard_take_acknowledgements(struct hk_shard *shard);
/* Shutdown: drops them. */
void hk_shard_drop_acknowledgements(struct hk_shard *shard);

#endif
