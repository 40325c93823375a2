/* A daemon without a broker's library: the configuration refuses [cluster]. */
#include "daemon/bridge/cluster.h"

#include <errno.h>

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

int hk_cluster_start_scores(struct hk_cluster **out, struct hk_net *net)
{
  return hk_cluster_start(out, net);
}

int hk_cluster_start_mail(struct hk_cluster **out, struct hk_net *net)
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

int hk_cluster_drain(struct hk_cluster *cluster, bool drains)
{
  (void)cluster;
  (void)drains;
  return -ENOTSUP;
}

int hk_cluster_want(struct hk_cluster *cluster, uint32_t partition)
{
  (void)partition;
  return hk_cluster_drain(cluster, true);
}

bool hk_cluster_machine(struct hk_cluster *cluster, uint32_t partition, struct hk_holder *out)
{
  (void)cluster;
  (void)partition;
  (void)out;
  return false;
}

uint32_t hk_cluster_partition(const struct hk_cluster *cluster, const char *name)
{
  (void)cluster;
  (void)name;
  return UINT32_MAX;
}

bool hk_cluster_is_us(const struct hk_cluster *cluster, const struct hk_holder *holder)
{
  (void)cluster;
  (void)holder;
  return false;
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

const char *hk_cluster_name(const struct hk_cluster *cluster)
{
  (void)cluster;
  return "";
}

bool hk_cluster_move(struct hk_cluster *cluster, uint32_t partition, struct hk_cluster_move *out)
{
  (void)cluster;
  (void)partition;
  (void)out;
  return false;
}
