#include "daemon/cli/replay_explain.h"

#include "cpu/backend/warmup.h"
#include "daemon/sensors/limit_shown.h"
#include "daemon/sensors/novelty_shown.h"
#include "proto/wire/message.h"

#include <inttypes.h>
#include <stdio.h>

#define SENSORS_TOLD 5 /* sensors whose late or rejected points are reported one by one; the others are summed up */

const char *hk_replayed_sensor(const struct hk_recordings *csv, const struct hk_fielded *field, uint32_t sensor)
{
  return field ? hk_fielded_name(field, sensor) : hk_recording_sensor(csv, sensor);
}

static uint64_t replay_explain_taken(const struct hk_replayed_points *of)
{
  return of->points - of->late - of->rejected;
}

/* Reports sensors without a score of an algorithm, because it accepted too few of their points. */
static void explain_algorithm(const struct hk_replayed *r, uint32_t algorithm)
{
  const struct hk_warmup warmup = hk_warmup(&r->detectors[algorithm]);
  const uint32_t sensors = hk_recording_sensors(r->csv);
  uint32_t lacking = 0, which = 0;
  const struct hk_replayed_points *longest = NULL;
  char first[HK_WARMUP_TEXT_MAX], of[64] = "", among[64] = "";
  for (uint32_t s = 0; s < sensors; s++) {
    const struct hk_replayed_points *slot = &r->of[s * r->algorithms + algorithm];
    if (slot->scored || slot->points == 0)
      continue;
    if (lacking++ == 0 || replay_explain_taken(slot) > replay_explain_taken(longest)) {
      longest = slot;
      which = s;
    }
  }
  if (lacking == 0)
    return;
  if (sensors > 1)
    snprintf(of, sizeof of, " of %u of %u sensors", lacking, sensors);
  if (replay_explain_taken(longest) < longest->points)
    snprintf(among, sizeof among, " that could be taken, of %" PRIu64, longest->points);
  hk_warmup_text(warmup, first);
  fprintf(stderr, "hankel replay: %s gives no score%s: %s has %" PRIu64 " point%s%s%s, and the first score comes with %s%s\n",
          hk_algorithm_name(r->detectors[algorithm].algorithm), of, hk_replayed_sensor(r->csv, r->field, which),
          replay_explain_taken(longest), replay_explain_taken(longest) == 1 ? "" : "s", among,
          lacking > 1 ? ", the most of them" : "", first,
          warmup.time > 0 || replay_explain_taken(longest) < warmup.most ? "" : ", counted anew where a counter was found");
}

static void replay_explain_tell_left_out(const char *of, const struct hk_replayed_points *sum)
{
  fprintf(stderr,
          "hankel replay: %s: of %" PRIu64 " points %" PRIu64 " were late (not after the last one taken), %" PRIu64
          " rejected (not finite, too far from the rest, or before 1970)\n",
          of, sum->points, sum->late, sum->rejected);
}

/* Reports late and rejected points if they are most of a recording; otherwise missing results would look like an error of
 * hankel. */
static void explain_left_out(const struct hk_replayed *r)
{
  struct hk_replayed_points rest = { 0 };
  uint32_t told = 0, more = 0;
  char others[64];
  for (uint32_t s = 0; s < hk_recording_sensors(r->csv); s++) {
    const struct hk_replayed_points *of = &r->of[s * r->algorithms]; /* as the first algorithm sees them */
    if (replay_explain_taken(of) == of->points)
      continue;
    if (told < SENSORS_TOLD) {
      replay_explain_tell_left_out(hk_recording_sensor(r->csv, s), of);
      told++;
      continue;
    }
    more++;
    rest.points += of->points;
    rest.late += of->late;
    rest.rejected += of->rejected;
  }
  snprintf(others, sizeof others, "%u more sensor%s", more, more == 1 ? "" : "s");
  if (more > 0)
    replay_explain_tell_left_out(others, &rest);
}

/* Reports what rate = auto has found. */
static void explain_counters(const struct hk_replayed *r)
{
  const uint32_t sensors = hk_recording_sensors(r->csv);
  uint32_t counters = 0, first = 0;
  for (uint32_t s = sensors; s-- > 0;)
    if (r->of[s * r->algorithms].rate.kind == HK_RATE_COUNTER) {
      counters++;
      first = s;
    }
  if (counters == 1)
    fprintf(stderr, "hankel replay: %s is a counter: its rate per second was scored\n", hk_recording_sensor(r->csv, first));
  else if (counters > 1)
    fprintf(stderr, "hankel replay: %u of %u sensors are counters, such as %s: their rates per second were scored\n", counters,
            sensors, hk_recording_sensor(r->csv, first));
}

void hk_replayed_explain(const struct hk_replayed *r)
{
  explain_left_out(r);
  explain_counters(r);
  for (uint32_t i = 0; i < r->algorithms; i++)
    explain_algorithm(r, i);
}

struct hankel_event hk_replayed_event(const struct hk_event *event, const char *name, const char *by, bool secondary)
{
  return (struct hankel_event){ .name = name,
                                .number = event->number,
                                .kind = event->kind,
                                .time = event->time,
                                .from = event->from,
                                .instant = event->instant,
                                .score = event->score,
                                .before = event->before,
                                .after = event->after,
                                .severity = hk_severity_told(event->severity),
                                .margin = event->margin,
                                .spread_before = event->spread_before,
                                .spread_after = event->spread_after,
                                .channel = event->channel,
                                .likeness = event->likeness,
                                .similar = event->similar,
                                .similar_from = event->similar_from,
                                .marks = event->marks | (secondary ? HANKEL_SECONDARY : 0),
                                .by = by ? by : "",
                                .novelty = hk_novelty_shown(event),
                                .limit = hk_limit_shown(event) };
}
