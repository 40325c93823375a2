/* Shard: the sensors of one device, and the batches that go to and fro.
 *
 * A batch is launched as soon as a place in flight is free and anything waits, so batches grow by themselves under load and a
 * point waits for no timer. They grow as far as one takes a quarter of a second or so: where scores are dear (wide windows,
 * exact SVD, the CPU) results keep flowing, and silence means that something is wrong. Results are handed to `results` in the
 * order in which the batches were launched.
 *
 * The stage is the side of the event loop, everything else the side of the device; they meet in hk_shard_launch and the reaping
 * alone. The loop never waits for the device.
 *
 * What can go wrong with a batch:
 *  - it is refused, by submit or when it comes back (-EINVAL, -ENOMEM): its points are dropped and counted, the device goes on;
 *  - it comes back with any other status, HK_SHARD_REFUSALS in a row found no memory, or nothing has come back from a device for
 *    the configuration's `device_timeout`, or it failed at something else: the device is lost. All that was in flight is dropped
 * and counted, the device is abandoned, and `lost` is called, which may put another one in its place (hk_shard_go_on). A backend
 * that is no device of its own (cpu, reference) is never lost: it fails with the whole process or not at all.
 *
 * Thread: the loop's, but for the wake-up from the backend's threads. */
#ifndef HK_SHARD_H
#define HK_SHARD_H

#include "daemon/counters.h"
#include "daemon/device.h"
#include "daemon/log.h"
#include "daemon/stage.h"

#include <uv.h>

#define HK_SHARD_LATENCIES 32 /* powers of two of microseconds */
#define HK_SHARD_REFUSALS 16

/* How a device was lost. */
struct hk_loss {
  int64_t time;             /* ns, wall clock; 0: no device was lost */
  const char *device;       /* its backend's name */
  char why[256];            /* in words */
  uint32_t batches, points; /* that were in flight */
};

struct hk_shard {
  struct hk_device *device; /* NULL: it was lost, and nothing is computed any more */
  struct hk_device *abandoned;
  struct hk_loss loss;
  struct hk_stage *stage; /* set before the first launch */
  struct hk_log *log;
  struct hk_counters *counters;
  void (*results)(void *arg, struct hk_batch *batch); /* batches of points and sweeps; valid during the call */
  void (*dropped)(void *arg,
                  const struct hk_batch *batch); /* there will be no results of these points: slots are valid, no more */
  void (*idle)(void *arg, uint32_t slot);        /* a sensor has been silent for `evict`, and nothing of it is pending */
  void (*settled)(void *arg);                    /* batches have been dealt with: sources may have room again */
  void (*lost)(void *arg);                       /* the device was lost; `device` is NULL */
  void *arg;
  uv_async_t wake;
  uv_timer_t check;
  char excuse[256];                      /* why the CPU and not the GPU, where the choice was ours; else "" */
  struct hk_batch *free;                 /* batches of points that are not in use */
  struct hk_batch *filled;               /* was refused for want of a place; goes first */
  struct hk_batch *sweep;                /* NULL while in flight */
  struct hk_batch *flying[HK_IN_FLIGHT]; /* ring of the batches in flight, oldest first */
  int64_t launched[HK_IN_FLIGHT];        /* ns: when */
  uint32_t first, in_flight;             /* of the rings */
  uint32_t most;                         /* points of the next batch */
  bool sweep_due;
  int64_t evict;
  int64_t timeout;    /* ns; 0 = none */
  int64_t stalled;    /* ns that nothing has come back, while something was in flight and we looked */
  int64_t checked;    /* ns: when we last looked */
  int64_t back_at;    /* ns: when a batch last came back */
  uint64_t back;      /* batches that have come back, */
  uint64_t back_then; /* and how many it were when we last looked */
  uint32_t refusals;  /* for want of memory, in a row */
  struct hk_log_quota failures;
  uint64_t latency[HK_SHARD_LATENCIES]; /* batches by floor(log2(us)) from launch to results */
};

/* Opens the backend that the configuration names; `auto` is the GPU where there is one, else the CPU. kinds: as hk_backend_kinds.
 * 0, or a negative errno with a message. */
int hk_shard_open(struct hk_shard *shard, uv_loop_t *loop, const struct hk_backend_kind *kinds, const struct hk_config *config,
                  char *error, size_t size);
/* Begins to look whether the device is alive; the loop is about to run. */
void hk_shard_start(struct hk_shard *shard);
/* Goes on with another device, which becomes the shard's. No slot is bound on it: the caller adds what there is. */
void hk_shard_go_on(struct hk_shard *shard, struct hk_device *device);
/* Waits for what is in flight, drops it, and frees everything. The loop must run once more afterwards. False: an abandoned
 * device hangs, and the process can only be ended with _exit. */
bool hk_shard_close(struct hk_shard *shard);

/* The device failed at something else than a batch. */
void hk_shard_fail(struct hk_shard *shard, const char *why);

void hk_shard_launch(struct hk_shard *shard);
void hk_shard_sweep(struct hk_shard *shard); /* asks for a sweep at the next launch */

/* True when nothing waits and nothing is in flight, or nothing will be computed any more. */
bool hk_shard_quiet(const struct hk_shard *shard);
/* ns for which nothing has come back though something is in flight. Time in which the loop did not run does not count. */
int64_t hk_shard_stalled(const struct hk_shard *shard);
/* The time in us that a share (0..1) of the batches took at most, to a power of two; 0 when there was none. */
uint64_t hk_shard_latency(const struct hk_shard *shard, double share);
/* Name of the backend that computes; "none" when none does. */
const char *hk_shard_backend(const struct hk_shard *shard);

#endif
