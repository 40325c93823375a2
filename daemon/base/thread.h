/* Names and ends of threads. */
#ifndef HK_THREAD_H
#define HK_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include <pthread.h>

/* Names the calling thread `what number`, for top, debuggers and benches. */
void hk_thread_name(const char *what, uint32_t number);

/* Waits for the end of a thread, so many seconds at most. False: it hangs. */
bool hk_thread_join(pthread_t thread, unsigned seconds);

#endif
