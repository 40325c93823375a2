/* The device of a shard is lost: the CPU replaces it, or the daemon ends.
 *
 * Subscribers get, in this order: an error; a gap notice for the points that were in flight (with the next message);
 * `cleared` for every standing alert, since no detector watches it any more; then results of state warming. Windows, baselines
 * and learned thresholds were on the device and are lost; the numbers of alerts continue, so an id never means two alerts. */
#include "daemon/scoring/failover.h"
#include "daemon/base/grow.h"
#include "daemon/scoring/evict.h"
#include "daemon/scoring/hand_over.h"
#include "daemon/scoring/shard.h"

#include "cpu/rules/state.h"
#include "daemon/scoring/turn.h"
#include "daemon/sensors/slots.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Whether sensors are added to exactly this device. Under the lock. */
static bool is_its(const struct hk_shard *s, const struct hk_slot_binding *device)
{
  return device && s->device && &s->device->binding == device;
}

void hk_shard_failed(struct hk_shard *s, const struct hk_slot_binding *device, const char *why)
{
  pthread_mutex_lock(&s->lock);
  if (is_its(s, device) && !s->failover.failed) {
    snprintf(s->failover.failure, sizeof s->failover.failure, "%s", why);
    atomic_store_explicit(&s->failover.failed, s->device, memory_order_release);
    hk_wake_up(&s->life.wake, HK_WAKE_WORK);
  }
  while (s->failover.moving || is_its(s, device))
    pthread_cond_wait(&s->failover.changed, &s->lock);
  pthread_mutex_unlock(&s->lock);
}

bool hk_shard_lost(struct hk_shard *s)
{
  pthread_mutex_lock(&s->lock);
  const bool lost = !s->device && !s->failover.moving;
  pthread_mutex_unlock(&s->lock);
  return lost;
}

void hk_failover_open(struct hk_failover *f)
{
  pthread_cond_init(&f->changed, NULL);
}

void hk_shard_abandon(struct hk_shard *s, struct hk_device *device, uint32_t in_flight)
{
  s->failover.abandoned = device;
  hk_device_abandon(device, in_flight);
}

bool hk_failover_close(struct hk_failover *f, unsigned seconds)
{
  pthread_cond_destroy(&f->changed);
  return !f->abandoned || hk_device_bury(f->abandoned, seconds);
}

struct hk_device_condition hk_shard_condition(struct hk_shard *s)
{
  struct hk_device_condition c;
  pthread_mutex_lock(&s->lock);
  c.loss = s->failover.loss;
  c.own = s->device && s->device->kind->device;
  pthread_mutex_unlock(&s->lock);
  return c;
}

const char *hk_shard_excuse(const struct hk_shard *s)
{
  return s->failover.excuse;
}

bool hk_shard_has_lost(struct hk_shard *s)
{
  return hk_shard_condition(s).loss.time != 0;
}

void hk_shard_count_lost(struct hk_shard *s, uint32_t batches, uint32_t points)
{
  pthread_mutex_lock(&s->lock);
  s->failover.loss.batches += batches;
  s->failover.loss.points += points;
  pthread_mutex_unlock(&s->lock);
}

/* Sends an error to every peer whose protocol has errors. */
static void tell_everyone(struct hk_shard *s, const char *what_now)
{
  struct hk_delivery *p = calloc(1, sizeof *p);
  char message[512];
  snprintf(message, sizeof message, "the %s device is lost: %s; %s", s->failover.loss.device, s->failover.loss.why, what_now);
  if (!p || !(p->words = strdup(message))) {
    free(p);
    return;
  }
  p->kind = HK_DELIVERY_WORDS;
  hk_shard_hand_over(s, p, true);
}

uint32_t hk_shard_clear_alerts(struct hk_shard *s)
{
  uint32_t n;
  const struct hk_standing *standing = hk_alerts_standing(s->alerts, &n);
  uint32_t *slots = malloc((n + 1) * sizeof *slots);
  for (uint32_t i = 0; slots && i < n; i++)
    slots[i] = hk_slot_outside(s, standing[i].event.slot);
  n = slots ? hk_shard_clear(s, slots, n) : 0;
  free(slots);
  return n;
}

/* Evicts sensors for which the device had no room. */
struct refused {
  uint32_t *slots;
  uint32_t n, capacity;
};

static void failover_refuse(void *arg, uint32_t slot)
{
  struct refused *r = arg;
  uint32_t *slots = hk_grow(r->slots, r->n, &r->capacity, sizeof *slots, 1024);
  if (!slots)
    return; /* batches that name it will be refused */
  r->slots = slots;
  r->slots[r->n++] = slot;
}

/* Moves all sensors to the device, which becomes the shard's. */
static void move(struct hk_shard *s, struct hk_device *device)
{
  struct hk_registry *registry = s->all->registry;
  struct refused refused = { 0 };
  int status = 0;
  hk_registry_move(registry, s->number, &device->binding, failover_refuse, &refused);
  if (refused.n > 0)
    hk_shard_retire(s, refused.slots, refused.n, HK_RETIRE_BARRED);
  pthread_mutex_lock(&device->calls);
  for (uint32_t slot = s->number; slot < hk_registry_slots(registry) && status == 0; slot += s->all->n) {
    const uint32_t local = hk_slot_within(s->all, slot), number = hk_alerts_number(s->alerts, local);
    if (number > 0 && hk_registry_holds(registry, slot))
      status = hk_device_carry_number(
          device->backend, &hk_registry_detector_of(registry, hk_registry_detector(registry, slot))->detector, local, number);
  }
  pthread_mutex_unlock(&device->calls);
  if (status != 0)
    hk_log(s->all->log, HK_LOG_WARNING, "alert numbers start again from 1: %s", strerror(-status));
}

/* Opens the CPU's backend, if it is to replace the device; else NULL. */
static struct hk_device *successor(struct hk_shard *s)
{
  const struct hk_config *config = s->config;
  struct hk_detector detectors[HK_DETECTORS_MAX];
  const struct hk_device_place place = { .number = s->number,
                                         .of = s->all->n,
                                         .wake = &s->life.wake,
                                         .detectors = detectors,
                                         .n_detectors = hk_registry_detectors(s->all->registry, detectors) };
  struct hk_device *device;
  char error[256];
  if (config->on_device_failure != HK_DEVICE_FAILURE_CPU)
    return NULL;
  if (hk_device_open(&device, &s->all->kinds[HK_BACKEND_CPU], config, hk_shard_host_memory(config), &place, error,
                     sizeof error) == 0)
    return device;
  hk_log(s->all->log, HK_LOG_ERROR, "the CPU cannot take over: %s", error);
  return NULL;
}

/* Abandons the device. No other thread uses it after that. */
static void abandon(struct hk_shard *s)
{
  struct hk_device *d = s->device;
  hk_registry_move(s->all->registry, s->number, NULL, NULL, NULL);
  pthread_mutex_lock(&s->lock);
  s->device = NULL;
  s->failover.moving = true;
  s->failover.failed = NULL;
  s->failover.loss.device = d->backend->ops->name;
  pthread_mutex_unlock(&s->lock);
  hk_shard_abandon(s, d, hk_shard_drop_all(s));
}

void hk_shard_lose(struct hk_shard *s, const char *format, ...)
{
  static const char look[] = "See what became of the device (nvidia-smi, and Xid in the kernel's log)";
  const int64_t lost = hk_wall();
  struct hk_log *log = s->all->log;
  char why[sizeof s->failover.loss.why];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  pthread_mutex_lock(&s->lock);
  memcpy(s->failover.loss.why, why, sizeof why);
  pthread_mutex_unlock(&s->lock);
  abandon(s);
  hk_log(log, HK_LOG_ERROR, "the %s device is lost: %s; %u points in %u batches that were in flight are dropped",
         s->failover.loss.device, s->failover.loss.why, s->failover.loss.points, s->failover.loss.batches);
  struct hk_device *cpu = successor(s);
  tell_everyone(s, cpu ? "every sensor warms up again, on the CPU" : "the daemon ends");
  const uint32_t alerts = hk_shard_clear_alerts(s);
  if (cpu) {
    hk_shard_go_on(s, cpu);
    move(s, cpu);
    hk_log(log, HK_LOG_WARNING,
           "continuing on the CPU: %u sensors warm up again, %u alerts were cleared. %s, then restart hankeld to use it again",
           hk_registry_count(s->all->registry), alerts, look);
  } else {
    hk_log(log, HK_LOG_ERROR, "exiting so that the service restarts: %s. %s",
           s->config->on_device_failure == HK_DEVICE_FAILURE_CPU ? "no device is left" : "on_device_failure = stop", look);
    s->all->ended(s->all->arg);
  }
  pthread_mutex_lock(&s->lock);
  s->failover.loss.time = lost; /* other threads learn of it when the consequences are visible */
  s->failover.moving = false;
  pthread_cond_broadcast(&s->failover.changed);
  pthread_mutex_unlock(&s->lock);
}

bool hk_shard_heed_failure(struct hk_shard *s)
{
  const struct hk_device *failing = atomic_load_explicit(&s->failover.failed, memory_order_acquire);
  if (!failing || failing != s->device)
    return false;
  hk_shard_lose(s, "%s", s->failover.failure);
  return true;
}
