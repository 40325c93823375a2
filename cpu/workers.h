/* Threads that share the items of one step. Thread: the caller's. */
#ifndef HK_WORKERS_H
#define HK_WORKERS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* First member of each worker. */
struct hk_worker {
  pthread_t thread;
};

/* Calls work with each of n workers, structs of `size` bytes: the first on the calling thread, each other on a thread of its own;
 * waits for all. If a thread cannot be started, its worker and later ones are not called: workers take their items from one
 * counter, so that the others take them. */
void hk_workers_run(void *(*work)(void *worker), void *workers, size_t size, uint32_t n);

#endif
