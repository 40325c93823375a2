/* Naming and joining threads. */
#ifndef HK_THREAD_H
#define HK_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include <pthread.h>

/* Names the calling thread `what number`, for top, debuggers and benches. */
void hk_thread_name(const char *what, uint32_t number);

/* Joins a thread, waiting at most `seconds`. False: the thread did not end. */
bool hk_thread_join(pthread_t thread, unsigned seconds);

#endif
