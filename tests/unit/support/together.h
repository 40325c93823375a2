/* Functions at the same time, each on a thread of its own. What two of them touch without order is reported in a build with
 * ThreadSanitizer, where the program `threads` runs, too; in others such a test shows only that nothing breaks. */
#ifndef HK_TESTS_TOGETHER_H
#define HK_TESTS_TOGETHER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

/* Called at least `rounds` times, and until the others have been, too; asserts nothing, because cmocka's checks are for the
 * test's own thread. */
typedef void together_step(void *arg, uint32_t round);

struct together_thread {
  pthread_t thread;
  pthread_barrier_t *begin;
  atomic_uint *ready; /* threads that have done their rounds; relaxed, so that it orders nothing */
  together_step *step;
  void *arg;
  uint32_t rounds, n;
};

static inline void *together_run(void *arg)
{
  struct together_thread *t = arg;
  pthread_barrier_wait(t->begin);
  for (uint32_t i = 0; i < t->rounds || atomic_load_explicit(t->ready, memory_order_relaxed) < t->n; i++) {
    t->step(t->arg, i);
    if (i + 1 == t->rounds)
      atomic_fetch_add_explicit(t->ready, 1, memory_order_relaxed);
  }
  return NULL;
}

/* Runs each of n <= 4 steps on a thread of its own; they begin together. */
static inline void together(void *arg, uint32_t rounds, uint32_t n, together_step *const steps[])
{
  struct together_thread t[4];
  pthread_barrier_t begin;
  atomic_uint ready = 0;
  assert_true(n <= 4);
  assert_int_equal(pthread_barrier_init(&begin, NULL, n), 0);
  for (uint32_t i = 0; i < n; i++) {
    t[i] = (struct together_thread){ .begin = &begin, .ready = &ready, .step = steps[i], .arg = arg, .rounds = rounds, .n = n };
    assert_int_equal(pthread_create(&t[i].thread, NULL, together_run, &t[i]), 0);
  }
  for (uint32_t i = 0; i < n; i++)
    assert_int_equal(pthread_join(t[i].thread, NULL), 0);
  pthread_barrier_destroy(&begin);
}

#endif
