/* Opening, closing, and giving up. */
#include "daemon/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void on_ready(void *arg)
{
  struct hk_device *d = arg;
  pthread_mutex_lock(&d->lock);
  if (d->wake)
    (void)uv_async_send(d->wake); /* fails on a handle that is closing only, and that comes after the device's end */
  pthread_mutex_unlock(&d->lock);
}

static int make_batches(struct hk_device *d, char *error, size_t size)
{
  for (unsigned i = 0; i <= HK_IN_FLIGHT; i++) {
    struct hk_batch *b = d->batches[i] = hk_batch_new(d->backend, d->kind->batch);
    if (!b || !(b->owner = calloc(d->kind->batch, sizeof(uint32_t)))) {
      snprintf(error, size, "no memory for batches of %u points", d->kind->batch);
      return -ENOMEM;
    }
    b->kind = i == HK_IN_FLIGHT ? HK_BATCH_SWEEP : HK_BATCH_POINTS;
  }
  return 0;
}

int hk_device_open(struct hk_device **out, const struct hk_backend_kind *kind, const struct hk_config *config, uint64_t memory,
                   uv_async_t *wake, char *error, size_t size)
{
  struct hk_device *d = calloc(1, sizeof *d);
  if (!d) {
    snprintf(error, size, "no memory for a backend");
    return -ENOMEM;
  }
  d->kind = kind;
  d->wake = wake;
  pthread_mutex_init(&d->lock, NULL);
  int status = hk_backend_open(&d->backend, kind, config, memory, on_ready, d, error, size);
  if (status != 0) {
    pthread_mutex_destroy(&d->lock);
    free(d);
    return status;
  }
  if (wake)
    status = make_batches(d, error, size);
  if (status != 0) {
    hk_device_close(d);
    return status;
  }
  *out = d;
  return 0;
}

int hk_device_choose(struct hk_device **out, const struct hk_backend_kind *kinds, const struct hk_config *config,
                     uv_async_t *wake, char *excuse, size_t excuse_size, char *error, size_t size)
{
  excuse[0] = 0;
  if (config->backend != HK_BACKEND_AUTO) {
    const int status = hk_device_open(out, &kinds[config->backend], config, config->memory, wake, error, size);
    const size_t length = status != 0 ? strlen(error) : 0;
    if (status == -ENODEV)
      snprintf(error + length, size - length, "; backend = cuda needs a GPU and its driver, backend = auto goes on without");
    return status;
  }
  if (hk_device_open(out, &kinds[HK_BACKEND_CUDA], config, config->memory, wake, excuse, excuse_size) == 0)
    return 0;
  return hk_device_open(out, &kinds[HK_BACKEND_CPU], config, config->memory, wake, error, size);
}

/* All but the memory of the device itself. */
static void release(struct hk_device *d)
{
  for (unsigned i = 0; i <= HK_IN_FLIGHT; i++) {
    if (d->batches[i])
      free(d->batches[i]->owner);
    hk_batch_free(d->batches[i]);
  }
  d->backend->ops->close(d->backend);
}

static void end(struct hk_device *d)
{
  pthread_mutex_destroy(&d->lock);
  free(d);
}

void hk_device_close(struct hk_device *d)
{
  release(d);
  end(d);
}

static void *close_when_done(void *arg)
{
  struct hk_device *d = arg;
  while (d->in_flight > 0) {
    d->backend->ops->wait(d->backend);
    while (d->in_flight > 0 && d->backend->ops->reap(d->backend))
      d->in_flight--;
  }
  release(d);
  return NULL;
}

void hk_device_abandon(struct hk_device *d, uint32_t in_flight)
{
  pthread_mutex_lock(&d->lock);
  d->wake = NULL;
  pthread_mutex_unlock(&d->lock);
  d->in_flight = in_flight;
  d->closing = pthread_create(&d->closer, NULL, close_when_done, d) == 0; /* else it stays open, as one that hangs */
}

bool hk_device_bury(struct hk_device *d, unsigned seconds)
{
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += seconds;
  if (!d->closing || pthread_timedjoin_np(d->closer, NULL, &until) != 0)
    return false;
  end(d);
  return true;
}
