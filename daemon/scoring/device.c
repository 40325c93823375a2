/* Opens, closes and abandons devices. */
#include "daemon/scoring/device.h"

#include "cpu/backend/state_size.h"
#include "cpu/rules/state.h"
#include "daemon/base/thread.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void device_end(struct hk_device *d)
{
  pthread_mutex_destroy(&d->lock);
  pthread_mutex_destroy(&d->calls);
  free(d);
}

static void on_ready(void *arg)
{
  struct hk_device *d = arg;
  pthread_mutex_lock(&d->lock);
  if (d->wake)
    hk_wake_up(d->wake, HK_WAKE_WORK);
  pthread_mutex_unlock(&d->lock);
}

static void delivery_free(struct hk_delivery *p)
{
  if (!p)
    return;
  if (p->batch && p->batch->bulk)
    p->batch->backend->ops->free(p->batch->backend, p->batch->bulk);
  hk_batch_free(p->batch);
  free(p->runs);
  free(p->sequence);
  free(p);
}

/* sequences: with room for them. */
static int make_deliveries(struct hk_device *d, bool sequences, char *error, size_t size)
{
  for (unsigned i = 0; i <= d->batches; i++) {
    struct hk_delivery *p = d->deliveries[i] = calloc(1, sizeof *p);
    if (!p || !(p->batch = hk_batch_new(d->backend, d->kind->batch)) || !(p->runs = calloc(d->kind->batch, sizeof *p->runs))) {
      snprintf(error, size, "no memory for batches of %u points", d->kind->batch);
      return -ENOMEM;
    }
    p->device = d;
    p->batch->owner = p;
    if (sequences && !(p->sequence = calloc(d->kind->batch, sizeof *p->sequence))) {
      snprintf(error, size, "no memory for the sequences of %u points", d->kind->batch);
      return -ENOMEM;
    }
    p->batch->kind = i == d->batches ? HK_BATCH_SWEEP : HK_BATCH_POINTS;
  }
  return 0;
}

static int make_exports(struct hk_device *d, char *error, size_t size)
{
  for (unsigned i = 0; i < HK_EXPORTS; i++) {
    struct hk_delivery *p = d->exports[i] = calloc(1, sizeof *p);
    if (!p || !(p->batch = hk_batch_new(d->backend, HK_EXPORT_SENSORS)) ||
        !(p->batch->bulk = d->backend->ops->alloc(d->backend, HK_EXPORT_BYTES))) {
      snprintf(error, size, "no memory for exports of %u bytes", HK_EXPORT_BYTES);
      return -ENOMEM;
    }
    p->device = d;
    p->batch->owner = p;
    p->batch->bulk_size = HK_EXPORT_BYTES;
    p->batch->kind = HK_BATCH_EXPORT;
  }
  return 0;
}

static const char *words_of(const struct hk_slot_binding *binding)
{
  const struct hk_device *d = (const void *)((const char *)binding - offsetof(struct hk_device, binding));
  return d->kind->failure ? d->kind->failure(d->backend) : "";
}

int hk_device_open(struct hk_device **out, const struct hk_backend_kind *kind, const struct hk_config *config, uint64_t memory,
                   const struct hk_device_place *place, char *error, size_t size)
{
  struct hk_device *d = calloc(1, sizeof *d);
  if (!d) {
    snprintf(error, size, "no memory for a backend");
    return -ENOMEM;
  }
  d->kind = kind;
  d->wake = place->wake;
  d->batches = config->durability == HK_DURABILITY_JOURNAL && !kind->device ? HK_BATCHES_MOST : HK_BATCHES;
  pthread_mutex_init(&d->lock, NULL);
  pthread_mutex_init(&d->calls, NULL);
  const struct hk_backend_wish wish = { .detectors = place->detectors,
                                        .n_detectors = place->n_detectors,
                                        .memory = memory,
                                        .number = place->number,
                                        .of = place->of,
                                        .ready = on_ready,
                                        .arg = d };
  int status = hk_backend_open(&d->backend, kind, config, &wish, error, size);
  if (status != 0) {
    device_end(d);
    return status;
  }
  d->binding = (struct hk_slot_binding){ .backend = d->backend, .calls = &d->calls, .may_fail = kind->device, .words = words_of };
  if (place->wake)
    status = make_deliveries(d, hk_config_saves(config), error, size);
  if (status == 0 && place->wake && hk_config_saves(config))
    status = make_exports(d, error, size);
  if (status != 0) {
    hk_device_close(d);
    return status;
  }
  *out = d;
  return 0;
}

int hk_device_choose(struct hk_device **out, const struct hk_backend_kind *kinds, const struct hk_config *config,
                     const struct hk_device_place *place, char *excuse, size_t excuse_size, char *error, size_t size)
{
  excuse[0] = 0;
  if (config->backend != HK_BACKEND_AUTO) {
    const int status = hk_device_open(out, &kinds[config->backend], config, config->memory, place, error, size);
    const size_t length = status != 0 ? strlen(error) : 0;
    if (status == -ENODEV)
      snprintf(error + length, size - length, "; backend = cuda needs a GPU and its driver, backend = auto goes on without");
    return status;
  }
  if (hk_device_open(out, &kinds[HK_BACKEND_CUDA], config, config->memory, place, excuse, excuse_size) == 0)
    return 0;
  return hk_device_open(out, &kinds[HK_BACKEND_CPU], config, config->memory, place, error, size);
}

/* Frees everything except the memory of the device itself. */
static void device_release(struct hk_device *d)
{
  for (unsigned i = 0; i <= d->batches; i++)
    delivery_free(d->deliveries[i]);
  for (unsigned i = 0; i < HK_EXPORTS; i++)
    delivery_free(d->exports[i]);
  d->backend->ops->close(d->backend);
}

void hk_device_close(struct hk_device *d)
{
  device_release(d);
  device_end(d);
}

static void *close_when_done(void *arg)
{
  struct hk_device *d = arg;
  while (d->in_flight > 0) {
    d->backend->ops->wait(d->backend);
    while (d->in_flight > 0 && d->backend->ops->reap(d->backend))
      d->in_flight--;
  }
  while (atomic_load_explicit(&d->lent, memory_order_acquire) > 0) {
    const struct timespec moment = { 0, 1000000 };
    (void)nanosleep(&moment, NULL);
  }
  device_release(d);
  return NULL;
}

void hk_device_abandon(struct hk_device *d, uint32_t in_flight)
{
  pthread_mutex_lock(&d->lock);
  d->wake = NULL;
  pthread_mutex_unlock(&d->lock);
  d->in_flight = in_flight;
  d->closing = pthread_create(&d->closer, NULL, close_when_done, d) == 0; /* else it stays open, like one that hangs */
}

bool hk_device_bury(struct hk_device *d, unsigned seconds)
{
  if (!d->closing || !hk_thread_join(d->closer, seconds))
    return false;
  device_end(d);
  return true;
}

int hk_device_carry_number(struct hk_backend *b, const struct hk_detector *d, uint32_t slot, uint32_t number)
{
  const size_t most = hk_state_most(d);
  void *state = malloc(most);
  if (!state)
    return -ENOMEM;
  const int64_t size = b->ops->export_(b, slot, state, most);
  int status = size < 0 ? (int)size : hk_state_renumber(state, (size_t)size, number);
  if (status == 0)
    status = b->ops->import_(b, slot, state, (size_t)size);
  free(state);
  return status;
}
