/* Batches in flight: see queue.h.
 *
 * Places form a ring, counted by three numbers that only grow: submitted >= finished >= reaped. The job at `finished` is the
 * one being worked on. A thread enters it, takes pieces until none is left, and leaves; no thread enters a job with no piece
 * left, so the last to leave has it for itself, finishes the batch and opens the next. Entering and leaving take the lock. */
#include "cpu/backend/queue.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place {
  struct hk_job job;
  uint32_t inside;                     /* threads that process it; protected by the lock */
  _Alignas(64) _Atomic uint32_t taken; /* pieces taken by threads */
};

struct worker {
  struct hk_queue *queue;
  uint32_t number;
  pthread_t thread;
};

struct hk_queue {
  struct hk_queue_work work;
  void (*ready)(void *arg);
  void *ready_arg;
  uint32_t threads, started, places;
  struct place *place;
  struct worker *worker;
  uint64_t reaped, submitted; /* written by the shard's thread; submitted under the lock */
  _Atomic uint64_t finished;  /* written under the lock */
  pthread_mutex_t lock;
  pthread_cond_t work_came, work_done;
  bool closing; /* protected by the lock */
};

/* Number of pieces to take when `left` are left: a fair share of half of them, so that all threads end together. */
static uint32_t run_length(const struct hk_queue *q, uint32_t left)
{
  const uint32_t fair = left / (2 * q->threads);
  return fair > HK_RUN_MAX ? HK_RUN_MAX : fair < HK_RUN_MIN ? HK_RUN_MIN : fair;
}

/* Takes and processes pieces of a job until none is left. */
static void queue_work_on(struct hk_queue *q, uint32_t worker, struct place *place)
{
  const uint32_t pieces = place->job.pieces;
  uint32_t from = atomic_load_explicit(&place->taken, memory_order_relaxed);
  while (from < pieces) {
    const uint32_t length = run_length(q, pieces - from), to = pieces - from < length ? pieces : from + length;
    if (atomic_compare_exchange_weak_explicit(&place->taken, &from, to, memory_order_relaxed, memory_order_relaxed)) {
      q->work.run(q->work.owner, worker, &place->job, from, to);
      from = atomic_load_explicit(&place->taken, memory_order_relaxed);
    }
  }
}

/* The job that a thread may enter now, or NULL. Under the lock. */
static struct place *open_job(struct hk_queue *q)
{
  const uint64_t finished = atomic_load_explicit(&q->finished, memory_order_relaxed);
  struct place *place = &q->place[finished % q->places];
  return finished < q->submitted && atomic_load_explicit(&place->taken, memory_order_relaxed) < place->job.pieces ? place : NULL;
}

/* Wakes as many threads as a job keeps busy. Under the lock. */
static void queue_wake(struct hk_queue *q, const struct hk_job *job)
{
  const uint32_t useful = (job->pieces + HK_RUN_MIN - 1) / HK_RUN_MIN;
  for (uint32_t i = 0; i < useful && i < q->threads; i++)
    pthread_cond_signal(&q->work_came);
}

/* Finishes a job after its last thread has left. Called under the lock, which is released meanwhile. */
static void queue_finish(struct hk_queue *q, const struct place *place)
{
  pthread_mutex_unlock(&q->lock);
  q->work.finish(q->work.owner, &place->job);
  pthread_mutex_lock(&q->lock);
  const uint64_t finished = atomic_load_explicit(&q->finished, memory_order_relaxed) + 1;
  atomic_store_explicit(&q->finished, finished, memory_order_release);
  if (finished < q->submitted)
    queue_wake(q, &q->place[finished % q->places].job);
  else if (q->closing)
    pthread_cond_broadcast(&q->work_came);
  pthread_cond_signal(&q->work_done);
  if (q->ready) {
    pthread_mutex_unlock(&q->lock);
    q->ready(q->ready_arg);
    pthread_mutex_lock(&q->lock);
  }
}

static void *worker_main(void *arg)
{
  const struct worker *self = arg;
  struct hk_queue *q = self->queue;
  pthread_mutex_lock(&q->lock);
  for (;;) {
    struct place *place = open_job(q);
    if (place) {
      place->inside++;
      pthread_mutex_unlock(&q->lock);
      queue_work_on(q, self->number, place);
      pthread_mutex_lock(&q->lock);
      if (--place->inside == 0)
        queue_finish(q, place);
    } else if (q->closing && atomic_load_explicit(&q->finished, memory_order_relaxed) == q->submitted) {
      break;
    } else {
      pthread_cond_wait(&q->work_came, &q->lock);
    }
  }
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

/* Starts a worker with all signals blocked: other threads of the program handle them. Returns an errno. */
static int start_worker(struct hk_queue *q, uint32_t number)
{
  struct worker *worker = &q->worker[number];
  *worker = (struct worker){ .queue = q, .number = number };
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int status = pthread_create(&worker->thread, NULL, worker_main, worker);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  char name[16];
  snprintf(name, sizeof name, "cpu %u", number);
  if (status == 0)
    (void)pthread_setname_np(worker->thread, name); /* for top and debuggers */
  return status;
}

int hk_queue_open(struct hk_queue **out, const struct hk_queue_work *work, uint32_t threads, uint32_t in_flight,
                  void (*ready)(void *arg), void *ready_arg, char *error, size_t size)
{
  struct hk_queue *q = aligned_alloc(_Alignof(struct hk_queue), sizeof *q);
  if (!q)
    goto no_memory;
  *q = (struct hk_queue){ .work = *work, .ready = ready, .ready_arg = ready_arg, .threads = threads };
  q->places = in_flight ? in_flight : 4;
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->work_came, NULL);
  pthread_cond_init(&q->work_done, NULL);
  q->place = aligned_alloc(_Alignof(struct place), q->places * sizeof *q->place);
  q->worker = calloc(threads, sizeof *q->worker);
  if (!q->place || !q->worker)
    goto no_memory;
  memset(q->place, 0, q->places * sizeof *q->place);
  for (; q->started < threads; q->started++) {
    const int status = start_worker(q, q->started);
    if (status != 0) {
      snprintf(error, size, "cannot start worker thread %u of %u: %s", q->started + 1, threads, strerror(status));
      hk_queue_close(q);
      return -status;
    }
  }
  *out = q;
  return 0;

no_memory:
  snprintf(error, size, "no memory for a queue of %u threads", threads);
  hk_queue_close(q);
  return -ENOMEM;
}

void hk_queue_close(struct hk_queue *q)
{
  if (!q)
    return;
  pthread_mutex_lock(&q->lock);
  q->closing = true;
  pthread_cond_broadcast(&q->work_came);
  pthread_mutex_unlock(&q->lock);
  for (uint32_t i = 0; i < q->started; i++)
    pthread_join(q->worker[i].thread, NULL);
  pthread_cond_destroy(&q->work_done);
  pthread_cond_destroy(&q->work_came);
  pthread_mutex_destroy(&q->lock);
  free(q->worker);
  free(q->place);
  free(q);
}

bool hk_queue_idle(const struct hk_queue *q)
{
  return q->submitted == q->reaped;
}

bool hk_queue_full(const struct hk_queue *q)
{
  return q->submitted - q->reaped == q->places;
}

void hk_queue_submit(struct hk_queue *q, const struct hk_job *job)
{
  struct place *place = &q->place[q->submitted % q->places];
  place->job = *job;
  atomic_store_explicit(&place->taken, 0, memory_order_relaxed);
  pthread_mutex_lock(&q->lock);
  const bool idle = atomic_load_explicit(&q->finished, memory_order_relaxed) == q->submitted++;
  if (idle)
    queue_wake(q, job);
  pthread_mutex_unlock(&q->lock);
}

struct hk_batch *hk_queue_reap(struct hk_queue *q)
{
  if (q->reaped == atomic_load_explicit(&q->finished, memory_order_acquire))
    return NULL;
  return q->place[q->reaped++ % q->places].job.batch;
}

void hk_queue_wait(struct hk_queue *q)
{
  if (q->reaped == q->submitted)
    return;
  pthread_mutex_lock(&q->lock);
  while (atomic_load_explicit(&q->finished, memory_order_relaxed) == q->reaped)
    pthread_cond_wait(&q->work_done, &q->lock);
  pthread_mutex_unlock(&q->lock);
}
