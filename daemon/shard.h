/* Shard: the sensors of one backend, and the batches that go to and fro.
 *
 * A batch is launched as soon as a place in flight is free and anything waits, so batches grow by themselves under load and a
 * point waits for no timer. Results are handed to `results` in the order in which the batches were launched.
 *
 * The stage is the side of the event loop, everything else the side of the backend; they meet in hk_shard_launch and
 * hk_shard_reap alone. Thread: the loop's, but for the wake-up from the backend's threads. */
#ifndef HK_SHARD_H
#define HK_SHARD_H

#include "cpu/backend.h"
#include "daemon/config.h"
#include "daemon/counters.h"
#include "daemon/log.h"
#include "daemon/stage.h"

#include <uv.h>

#define HK_SHARD_IN_FLIGHT 4
#define HK_SHARD_LATENCIES 32 /* powers of two of microseconds */

struct hk_shard {
  struct hk_backend *backend;
  struct hk_stage *stage; /* set before the first launch */
  struct hk_log *log;
  struct hk_counters *counters;
  void (*results)(void *arg, struct hk_batch *batch); /* batches of points and sweeps; valid during the call */
  void (*idle)(void *arg, uint32_t slot);             /* a sensor has been silent for `evict`, and nothing of it is pending */
  void (*settled)(void *arg);                         /* batches have been dealt with: sources may have room again */
  void *arg;
  uv_async_t wake;
  uint32_t capacity;                                /* of a batch */
  struct hk_batch *free;                            /* batches of points that are not in use */
  struct hk_batch *filled;                          /* was refused for want of a place; goes first */
  struct hk_batch *sweep;                           /* NULL while in flight */
  struct hk_batch *batches[HK_SHARD_IN_FLIGHT + 1]; /* all of them, to be freed */
  uint32_t in_flight;
  bool sweep_due;
  int64_t evict;
  int64_t launched[HK_SHARD_IN_FLIGHT]; /* ns: ring of the launches in flight, oldest first */
  uint32_t first_launch;
  struct hk_log_quota failures;
  uint64_t latency[HK_SHARD_LATENCIES]; /* batches by floor(log2(us)) from launch to results */
};

/* Opens the backend that the configuration names. 0, or a negative errno with a message. */
int hk_shard_open(struct hk_shard *shard, uv_loop_t *loop, const struct hk_config *config, char *error, size_t size);
/* Waits for what is in flight, drops it, and frees everything. The loop must run once more afterwards. */
void hk_shard_close(struct hk_shard *shard);

void hk_shard_launch(struct hk_shard *shard);
void hk_shard_sweep(struct hk_shard *shard); /* asks for a sweep at the next launch */

/* True when nothing waits and nothing is in flight. */
bool hk_shard_quiet(const struct hk_shard *shard);
/* ns for which the oldest launch has been in flight; 0 when there is none. */
int64_t hk_shard_age(const struct hk_shard *shard);
/* The time in us that a share (0..1) of the batches took at most, to a power of two; 0 when there was none. */
uint64_t hk_shard_latency(const struct hk_shard *shard, double share);

/* Why a batch failed, in words. */
const char *hk_backend_failure(struct hk_backend *b, int status);

/* Opens a backend as the configuration says; `auto` is the GPU where there is one, else the CPU. 0, or negative errno with a
 * message. */
int hk_backend_open(struct hk_backend **out, const struct hk_config *config, void (*ready)(void *arg), void *arg, char *error,
                    size_t size);

#endif
