/* Scorer of configured partitions ([cluster] read): all over one connection, and without other machines.
 * How far a partition was read is stored by the daemon's durability: each connection to the broker begins with opening all
 * feeds, and continues at their positions. With `durability = journal` that is after the last point on the disk; with
 * `snapshot` after the last snapshot, from where the log is read again; with `none` at the oldest message after a start. The
 * daemon skips points that it has already. */
#include "daemon/bridge/cluster_part.h"
#include "daemon/bridge/cluster_progress.h"

#include "daemon/net/admission.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define QUIET 1000000000ll /* ns between two signs of life */

struct scorer {
  struct hk_part *part; /* by partition; those that are not read have no connection */
  int64_t spoken;       /* ns: when all feeds last had a sign of life */
  struct hk_part_room room;
};

static int begin(struct hk_cluster *c)
{
  struct scorer *s = calloc(1, sizeof *s);
  c->state = s;
  if (!s || !(s->part = calloc(c->rule.partitions, sizeof *s->part)) || hk_part_room_init(&s->room, c) != 0)
    return -ENOMEM;
  for (uint32_t i = 0; i < c->rule.partitions; i++) {
    hk_part_init(&s->part[i], i, &s->room);
    c->look.partitions += hk_cluster_reads(&c->rule, i);
  }
  return 0;
}

static void lost(struct hk_cluster *c)
{
  struct scorer *s = c->state;
  for (uint32_t i = 0; i < c->rule.partitions; i++) {
    hk_part_close(&s->part[i]);
    hk_cluster_leaves(c, i);
  }
}

static void finish(struct hk_cluster *c)
{
  struct scorer *s = c->state;
  if (!s)
    return;
  hk_part_room_free(&s->room);
  free(s->part);
  free(s);
}

static int greeted(struct hk_cluster *c)
{
  struct scorer *s = c->state;
  int status = 0;
  for (uint32_t i = 0; i < c->rule.partitions && status == 0 && !hk_cluster_stops(c); i++)
    if (hk_cluster_reads(&c->rule, i))
      status = c->kind->log(c->engine, i);
  for (uint32_t i = 0; i < c->rule.partitions && status == 0; i++) {
    struct hk_part *part = &s->part[i];
    char name[HK_FEED_NAME_MAX];
    uint64_t at = 0;
    if (!hk_cluster_reads(&c->rule, i))
      continue;
    part->engine = c->engine;
    snprintf(name, sizeof name, HK_OUR_FEEDS "%.100s %" PRIu32 "/%" PRIu32, c->rule.name, i, c->rule.partitions);
    status = hk_part_open(c, part, name, &at);
    if (status == 0)
      status = hk_part_follow(c, part, at);
    if (status == 0)
      hk_cluster_begins(c, i, 0, part->wanted);
  }
  return status;
}

static int came(struct hk_cluster *c, const struct hk_broker_engine_event *e)
{
  struct scorer *s = c->state;
  if (e->what != HK_ENGINE_MESSAGE || e->partition >= c->rule.partitions || s->part[e->partition].fd < 0)
    return 0;
  return hk_part_came(c, &s->part[e->partition], e);
}

static int scorer_turn(struct hk_cluster *c)
{
  struct scorer *s = c->state;
  const int64_t now = hk_now();
  int status = 0;
  for (uint32_t i = 0; i < c->rule.partitions; i++)
    hk_part_rests(c, &s->part[i]);
  if (now - s->spoken < QUIET)
    return 0;
  s->spoken = now;
  for (uint32_t i = 0; i < c->rule.partitions && status == 0; i++)
    if (s->part[i].fd >= 0)
      status = hk_part_sign(c, &s->part[i]);
  return status;
}

static int fd(const struct hk_cluster *c)
{
  (void)c;
  return -1;
}

const struct hk_cluster_work hk_cluster_scorer = { .thread = "scorer",
                                                   .as = "a scorer",
                                                   .scores = true,
                                                   .begin = begin,
                                                   .finish = finish,
                                                   .greeted = greeted,
                                                   .lost = lost,
                                                   .came = came,
                                                   .turn = scorer_turn,
                                                   .fd = fd };
