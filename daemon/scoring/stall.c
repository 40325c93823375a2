#include "daemon/scoring/stall.h"

#include "daemon/scoring/evict.h"
#include "daemon/scoring/relay.h"
#include "daemon/scoring/shard.h"
#include "daemon/scoring/shard_reload.h"
#include "daemon/scoring/snapshot_slices.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

static struct hk_progress progress(const struct hk_shard *s)
{
  struct hk_progress p;
  memset(&p, 0, sizeof p); /* it is compared bytewise */
  p.position = hk_commit_gate_position(&s->gate);
  p.launched = s->counters.launched + s->counters.full;
  p.steps = hk_evictions_progress(&s->evictions);
  p.derived = s->counters.derived;
  p.derivation = s->taking.derivation.at;
  p.cursor = s->taking.cursor.at;
  p.chained = (uint32_t)hk_stage_chained(s->stage);
  p.reload = hk_shard_reload_progress(s, &p.slot);
  for (uint32_t i = 0; i < s->all->n_loops; i++)
    p.tokens += s->lanes[i].tokens;
  return p;
}

/* Number of points that wait in chunks and chains, and of chunks that loops have sent. */
static uint64_t stall_waiting(const struct hk_shard *s, uint32_t *chunks)
{
  const struct hk_delivery *kept = hk_queue_kept(&s->queue);
  uint64_t n = hk_stage_chained(s->stage) + hk_taking_left(&s->taking);
  n += s->taking.derivation.from && s->taking.cursor.chunk != s->taking.derivation.from ? s->taking.derivation.from->n : 0;
  n += kept ? kept->batch->n : 0;
  *chunks = 0;
  for (uint32_t i = 0; i < s->all->n_loops; i++) {
    const struct hk_ring *sealed = &s->lanes[i].sealed;
    const uint32_t count = hk_ring_count(sealed);
    *chunks += count;
    for (uint32_t k = 0; k < count; k++)
      n += ((const struct hk_chunk *)hk_ring_look(sealed, k))->n;
  }
  return n;
}

static void stall_add(char why[HK_STALL_WHY], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void stall_add(char why[HK_STALL_WHY], const char *format, ...)
{
  const size_t used = strlen(why);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why + used, HK_STALL_WHY - used, format, arguments);
  va_end(arguments);
}

/* Writes what the shard waits for. Returns whether there is work. */
static bool stall_why(const struct hk_shard *s, char why[HK_STALL_WHY])
{
  uint32_t chunks;
  const uint64_t points = stall_waiting(s, &chunks);
  const bool snapshot = s->saver && hk_saver_pauses(s->saver);
  why[0] = 0;
  if (points == 0 && chunks == 0 && hk_commit_gate_held(&s->gate) == 0 && !hk_evictions_any(&s->evictions) &&
      hk_shard_has_answered(s))
    return false;
  stall_add(why, "%" PRIu64 " points in %u chunks wait", points, chunks);
  stall_add(why, "%s", hk_reload_waits(&s->reload) ? "; no chunk is begun since a reload waits" : "");
  stall_add(why, "%s", snapshot ? "; no chunk is begun since a snapshot waits until what was taken is in batches" : "");
  stall_add(why, "%s", hk_commit_gate_has_room(&s->gate) ? "" : "; no chunk is begun since the journal has no room");
  stall_add(why, "%s", hk_reload_holds(&s->reload) ? "; nothing is launched since a reload waits" : "");
  stall_add(why, "%s", s->saver && hk_saver_stuck(s->saver) ? "; nothing is launched since a snapshot waits for the device" : "");
  stall_add(why, "%s",
            hk_queue_free(&s->queue) || hk_queue_kept(&s->queue)
                ? ""
                : "; no batch is filled since all are in flight or being published");
  if (hk_taking_any(&s->taking))
    stall_add(why, "; a chunk is being taken");
  if (hk_queue_in_flight(&s->queue) > 0)
    stall_add(why, "; %u batches are in flight", hk_queue_in_flight(&s->queue));
  if (hk_commit_gate_held(&s->gate) > 0)
    stall_add(why, "; %u batches wait for the journal", hk_commit_gate_held(&s->gate));
  if (!hk_shard_has_answered(s))
    stall_add(why, "; a reload waits %s", hk_shard_reload_why(s));
  if (hk_evictions_any(&s->evictions))
    hk_shard_retire_why(s, why + strlen(why), HK_STALL_WHY - strlen(why));
  return true;
}

/* Whether another mechanism supervises what the shard waits for. */
static bool excused(const struct hk_shard *s)
{
  return hk_queue_in_flight(&s->queue) > 0 || hk_commit_gate_held(&s->gate) > 0 || s->replaying || !s->device ||
         !hk_commit_gate_has_room(&s->gate) || (s->all->relay && hk_relay_waits(s->all->relay));
}

static void stall_put(struct hk_shard *s, const char *why)
{
  pthread_mutex_lock(&s->lock);
  snprintf(s->stall.why, sizeof s->stall.why, "%s", why);
  pthread_mutex_unlock(&s->lock);
}

void hk_stall_look(struct hk_shard *s, int64_t since)
{
  struct hk_stall *stall = &s->stall;
  char why[HK_STALL_WHY];
  const struct hk_progress now = progress(s);
  if (memcmp(&now, &stall->progress, sizeof now) != 0 || !stall_why(s, why)) {
    stall->progress = now;
    if (stall->told)
      hk_log(s->all->log, HK_LOG_NOTICE, "shard %u continues after %.1f s without progress", s->number,
             (double)stall->lasts * 1e-9);
    if (stall->told)
      stall_put(s, "");
    stall->told = false;
    stall->lasts = 0;
    return;
  }
  if (!excused(s))
    stall->lasts += since;
  if (stall->lasts < s->all->stall)
    return;
  stall_put(s, why);
  if (!stall->told)
    hk_log(s->all->log, HK_LOG_ERROR, "shard %u has made no progress for %.1f s: %s", s->number, (double)stall->lasts * 1e-9,
           why);
  stall->told = true;
}

int64_t hk_stall_lasts(struct hk_shard *s, char why[HK_STALL_WHY])
{
  pthread_mutex_lock(&s->lock);
  memcpy(why, s->stall.why, HK_STALL_WHY);
  const int64_t lasts = s->stall.lasts;
  pthread_mutex_unlock(&s->lock);
  return why[0] ? lasts : 0;
}
