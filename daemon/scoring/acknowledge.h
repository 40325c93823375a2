/* Note: the acknowledgement of an alert, a request of a loop to a shard, which both hold until it is answered.
 *
 *   hk_note_new -> hk_note_post -> (the outcome is no longer HK_NOTE_WAITS; the shard has let go) -> hk_note_release
 *
 * Thread: the loop's, except acknowledge.c's functions for the shard. */
#ifndef HK_NOTE_H
#define HK_NOTE_H

#include "daemon/scoring/shard.h"
#include "proto/wire/message.h"

#include <stdatomic.h>

#define HK_NOTE_WAITS 1

struct hk_shard;

struct hk_note {
  struct hk_note *next; /* the shard's */
  uint32_t handle;      /* of the sensor */
  uint32_t number;      /* of the alert; 0: of whichever stands, and then of that */
  int64_t when;         /* ns, wall clock */
  uint64_t position;    /* in the event log; 0: it is in none */
  atomic_int
      outcome; /* HK_NOTE_WAITS; 0: taken; -ENOENT: that alert does not stand; -EALREADY: `by` has before, `when`; -ENOMEM */
  atomic_uint holders;
  char by[HK_WHO_MAX + 1];
};

/* NULL: no memory. by: 1 to HK_WHO_MAX bytes. */
struct hk_note *hk_note_new(uint32_t handle, uint32_t number, struct hk_string by, int64_t when);
void hk_note_release(struct hk_note *note); /* NULL is allowed */
/* Hands it to the shard of the sensor, which wakes all loops when it has answered. */
void hk_note_post(struct hk_shard *shard, struct hk_note *note);

/* Goes on with alerts that were acknowledged. True when there were any. */
bool hk_shard_take_notes(struct hk_shard *shard);
/* The end: they are not taken. */
void hk_shard_drop_notes(struct hk_shard *shard);

#endif
