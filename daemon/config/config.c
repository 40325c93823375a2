#include "daemon/config/config.h"

#include <stdlib.h>

const char *const hk_durability_words[] = { "none", "snapshot", "journal", NULL };
const char *const hk_protocol_words[] = { "binary", "line", "text", "http", NULL };
const char *const hk_transport_words[] = { "tcp", "udp", NULL };

const char *hk_durability_name(uint32_t durability)
{
  return hk_durability_words[durability];
}

const char *hk_protocol_name(enum hk_protocol protocol)
{
  return hk_protocol_words[protocol];
}

const char *hk_transport_name(enum hk_transport transport)
{
  return hk_transport_words[transport];
}

uint64_t hk_config_scores(const struct hk_config *config)
{
  for (uint32_t i = 0; i < config->n_listeners; i++)
    if (config->listeners[i].protocol == HK_PROTOCOL_HTTP)
      return config->scores;
  return 0;
}

void hk_config_follow(struct hk_config *config, const struct hk_config *from)
{
  if (config->follows.max_connections_per_address)
    config->max_connections_per_address = from->max_connections - from->max_connections / 2;
  if (config->follows.on_device_failure) /* a user who requires the GPU wants to know that it is lost */
    config->on_device_failure = from->backend == HK_BACKEND_CUDA ? HK_DEVICE_FAILURE_STOP : HK_DEVICE_FAILURE_CPU;
}

void hk_config_free(struct hk_config *config)
{
  free(config->listeners);
  free(config->detectors);
  free(config->maintenance);
  free(config->groups);
  free(config->notify);
  free(config->mqtt.rule);
  free(config->pictures.rule);
  for (uint32_t i = 0; i < config->n_fields; i++)
    hk_field_file_release(&config->fields[i].file);
  free(config->fields);
  config->fields = NULL;
  config->n_fields = 0;
  config->notify = NULL;
  config->n_notify = 0;
  config->mqtt = (struct hk_mqtt_rules){ 0 };
  config->pictures = (struct hk_pictures_rules){ 0 };
  config->groups = NULL;
  config->listeners = NULL;
  config->detectors = NULL;
  config->maintenance = NULL;
  config->n_listeners = config->n_detectors = config->n_groups = config->n_maintenance = 0;
}
