/* Queue: the batches in flight and the threads that process them. Batches are processed one after the other, each by all threads,
 * and returned in the order of submission.
 *
 * A batch consists of `pieces` pieces. Threads take runs of them, long ones at first and short ones towards the end, so that all
 * finish together; a lock is taken once for each batch, not for a run.
 *
 *   hk_queue_open -> hk_queue_submit ... hk_queue_reap ... -> hk_queue_close
 *
 * Thread: one (the shard's) for all functions. */
#ifndef HK_QUEUE_H
#define HK_QUEUE_H

#include "cpu/backend.h"
#include "cpu/backend/sensor_store.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest and shortest run of pieces that a thread takes (the last may be shorter). */
#define HK_RUN_MAX 64
#define HK_RUN_MIN 16

struct hk_queue;

/* One batch in flight. */
struct hk_job {
  struct hk_batch *batch;
  struct hk_chains chains; /* only for a batch of points */
  uint32_t pieces;
};

/* Functions that process a batch. Called from the queue's threads. */
struct hk_queue_work {
  void *owner;
  /* Processes pieces from..to-1 of a job; worker: 0..threads-1, the calling thread. Each piece is passed once. */
  void (*run)(void *owner, uint32_t worker, const struct hk_job *job, uint32_t from, uint32_t to);
  /* Called after all pieces: fills in the results of the whole batch. */
  void (*finish)(void *owner, const struct hk_job *job);
};

/* Starts `threads` threads (at least 1), for at most in_flight batches (0 = 4). ready: as in hk_backend_config. Returns 0, or a
 * negative errno with a message, and nothing to close. Allocates all memory of the queue. */
int hk_queue_open(struct hk_queue **out, const struct hk_queue_work *work, uint32_t threads, uint32_t in_flight,
                  void (*ready)(void *arg), void *ready_arg, char *error, size_t size);
/* Waits for batches in flight, then ends the threads. NULL is allowed. */
void hk_queue_close(struct hk_queue *q);

/* Whether no batch is in flight. */
bool hk_queue_idle(const struct hk_queue *q);
/* Whether all places are taken: reap first. */
bool hk_queue_full(const struct hk_queue *q);
/* Submits a job, which is copied; the queue must not be full. */
void hk_queue_submit(struct hk_queue *q, const struct hk_job *job);
/* As in struct hk_backend_ops. */
struct hk_batch *hk_queue_reap(struct hk_queue *q);
void hk_queue_wait(struct hk_queue *q);

#ifdef __cplusplus
}
#endif
#endif
