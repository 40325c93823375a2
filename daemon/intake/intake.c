/* Puts points into chunks. After a time too far in the future, all further points of the sensor would be late until then. So
 * such a point gets a value that every backend rejects, and its result comes back in its place. */
#include "daemon/intake/intake.h"

#include "daemon/intake/decode_points.h"
#include "daemon/sensors/register.h"
#include "proto/wire/columns.h"

#include <math.h>

int64_t hk_intake_clock(struct hk_intake *in)
{
  return hk_wall_forward(&in->offset);
}

bool hk_intake_open(struct hk_intake *in, struct hk_source *source, uint32_t n)
{
  return hk_source_pending(source) < in->max_pending && hk_chunk_pool_room(in->pool) >= n;
}

/* Returns the latest accepted time. */
static int64_t latest(const struct hk_intake *in)
{
  int64_t time;
  return in->max_ahead > 0 && !__builtin_add_overflow(in->wall, in->max_ahead, &time) ? time : INT64_MAX;
}

static void tell_ahead(struct hk_intake *in, uint32_t slot, int64_t time)
{
  char says[HK_TIME_TEXT_MAX];
  hk_time_text(time / 1000000000, says);
  hk_registry_read(in->registry);
  const struct hk_string name = hk_registry_name(in->registry, slot);
  hk_log_peer(
      in->log, &in->ahead, HK_LOG_WARNING, "points",
      "sensor %.*s: a time %.0f s ahead of this machine's clock, %s, was rejected; look at the sender's clock and unit of time",
      (int)name.length, name.data, (double)(time - in->wall) * 1e-9, says);
  hk_registry_read_end(in->registry);
}

/* Counts decoded and dropped points. Returns the number of invalid handles. */
static uint32_t intake_count(struct hk_intake *in, const struct hk_points *p, uint32_t n, const struct hk_decoded *out)
{
  const uint32_t unknown = n - out->n;
  hk_count(&in->counters->ahead, out->ahead);
  hk_count(&in->counters->unknown_handle, unknown);
  if (out->ahead > 0)
    tell_ahead(in, out->slot, out->time);
  /* Without a step, frames that are read together would all get the same time, and all but the first point of a sensor would
   * be late. */
  if (p->time_kind == HK_TIME_ARRIVAL)
    in->wall++;
  return unknown;
}

uint32_t hk_intake_points(struct hk_intake *in, struct hk_source *source, const struct hk_points *p)
{
  const struct hk_decoder decoder = { hk_registry_lookup(in->registry), in->wall, latest(in) };
  hk_count(&in->counters->in, p->n); /* skipped points are not counted in any other way */
  const struct hk_decoded out = hk_fill_points(&in->pool->filling, source, &decoder, p, 0);
  return intake_count(in, p, p->n, &out);
}

/* For the time after a restart, if shards had different positions of a feed: takes point i of a payload, which is number `at`
 * of the feed, unless its sensor's shard has it already. */
static void take_missing(struct hk_intake *in, struct hk_source *source, const struct hk_feed *feed, uint64_t at,
                         const struct hk_decoder *decoder, const struct hk_points *p, uint32_t i, struct hk_decoded *sum)
{
  uint32_t slot;
  int64_t time;
  double value;
  const struct hk_columns to = { &slot, &time, &value };
  const struct hk_decoded out = hk_decode(decoder, p, i, 1, to);
  if (out.n == 0)
    return;
  sum->n++;
  if (at < feed->part[slot % feed->before].had) {
    hk_count(&in->counters->resent, 1);
    return;
  }
  if (out.ahead > 0 && sum->ahead++ == 0) {
    sum->slot = slot;
    sum->time = time;
  }
  hk_fill_slots(&in->pool->filling, source, 1, &to);
}

bool hk_intake_feed(struct hk_intake *in, struct hk_source *source, struct hk_feeding *feeding, const struct hk_points *p,
                    uint32_t *unknown)
{
  const struct hk_decoder decoder = { hk_registry_lookup(in->registry), in->wall, latest(in) };
  struct hk_feed *feed = feeding->feed;
  if (!hk_feed_enter(feed, feeding->turn))
    return false;
  const uint64_t at = feeding->at, again = feed->received > at ? feed->received - at : 0;
  const uint32_t first = again < p->n ? (uint32_t)again : p->n;
  struct hk_decoded out = { 0 };
  uint32_t i = first;
  hk_count(&in->counters->in, p->n);
  hk_count(&in->counters->resent, first);
  for (; i < p->n && at + i < feed->horizon; i++)
    take_missing(in, source, feed, at + i, &decoder, p, i, &out);
  /* In pieces that fit into the chunks, so that no chunk is handed over with points but without their mark. */
  for (struct hk_points piece = *p; i < p->n; i = piece.n) {
    const uint32_t room = hk_fill_room(&in->pool->filling);
    piece.n = p->n - i < room ? p->n : i + room;
    hk_fill_mark(&in->pool->filling, feed, at + piece.n);
    const struct hk_decoded rest = hk_fill_points(&in->pool->filling, source, &decoder, &piece, i);
    if (out.ahead == 0) {
      out.slot = rest.slot;
      out.time = rest.time;
    }
    out.n += rest.n;
    out.ahead += rest.ahead;
  }
  feeding->at = at + p->n;
  if (feed->received < feeding->at)
    feed->received = feeding->at;
  hk_fill_mark(&in->pool->filling, feed, feed->received);
  hk_feed_leave(feed);
  *unknown = intake_count(in, p, p->n - first, &out);
  return true;
}

void hk_intake_refused(struct hk_intake *in, int refusal, const char *name, size_t length)
{
  char why[HK_REGISTRY_FULL_MAX];
  hk_count(&in->counters->names_refused, 1);
  if (refusal == HANKEL_FULL && !hk_log_spent(in->log, &in->full, HK_LOG_WARNING))
    hk_log_peer(in->log, &in->full, HK_LOG_WARNING, "sensors", "no room for %.*s after %u sensors: %s", (int)length, name,
                hk_registry_count(in->registry), hk_registry_full(in->registry, why));
  else if (refusal == HANKEL_NO_DETECTOR)
    hk_log_peer(in->log, &in->no_detector, HK_LOG_WARNING, "sensors", "no detector matches %.*s; its points are dropped",
                (int)length, name);
  else if (refusal == HANKEL_RESERVED)
    hk_log_peer(in->log, &in->reserved, HK_LOG_WARNING, "sensors",
                "%.*s is a series that the daemon makes itself; points for it are dropped", (int)length, name);
  else if (refusal == HANKEL_QUOTA)
    hk_log_peer(in->log, &in->over_quota, HK_LOG_WARNING, "sensors", "%.*s is refused: its peer has reached max_sensors_per_peer",
                (int)length, name);
}

int hk_intake_find(struct hk_intake *in, uint64_t owner, const char *name, size_t length, uint32_t *slot)
{
  const int refusal = hk_registry_take_valid(in->registry, owner, name, length, slot);
  if (refusal == 0)
    return 0;
  hk_count(refusal == HANKEL_NO_DETECTOR ? &in->counters->no_detector
           : refusal == HANKEL_RESERVED  ? &in->counters->reserved
           : refusal == HANKEL_QUOTA     ? &in->counters->over_quota
                                         : &in->counters->full,
           1);
  hk_intake_refused(in, refusal, name, length);
  return refusal;
}

/* Replaces the values of points that are later than accepted by NaN. */
static void intake_spoil_later(struct hk_intake *in, uint32_t n, const struct hk_columns *points)
{
  const int64_t believed = latest(in);
  bool any = false;
  for (uint32_t i = 0; i < n; i++)
    any |= points->time[i] > believed;
  for (uint32_t i = 0; i < n && any; i++) {
    if (points->time[i] <= believed)
      continue;
    hk_count(&in->counters->ahead, 1);
    points->value[i] = NAN;
    tell_ahead(in, points->slot[i], points->time[i]);
  }
}

/* As take_missing, for points whose slots are known. */
static void take_missing_slots(struct hk_intake *in, struct hk_source *source, const struct hk_feed *feed, uint64_t at,
                               uint32_t n, const struct hk_columns *points)
{
  for (uint32_t i = 0; i < n; i++) {
    const struct hk_columns one = { points->slot + i, points->time + i, points->value + i };
    if (at < feed->part[points->slot[i] % feed->before].had)
      hk_count(&in->counters->resent, 1);
    else
      hk_fill_slots(&in->pool->filling, source, 1, &one);
  }
}

bool hk_intake_together(struct hk_intake *in, struct hk_source *source, struct hk_feeding *feeding, uint32_t n,
                        const struct hk_columns *points)
{
  struct hk_feed *feed = feeding ? feeding->feed : NULL;
  if (feed && !hk_feed_enter(feed, feeding->turn))
    return false;
  const uint64_t at = feed ? feeding->at : 0;
  const bool again = feed && feed->received > at;
  hk_count(&in->counters->in, n);
  if (!again)
    intake_spoil_later(in, n, points);
  hk_fill_make_room(&in->pool->filling, n);
  if (again)
    hk_count(&in->counters->resent, n);
  else if (feed && at < feed->horizon)
    take_missing_slots(in, source, feed, at, n, points);
  else {
    if (feed)
      hk_fill_mark(&in->pool->filling, feed, at + 1);
    hk_fill_slots(&in->pool->filling, source, n, points);
  }
  if (!feed)
    return true;
  feeding->at = at + 1;
  if (feed->received < feeding->at)
    feed->received = feeding->at;
  hk_fill_mark(&in->pool->filling, feed, feed->received);
  hk_feed_leave(feed);
  return true;
}

void hk_intake_slots(struct hk_intake *in, struct hk_source *source, uint32_t n, const struct hk_columns *points)
{
  intake_spoil_later(in, n, points);
  hk_fill_slots(&in->pool->filling, source, n, points);
}
