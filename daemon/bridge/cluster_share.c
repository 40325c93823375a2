#include "daemon/bridge/cluster_share.h"

#include "daemon/net/admission.h"

#include <stdlib.h>

#define SECOND 1000000000ll
#define JITTER (2 * SECOND)    /* the longest that partitions above the share are kept: other scorers may give some up first */
#define UNABLE (60 * SECOND)   /* for which a scorer is not counted after a failure, and twice as long the next time, */
#define LONGEST (960 * SECOND) /* up to this: others give partitions up for it each time that it is counted again */

int hk_share_count(struct hk_cluster *c, struct hk_scorer_share *share, uint32_t held)
{
  const bool drains = atomic_load(&c->self.drains), even = !c->kind->count;
  const bool in = !drains && (even || hk_now() >= share->unable);
  uint32_t n = 1, lacking = 0;
  int status = even ? 0 : c->kind->count(c->engine, HK_ENGINE_MEMBERS, in, &n);
  if (status == 0 && n == 0 && in && share->most > 0)
    return 0; /* this one is a scorer, so 0 means that the broker does not know: its last answer stands */
  const uint32_t all = c->rule.partitions, of = in && n > 0 ? n : n + 1; /* this one included */
  if (status == 0 && !even)
    status = c->kind->count(c->engine, HK_ENGINE_LACKING, in && held < all / of, &lacking);
  share->most = drains ? 0 : (all + of - 1) / of;
  share->now = drains ? 0 : lacking > 0 ? all / of : share->most;
  if (even)
    n = hk_holders_count(hk_shared_holders(hk_cluster_shared(c)));
  pthread_mutex_lock(&c->lock);
  c->look.members = n;
  pthread_mutex_unlock(&c->lock);
  return status;
}

int64_t hk_share_unable(struct hk_scorer_share *share, int64_t now)
{
  const bool counted = now >= share->unable;
  if (counted || share->pause == 0)
    share->pause = share->pause == 0 ? UNABLE : 2 * share->pause < LONGEST ? 2 * share->pause : LONGEST;
  share->unable = now + share->pause;
  return counted ? share->pause : 0;
}

void hk_share_able(struct hk_scorer_share *share)
{
  share->pause = 0;
}

bool hk_share_exceeded(struct hk_scorer_share *share, uint32_t held, int64_t now)
{
  if (held <= share->now)
    share->patience = 0;
  else if (share->patience == 0)
    share->patience = now + random() % JITTER;
  return held > share->most || (held > share->now && now > share->patience);
}
