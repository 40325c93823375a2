/* A daemon without libcurl: the configuration refuses [notify NAME]. */
#include "daemon/notify/notify.h"

int hk_receivers_start(struct hk_receivers **out, struct hk_durable *durable, struct hk_eventlog *events,
                       const struct hk_config *config, struct hk_log *log)
{
  (void)durable, (void)events, (void)config, (void)log;
  *out = NULL;
  return 0;
}

int hk_receivers_adopt(struct hk_receivers *receivers, const struct hk_config *config)
{
  (void)receivers, (void)config;
  return 0;
}

bool hk_receivers_stop(struct hk_receivers *receivers)
{
  (void)receivers;
  return true;
}

void hk_receivers_free(struct hk_receivers *receivers)
{
  (void)receivers;
}

uint32_t hk_receivers_look(struct hk_receivers *receivers, struct hk_receiver_look out[HK_CONFIG_NOTIFY_MAX])
{
  (void)receivers, (void)out;
  return 0;
}
