/* See workers.h. */
#include "cpu/workers.h"

static struct hk_worker *worker_of(void *workers, size_t size, uint32_t i)
{
  return (struct hk_worker *)((char *)workers + i * size);
}

void hk_workers_run(void *(*work)(void *worker), void *workers, size_t size, uint32_t n)
{
  uint32_t begun = 1;
  for (; begun < n; begun++) {
    struct hk_worker *w = worker_of(workers, size, begun);
    if (pthread_create(&w->thread, NULL, work, w) != 0)
      break;
  }
  (void)work(workers);
  for (uint32_t i = 1; i < begun; i++)
    (void)pthread_join(worker_of(workers, size, i)->thread, NULL); /* it was started, and is joined once */
}
