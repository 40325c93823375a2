#include "daemon/bridge/cluster_share.h"

#include "daemon/net/admission.h"

#include <stdlib.h>

#define SECOND 1000000000ll
#define JITTER (2 * SECOND) /* the longest that partitions above the share are kept: other scorers may give some up first */

int hk_share_count(struct hk_cluster *c, struct hk_scorer_share *share, uint32_t held)
{
  const bool drains = atomic_load(&c->self.drains), even = !c->kind->count;
  uint32_t n = 1, lacking = 0;
  int status = even ? 0 : c->kind->count(c->engine, HK_ENGINE_MEMBERS, !drains, &n);
  if (status == 0 && n == 0 && !drains && share->most > 0)
    return 0; /* this one is a scorer, so 0 means that the broker does not know: its last answer stands */
  const uint32_t all = c->rule.partitions, of = n > 0 ? n : 1;
  if (status == 0 && !even)
    status = c->kind->count(c->engine, HK_ENGINE_LACKING, !drains && held < all / of, &lacking);
  share->most = drains ? 0 : (all + of - 1) / of;
  share->now = drains ? 0 : lacking > 0 ? all / of : share->most;
  if (even)
    n = hk_holders_count(hk_shared_holders(hk_cluster_shared(c)));
  pthread_mutex_lock(&c->lock);
  c->look.members = n;
  pthread_mutex_unlock(&c->lock);
  return status;
}

bool hk_share_exceeded(struct hk_scorer_share *share, uint32_t held, int64_t now)
{
  if (held <= share->now)
    share->patience = 0;
  else if (share->patience == 0)
    share->patience = now + random() % JITTER;
  return held > share->most || (held > share->now && now > share->patience);
}
