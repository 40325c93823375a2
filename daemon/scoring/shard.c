#include "daemon/scoring/shard.h"

#define CHECK_MOST 1000000000 /* ns between two checks of a device; a tenth of its timeout if that is less */

int64_t hk_shard_stalled(const struct hk_shard *s)
{
  return hk_queue_stalled(&s->queue);
}

const char *hk_shard_backend(struct hk_shard *s)
{
  pthread_mutex_lock(&s->lock);
  const char *name = s->device ? s->device->backend->ops->name : "none";
  pthread_mutex_unlock(&s->lock);
  return name;
}

uint64_t hk_shard_need(struct hk_shard *s, uint32_t detector, uint64_t sensors)
{
  pthread_mutex_lock(&s->lock);
  const struct hk_backend *b = s->device ? s->device->backend : NULL;
  const uint64_t need = b ? b->ops->need(b, detector, sensors) : 0;
  pthread_mutex_unlock(&s->lock);
  return need;
}

uint64_t hk_shard_check_period(const struct hk_shard *s)
{
  const int64_t timeout = s->config->device_timeout, tenth = timeout / 10;
  const uint64_t period = (uint64_t)(timeout > 0 && tenth < CHECK_MOST ? tenth : CHECK_MOST) / 1000000;
  return period < s->life.beat_most ? period : s->life.beat_most;
}

void hk_shard_watch(struct hk_shard *s)
{
  uv_timer_set_repeat(&s->life.check, hk_shard_check_period(s));
  (void)uv_timer_again(&s->life.check); /* it runs since hk_shard_start */
}

uint64_t hk_shard_host_memory(const struct hk_config *config)
{
  const uint64_t available = uv_get_free_memory() / 10 * 9; /* including what the system would free from its caches */
  return config->memory > 0 && config->memory < available ? config->memory : available;
}

uint64_t hk_shard_memory(const struct hk_shard *s)
{
  return hk_failover_happened(&s->failover) ? hk_shard_host_memory(s->config) : s->config->memory;
}
