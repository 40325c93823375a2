/* A daemon without libmosquitto: the configuration refuses [mqtt NAME]. */
#include "daemon/bridge/bridge.h"

int hk_bridges_new(struct hk_bridges **out, struct hk_net *net)
{
  (void)net;
  *out = NULL;
  return 0;
}

int hk_bridges_adopt(struct hk_bridges *bridges, const struct hk_config *config)
{
  (void)bridges, (void)config;
  return 0;
}

void hk_bridges_end(struct hk_bridges *bridges)
{
  (void)bridges;
}

bool hk_bridges_ended(const struct hk_bridges *bridges)
{
  (void)bridges;
  return true;
}

bool hk_bridges_stop(struct hk_bridges *bridges)
{
  (void)bridges;
  return true;
}

void hk_bridges_free(struct hk_bridges *bridges)
{
  (void)bridges;
}

uint32_t hk_bridges_look(struct hk_bridges *bridges, struct hk_bridge_look out[HK_BRIDGES_MAX])
{
  (void)bridges, (void)out;
  return 0;
}
