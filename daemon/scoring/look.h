/* Look: a copy of a sensor's state from its device, with those of its companions, for display.
 *
 *   hk_look_new -> hk_look_post -> (ready is called; outcome is no longer HK_LOOK_WAITS) -> hk_look_release
 *
 * The shard takes the copy between two turns, when no batch in flight names the sensor. If the sensor's points come without a
 * break, nothing is launched after HK_LOOK_PATIENCE until the copy is taken, at most once in HK_LOOK_REST, so that looks cost a
 * device little.
 *
 * Thread: the requester's, except for the functions of the shard. */
#ifndef HK_LOOK_H
#define HK_LOOK_H

#include "cpu/detectors.h"
#include "daemon/scoring/shard.h"

#include <stdatomic.h>

#define HK_LOOK_WAITS 1
#define HK_LOOK_PATIENCE 250000000 /* ns */
#define HK_LOOK_REST 1000000000    /* ns */

struct hk_look_part {
  uint32_t slot; /* the registry's */
  struct hk_detector detector;
  char section[HK_CONFIG_NAME_MAX]; /* of the configuration */
  void *state;                      /* cpu/rules/state.h; NULL: the sensor has none on the device */
  size_t size;
};

struct hk_look {
  struct hk_look *next;                    /* the shard's */
  uint32_t handle;                         /* of the sensor */
  uint32_t scores;                         /* maximum number of scores that the requester wants of each part */
  int64_t posted;                          /* ns, hk_now */
  int64_t taken;                           /* ns, wall clock */
  struct hk_look_part part[HK_ALGORITHMS]; /* the sensor itself first */
  uint32_t n;
  atomic_int outcome; /* HK_LOOK_WAITS; 0: taken; -ENOENT: the sensor no longer exists; -ENODEV: no backend; -ENOMEM */
  atomic_uint holders;
  void (*ready)(void *arg); /* called from the shard's thread; must be brief. arg outlives the shard's thread */
  void *arg;
};

/* Makes a look; NULL: no memory. */
struct hk_look *hk_look_new(uint32_t handle, void (*ready)(void *arg), void *arg);
void hk_look_release(struct hk_look *look); /* NULL is allowed */
/* Hands the look to the shard of the sensor. */
void hk_look_post(struct hk_shard *shard, struct hk_look *look);

/* Takes the looks that are possible now. Returns whether there were any. */
bool hk_shard_take_looks(struct hk_shard *shard);
/* Whether a look has waited so long that nothing may be launched before it. */
bool hk_shard_look_waits(const struct hk_shard *shard);
/* Shutdown: drops the looks; `ready` is not called. */
void hk_shard_drop_looks(struct hk_shard *shard);

#endif
