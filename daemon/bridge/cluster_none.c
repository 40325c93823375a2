/* A daemon without a broker's library: the configuration refuses [cluster]. */
#include "daemon/bridge/cluster.h"

int hk_cluster_start(struct hk_cluster **out, struct hk_net *net)
{
  (void)net;
  *out = NULL;
  return 0;
}

int hk_cluster_start_publishing(struct hk_cluster **out, struct hk_net *net)
{
  return hk_cluster_start(out, net);
}

int hk_cluster_start_events(struct hk_cluster **out, struct hk_net *net)
{
  return hk_cluster_start(out, net);
}

void hk_cluster_end(struct hk_cluster *cluster)
{
  (void)cluster;
}

bool hk_cluster_ended(const struct hk_cluster *cluster)
{
  (void)cluster;
  return true;
}

bool hk_cluster_stop(struct hk_cluster *cluster)
{
  (void)cluster;
  return true;
}

void hk_cluster_free(struct hk_cluster *cluster)
{
  (void)cluster;
}

void hk_cluster_look(struct hk_cluster *cluster, struct hk_cluster_look *out)
{
  (void)cluster;
  *out = (struct hk_cluster_look){ .role = HK_CLUSTER_NONE };
}

uint32_t hk_cluster_parts(struct hk_cluster *cluster, struct hk_cluster_part *out)
{
  (void)cluster;
  (void)out;
  return 0;
}
