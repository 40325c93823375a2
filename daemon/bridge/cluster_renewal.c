/* See cluster_renewal.h. A lease that cannot be renewed stays held until the broker takes it back. Offers are repeated over each
 * connection, because those over the one before may be lost. */
#include "daemon/bridge/cluster_renewal.h"

#include "daemon/net/admission.h"

#define SECOND 1000000000ll
#define TROUBLE (5 * SECOND) /* before connecting again */

static void renewal_failed(struct hk_cluster *c, struct hk_renewal *r, const char *why)
{
  hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster", "cannot renew leases of partitions: %s", why);
  hk_renewal_close(c, r);
  r->next = hk_now() + TROUBLE;
}

static void renewal_connect(struct hk_cluster *c, struct hk_renewal *r)
{
  char why[HK_ENGINE_WHY];
  if (c->kind->open(&r->engine, &c->rule, hk_cluster_broker(c), NULL, why) == 0)
    return;
  r->engine = NULL;
  renewal_failed(c, r, why);
}

void hk_renewal_wait(struct hk_renewal *r, uint32_t partition)
{
  r->offered[partition] = false;
}

bool hk_renewal_due(struct hk_cluster *c, struct hk_renewal *r, bool speak, int64_t now)
{
  struct hk_broker_engine_event e = { .what = HK_ENGINE_NOTHING };
  if (!c->kind->renew || (r->engine && !speak))
    return false;
  if (!r->engine && now >= r->next)
    renewal_connect(c, r);
  while (r->engine) {
    if (c->kind->next(r->engine, &e) != 0)
      renewal_failed(c, r, r->engine->why);
    else if (e.what == HK_ENGINE_NOTHING)
      break;
    else if (e.what == HK_ENGINE_BLOCKED || e.what == HK_ENGINE_UNBLOCKED)
      r->blocked = e.what == HK_ENGINE_BLOCKED;
  }
  if (!r->engine || r->blocked || now < r->next)
    return false;
  r->next = now + HK_ENGINE_RENEWAL * SECOND;
  return true;
}

void hk_renewal_turn(struct hk_cluster *c, struct hk_renewal *r, uint32_t partition, bool renew)
{
  if (!c->kind->renew || (!renew && r->offered[partition]))
    return;
  r->offered[partition] = r->engine && !r->blocked;
  if (r->offered[partition] && c->kind->renew(r->engine, partition) != 0)
    renewal_failed(c, r, r->engine->why);
}

void hk_renewal_close(struct hk_cluster *c, struct hk_renewal *r)
{
  if (r->engine)
    c->kind->close(r->engine);
  *r = (struct hk_renewal){ 0 };
}
