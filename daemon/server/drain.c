/* Shutdown of the daemon, in steps led by loop 0, which checks every few milliseconds how far the loops are:
 *
 *   bridges  finish the work that they have begun, for which they need the loops
 *   drain    listeners close; loops read what has come over UDP, and no more. Points that were taken are scored and published
 *   flush    nothing is pending, or no backend is left: the last snapshot is taken; connections are told, get their queued data,
 *            and are closed
 *   give up  the deadline has passed: connections are closed at once */
#include "daemon/server/drain.h"
#include "daemon/base/systemd.h"
#include "daemon/net/tcp_listener.h"
#include "daemon/scoring/failover.h"
#include "daemon/scoring/snapshot_slices.h"

#define LOOK 2              /* ms */
#define BRIDGES 2000000000  /* ns that bridges get to finish their work, while everything else runs */
#define PATIENCE 1000000000 /* ns that loops get to close connections; after that they hang */

static void drain_order(struct hk_server *s, enum hk_order what)
{
  for (uint32_t i = 0; i < s->net.n_loops; i++)
    hk_loop_order(&s->net.loops[i], what);
}

/* Whether nothing more will be computed. */
static bool quiet(struct hk_server *s)
{
  struct hk_counters sum;
  bool lost = true;
  for (uint32_t i = 0; i < s->net.n_loops; i++)
    if (!s->net.loops[i].shared.drained)
      return false;
  hk_server_sum(s, &sum);
  if (hk_counters_pending(&sum) == 0)
    return !s->shards.events || hk_eventlog_safe(s->shards.events, hk_eventlog_appended(s->shards.events));
  for (uint32_t i = 0; i < s->shards.n; i++)
    lost &= hk_shard_lost(&s->shard[i]);
  return lost;
}

static uint32_t connections(const struct hk_server *s)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->net.n_loops; i++)
    n += s->net.loops[i].shared.n_connections;
  return n;
}

/* The states now have all points: a snapshot of them lets the next start continue at once. */
static void drain_save(struct hk_server *s)
{
  for (uint32_t i = 0; i < s->shards.n; i++)
    s->drain.last[i] = s->shard[i].saver && !hk_shard_lost(&s->shard[i]) ? hk_saver_ask(s->shard[i].saver, true) : 0;
}

static bool saved(struct hk_server *s)
{
  for (uint32_t i = 0; i < s->shards.n; i++)
    if (s->drain.last[i] > 0 && !hk_saver_finished(s->shard[i].saver, s->drain.last[i]) && !hk_shard_lost(&s->shard[i]))
      return false;
  return true;
}

static void drain_step(struct hk_server *s)
{
  const bool late = hk_now() >= s->drain.deadline;
  if (!s->drain.ordered &&
      (late || (hk_bridges_ended(s->bridges) && hk_cluster_ended(s->cluster)) || hk_now() >= s->drain.begun + BRIDGES)) {
    s->drain.ordered = true;
    drain_order(s, HK_ORDER_DRAIN);
  }
  if (!s->drain.ordered)
    return;
  if (late && !s->drain.given_up) {
    s->drain.given_up = s->drain.flushing = true;
    drain_order(s, HK_ORDER_GIVE_UP);
  } else if (!s->drain.flushing && quiet(s)) {
    s->drain.flushing = true;
    drain_order(s, HK_ORDER_FLUSH);
    drain_save(s);
  }
  const bool hangs = s->drain.given_up && hk_now() > s->drain.deadline + PATIENCE;
  if (s->drain.flushing && ((connections(s) == 0 && (saved(s) || s->drain.given_up)) || hangs))
    uv_stop(&s->net.loops[0].uv);
}

static void on_draining(uv_timer_t *timer)
{
  drain_step(timer->data);
}

void hk_server_end(struct hk_server *s)
{
  if (s->drain.deadline != 0)
    return;
  hk_notify("STOPPING=1");
  s->drain.begun = hk_now();
  s->drain.deadline = s->drain.begun + s->config->drain;
  for (uint32_t i = 0; i < s->net.sockets.n_listeners; i++)
    hk_listener_close(&s->net.sockets.listeners[i]);
  hk_web_tell(s->web, HK_WEB_ENDING);
  hk_bridges_end(s->bridges);
  hk_cluster_end(s->cluster);
  drain_step(s);
  uv_timer_start(&s->handles.draining, on_draining, LOOK, LOOK);
}

void hk_server_end_now(struct hk_server *s)
{
  s->drain.deadline = hk_now();
  drain_step(s);
}
