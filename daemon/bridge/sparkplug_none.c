/* A daemon without protobuf-c: Sparkplug B payloads count as bad. */
#include "daemon/bridge/sparkplug.h"

#include <stdlib.h>

struct hk_sparkplug {
  char nothing;
};

struct hk_sparkplug *hk_sparkplug_new(void)
{
  return calloc(1, sizeof(struct hk_sparkplug));
}

void hk_sparkplug_free(struct hk_sparkplug *sparkplug)
{
  free(sparkplug);
}

bool hk_sparkplug_topic_read(const char *topic, struct hk_sparkplug_topic *out)
{
  (void)topic;
  *out = (struct hk_sparkplug_topic){ .group = "" };
  return true;
}

const char *hk_sparkplug_read(struct hk_sparkplug *sparkplug, const struct hk_sparkplug_topic *topic, const void *data,
                              size_t size, int64_t now, bool *rebirth, hk_sparkplug_take *take, void *arg)
{
  (void)sparkplug, (void)topic, (void)data, (void)size, (void)now, (void)take, (void)arg;
  *rebirth = false;
  return "Sparkplug B needs a hankeld that is built with protobuf-c";
}

size_t hk_sparkplug_rebirth(int64_t time, uint8_t out[128])
{
  (void)time, (void)out;
  return 0;
}
