/* The device is lost: on with the CPU, or the end.
 *
 * What subscribers see, in this order: an error that says so; a gap notice for the points that were in flight (with the next
 * thing that is sent); `cleared` for every alert that stands, since nobody watches it any more; then results of state warming.
 * Windows, baselines and learned thresholds were on the device and are gone; the numbers of alerts go on, so that an id never
 * means two alerts. */
#include "daemon/server.h"

#include "cpu/state.h"

#include <errno.h>
#include <string.h>

/* Bytes that sensors may take on the host: it has other room than the device had. */
static uint64_t host_memory(const struct hk_config *config)
{
  const uint64_t available = uv_get_free_memory() / 10 * 9; /* with what the system would give back from its caches */
  return config->memory > 0 && config->memory < available ? config->memory : available;
}

/* Clears the alerts that stand; returns how many. */
static uint32_t clear_alerts(struct hk_server *s)
{
  struct hk_event events[256];
  uint32_t all = 0, n;
  const struct hk_event *standing;
  while (standing = hk_alerts_standing(s->alerts, &n), n > 0) {
    struct hk_batch cleared = { .kind = HK_BATCH_SWEEP, .capacity = 256, .event = events };
    for (; n > 0 && cleared.n_events < cleared.capacity; n--)
      cleared.n_events += hk_alerts_clear(s->alerts, standing[n - 1].slot, &events[cleared.n_events]);
    hk_publish(s->loop.publisher, &cleared);
    all += cleared.n_events;
  }
  hk_count(&s->counters.cleared, all);
  return all;
}

/* Makes a new sensor go on with the numbers of the alerts that it had. */
static int carry_number(struct hk_backend *b, const struct hk_detector *d, uint32_t slot, uint32_t number)
{
  struct hk_window window;
  struct hk_alert alert;
  float ring[HK_SPAN_MAX], feedback[HK_WINDOW_MAX];
  unsigned char state[sizeof window + sizeof alert + sizeof feedback + 64];
  const int64_t size = b->ops->export_(b, slot, state, sizeof state);
  if (size < 0 || (size_t)size > sizeof state)
    return size < 0 ? (int)size : -ENOSPC;
  const int status = hk_state_read(state, (size_t)size, d, &window, &alert, ring, feedback);
  if (status != 0)
    return status;
  alert.number = number;
  hk_state_write(state, d, &window, &alert, ring, feedback);
  return b->ops->import_(b, slot, state, (size_t)size);
}

static bool gone(void *arg, uint32_t slot)
{
  return !hk_registry_holds(arg, slot);
}

static void no_room(void *arg, uint32_t slot)
{
  hk_server_evict(arg, slot);
}

/* Moves all sensors to a device. */
static void move(struct hk_server *s, struct hk_device *device)
{
  const uint32_t before = hk_registry_count(s->registry);
  int status = 0;
  hk_registry_move(s->registry, device, no_room, s);
  for (uint32_t slot = 0; slot < hk_registry_slots(s->registry) && status == 0; slot++) {
    const uint32_t number = hk_alerts_number(s->alerts, slot);
    if (number > 0 && hk_registry_holds(s->registry, slot))
      status =
          carry_number(device->backend, &s->config->detectors[hk_registry_detector(s->registry, slot)].detector, slot, number);
  }
  if (status != 0)
    hk_log(&s->log, HK_LOG_WARNING, "the numbers of alerts begin anew: %s", strerror(-status));
  if (hk_registry_count(s->registry) == before)
    return;
  const uint32_t purged = hk_stage_purge(s->stage, gone, s->registry);
  hk_count(&s->counters.full, purged);
  hk_log(&s->log, HK_LOG_WARNING, "%u of %u sensors have no room on the CPU and were evicted, %u points of theirs dropped: %s",
         before - hk_registry_count(s->registry), before, purged, hk_registry_full(s->registry));
}

/* The CPU's backend, if it is to go on and can; else NULL. */
static struct hk_device *successor(struct hk_server *s)
{
  struct hk_device *device;
  char error[256];
  if (s->config->on_device_failure != HK_DEVICE_FAILURE_CPU)
    return NULL;
  if (hk_device_open(&device, &s->kinds[HK_BACKEND_CPU], s->config, host_memory(s->config), &s->shard.wake, error,
                     sizeof error) == 0)
    return device;
  hk_log(&s->log, HK_LOG_ERROR, "the CPU cannot take over: %s", error);
  return NULL;
}

static void tell_everyone(struct hk_server *s, const char *what_now)
{
  const struct hk_loss *loss = &s->shard.loss;
  char message[512];
  snprintf(message, sizeof message, "the %s device is lost: %s; %s", loss->device, loss->why, what_now);
  for (struct hk_connection *c = s->loop.connections, *next; c; c = next) {
    next = c->next;
    hk_connection_tell(c, HANKEL_INTERNAL, message);
  }
}

void hk_server_device_lost(struct hk_server *s)
{
  static const char look[] = "See what became of the device (nvidia-smi, and Xid in the kernel's log)";
  const struct hk_loss *loss = &s->shard.loss;
  hk_log(&s->log, HK_LOG_ERROR, "the %s device is lost: %s; %u points in %u batches that were in flight are dropped",
         loss->device, loss->why, loss->points, loss->batches);
  struct hk_device *cpu = successor(s);
  tell_everyone(s, cpu ? "every sensor warms up again, on the CPU" : "the daemon ends");
  hk_registry_move(s->registry, NULL, NULL, NULL);
  const uint32_t alerts = clear_alerts(s);
  if (cpu) {
    hk_shard_go_on(&s->shard, cpu);
    move(s, cpu);
    hk_log(&s->log, HK_LOG_WARNING,
           "the CPU goes on: %u sensors warm up again, %u alerts were cleared. %s, then restart hankeld to use it again",
           hk_registry_count(s->registry), alerts, look);
    return;
  }
  hk_log(&s->log, HK_LOG_ERROR, "ending, to be restarted: %s. %s",
         s->config->on_device_failure == HK_DEVICE_FAILURE_CPU ? "nothing is left to compute with" : "on_device_failure = stop",
         look);
  s->failed = true;
  hk_server_end(s);
}
