/* Naming and joining threads, and waiting with a limit. */
#ifndef HK_THREAD_H
#define HK_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include <pthread.h>
#include <time.h>

/* Names the calling thread `what number`, for top, debuggers and benches. */
void hk_thread_name(const char *what, uint32_t number);

/* Joins a thread, waiting at most `seconds`. False: the thread did not end. */
bool hk_thread_join(pthread_t thread, unsigned seconds);

/* Initialises a condition whose limits are times of the monotonic clock: by the wall clock, which is pthread_cond_init's, a
 * thread would sleep for as long as that clock is set back. */
void hk_thread_condition(pthread_cond_t *condition);
/* The time in ns from now, at least 0, for pthread_cond_timedwait on such a condition. */
struct timespec hk_thread_limit(int64_t ns);

#endif
