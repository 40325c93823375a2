/* Queue: batches in flight and the threads that work on them. Batches are worked on one after the other, each by all
 * threads at once; they come back in the order in which they went in.
 *
 * A batch is `pieces` equal pieces to the queue. Threads take runs of them, long ones while much is left and short ones
 * towards the end, so that all finish together; no lock is taken for a run, and one for a batch.
 *
 *   hk_queue_open -> hk_queue_submit ... hk_queue_reap ... -> hk_queue_close
 *
 * Thread: one (the shard's) for all functions. */
#ifndef HK_QUEUE_H
#define HK_QUEUE_H

#include "cpu/backend.h"
#include "cpu/backend/sensor_store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest and shortest run of pieces that a thread takes at once (the last may be shorter). */
#define HK_RUN_MAX 64
#define HK_RUN_MIN 16

struct hk_queue;

/* One batch on its way. */
struct hk_job {
  struct hk_batch *batch;
  struct hk_chains chains; /* of a batch of points */
  uint32_t pieces;
};

/* What is done with a batch. Both are called from the queue's threads. */
struct hk_queue_work {
  void *owner;
  /* Pieces from..to-1 of a job; worker: 0..threads-1, the thread that calls. The same piece is never given twice. */
  void (*run)(void *owner, uint32_t worker, const struct hk_job *job, uint32_t from, uint32_t to);
  /* All pieces are done: fills in what belongs to the batch as a whole. */
  void (*finish)(void *owner, const struct hk_job *job);
};

/* Starts `threads` threads (at least 1), for at most in_flight batches (0 = 4). ready: as in hk_backend_config. 0, or a
 * negative errno with a message, and nothing to close. Nothing is allocated after this. */
int hk_queue_open(struct hk_queue **out, const struct hk_queue_work *work, uint32_t threads, uint32_t in_flight,
                  void (*ready)(void *arg), void *ready_arg, char *error, size_t size);
/* Waits for what is in flight, then ends the threads. NULL is allowed. */
void hk_queue_close(struct hk_queue *q);

/* True when nothing is in flight. */
bool hk_queue_idle(const struct hk_queue *q);
/* True when all places are taken: reap first. */
bool hk_queue_full(const struct hk_queue *q);
/* Takes a job (copied); the queue is not full. */
void hk_queue_submit(struct hk_queue *q, const struct hk_job *job);
/* As in struct hk_backend_ops. */
struct hk_batch *hk_queue_reap(struct hk_queue *q);
void hk_queue_wait(struct hk_queue *q);

#ifdef __cplusplus
}
#endif
#endif
