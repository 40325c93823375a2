#include "daemon/bridge/mqtt_messages.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

void hk_mqtt_topic_of(struct hk_buffer *out, const char *prefix, const char *kind, const char *sensor)
{
  hk_buffer_print(out, "%s/%s/", prefix, kind);
  for (const char *p = sensor; *p; p++) {
    if (strchr("+#%", *p))
      hk_buffer_print(out, "%%%02X", (unsigned)(unsigned char)*p);
    else
      hk_buffer_put(out, p, 1);
  }
  hk_buffer_put(out, "", 1);
}

static void put_string(struct hk_buffer *out, const char *name, const char *text)
{
  hk_buffer_print(out, ",\"%s\":", name);
  hk_json_string(out, text, strlen(text));
}

/* Copies a member unchanged. */
static void mqtt_messages_copy(struct hk_buffer *out, const cJSON *event, const char *name)
{
  const cJSON *member = cJSON_GetObjectItemCaseSensitive(event, name);
  if (cJSON_IsString(member)) {
    put_string(out, name, member->valuestring);
  } else if (cJSON_IsNumber(member)) {
    hk_buffer_print(out, ",\"%s\":", name);
    hk_json_number(out, member->valuedouble, 17);
  }
}

bool hk_mqtt_state_of(struct hk_buffer *out, const cJSON *event)
{
  const char *what = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "event"));
  const char *sensor = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "sensor"));
  static const char *const copied[] = { "id", "channel", "severity", "level", "score", "before", "after", "by" };
  if (!what || !sensor || strcmp(what, "flapping") == 0)
    return false;
  hk_buffer_print(out, "{\"sensor\":");
  hk_json_string(out, sensor, strlen(sensor));
  if (strcmp(what, "cleared") == 0) {
    hk_buffer_print(out, ",\"state\":\"ok\"}");
    return true;
  }
  hk_buffer_print(out, ",\"state\":\"alert\",\"acknowledged\":%s", strcmp(what, "acknowledged") == 0 ? "true" : "false");
  for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
    mqtt_messages_copy(out, event, copied[i]);
  hk_buffer_put(out, "}", 1);
  return true;
}

void hk_mqtt_discovery_of(struct hk_buffer *topic, struct hk_buffer *out, const char *discovery, const char *name,
                          const char *prefix, const char *sensor)
{
  struct hk_buffer state = { 0 };
  const uint64_t id = XXH3_64bits(sensor, strlen(sensor));
  hk_mqtt_topic_of(&state, prefix, "state", sensor);
  hk_buffer_print(topic, "%s/binary_sensor/hankeld_%s/%016" PRIx64 "/config", discovery, name, id);
  hk_buffer_put(topic, "", 1);
  hk_buffer_print(out, "{\"name\":");
  hk_json_string(out, sensor, strlen(sensor));
  hk_buffer_print(out, ",\"unique_id\":\"hankeld_%s_%016" PRIx64 "\",\"device_class\":\"problem\"", name, id);
  put_string(out, "state_topic", state.failed ? "" : state.data);
  put_string(out, "value_template", "{{ 'ON' if value_json.state == 'alert' else 'OFF' }}");
  put_string(out, "json_attributes_topic", state.failed ? "" : state.data);
  hk_buffer_print(out,
                  ",\"availability_topic\":\"%s/status\",\"payload_available\":\"online\",\"payload_not_available\":\"offline\"",
                  prefix);
  hk_buffer_print(out, ",\"device\":{\"identifiers\":[\"hankeld_%s\"],\"name\":\"hankeld %s\",\"sw_version\":\"%s\"}}", name,
                  name, HANKELD_VERSION);
  out->failed |= state.failed;
  hk_buffer_free(&state);
}
