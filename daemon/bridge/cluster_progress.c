#include "daemon/bridge/cluster_progress.h"

void hk_cluster_begins(struct hk_cluster *c, uint32_t partition, uint64_t epoch, uint64_t next)
{
  pthread_mutex_lock(&c->lock);
  c->part[partition] = (struct hk_cluster_part){ .partition = partition, .epoch = epoch, .since = hk_wall(), .next = next };
  pthread_mutex_unlock(&c->lock);
}

void hk_cluster_leaves(struct hk_cluster *c, uint32_t partition)
{
  pthread_mutex_lock(&c->lock);
  c->part[partition].since = 0;
  pthread_mutex_unlock(&c->lock);
}

void hk_cluster_needs(struct hk_cluster *c, uint32_t partition, uint8_t version)
{
  pthread_mutex_lock(&c->lock);
  c->part[partition].needs = version;
  pthread_mutex_unlock(&c->lock);
}

void hk_cluster_reached(struct hk_cluster *c, uint32_t partition, uint64_t next, int64_t lag)
{
  pthread_mutex_lock(&c->lock);
  c->part[partition].next = next;
  c->part[partition].lag = lag;
  pthread_mutex_unlock(&c->lock);
}
