/* See sensor_choice.h. */
#include "daemon/server/sensor_choice.h"

#include "daemon/base/glob.h"
#include "daemon/scoring/survey.h"
#include "daemon/server/server.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOGETHER 4096u         /* slots examined under one lock */
#define LOOKED_MOST (1u << 18) /* slots examined for one unsorted answer */

static const char *const states[] = { "ok", "warming", "provisional", "gap", "stale", "waiting", "unknown" };
enum state { OK, WARMING, PROVISIONAL, GAP, STALE, WAITING, UNKNOWN, STATES };

const char *hk_sensor_state(const struct hk_surveyed *one)
{
  const uint32_t span = hk_detector_span(&one->detector);
  if (!one->there)
    return states[UNKNOWN];
  if (!one->held)
    return states[isnan(one->score) ? WARMING : OK];
  const bool scored = !isnan(one->score); /* some algorithms score before their window is full */
  return states[one->window.stale                                       ? STALE
                : !one->window.started                                  ? WAITING
                : one->window.count < span && !scored                   ? WARMING
                : one->window.count < span && one->detector.provisional ? PROVISIONAL
                : one->window.filled * 10 > span                        ? GAP
                                                                        : OK];
}

/* --- requests --------------------------------------------------------------------------------------------------------- */

/* Parses the place at which the next part begins. */
static bool sensor_choice_read_place(const char *text, enum hk_sensor_sort sort, struct hk_sensor_place *out)
{
  int end = 0;
  if (!text[0]) {
    *out = (struct hk_sensor_place){ .key = sort == HK_SENSORS_UNSORTED ? 0 : UINT64_MAX };
    return true;
  }
  if (strspn(text, "0123456789-") != strlen(text) || text[0] == '-')
    return false;
  if (sort == HK_SENSORS_UNSORTED) {
    errno = 0;
    char *rest;
    const uint64_t slot = strtoull(text, &rest, 10);
    *out = (struct hk_sensor_place){ .slot = slot < UINT32_MAX ? (uint32_t)slot : UINT32_MAX };
    return *rest == 0 && errno == 0;
  }
  return sscanf(text, "%20" SCNu64 "-%8" SCNu32 "%n", &out->key, &out->slot, &end) == 2 && text[end] == 0;
}

const char *hk_sensors_want(const struct hk_web_sensors *asked, struct hk_sensor_wanted *out)
{
  *out = (struct hk_sensor_wanted){ .rows = asked->rows,
                                    .groups = asked->groups,
                                    .lines = asked->lines,
                                    .line = asked->line,
                                    .glob = hk_string(asked->glob),
                                    .limit = asked->limit,
                                    .alert = asked->alert,
                                    .state = asked->state };
  uint8_t channel = HK_CHANNEL_NONE + 1;
  size_t state = 0;
  while (channel < HK_CHANNELS && strcmp(asked->channel, hankel_channel_name(channel)) != 0)
    channel++;
  while (state < STATES && strcmp(asked->state, states[state]) != 0)
    state++;
  if (asked->channel[0] && channel == HK_CHANNELS)
    return "`channel` is score, change, shift, group, novelty or limit";
  if (asked->state[0] && state == STATES)
    return "`state` is ok, warming, provisional, gap, stale, waiting or unknown";
  if (asked->alert[0] && strcmp(asked->alert, "true") != 0 && strcmp(asked->alert, "false") != 0)
    return "`alert` is true or false";
  if (asked->sort[0] && strcmp(asked->sort, "score") != 0 && strcmp(asked->sort, "change") != 0)
    return "`sort` is score or change";
  out->channel = asked->channel[0] ? channel : HK_CHANNEL_NONE;
  out->sort = !asked->sort[0]                     ? HK_SENSORS_UNSORTED
              : strcmp(asked->sort, "score") == 0 ? HK_SENSORS_BY_SCORE
                                                  : HK_SENSORS_BY_CHANGE;
  return sensor_choice_read_place(asked->after, out->sort, &out->from)
             ? NULL
             : "`after` is `next` of the answer before, with the same `sort`";
}

/* --- choosing --------------------------------------------------------------------------------------------------------- */

/* The channel of the alerts of a detector's sensors. */
static uint8_t channel_of(const struct hk_config_detector *d)
{
  if (!d || d->field)
    return HK_CHANNEL_NONE; /* members' derived values of a field are scored by their further series */
  if (d->group)
    return HK_CHANNEL_GROUP;
  switch (d->detector.algorithm) {
  case HK_ALGORITHM_GRAPH:
    return HK_CHANNEL_CHANGE;
  case HK_ALGORITHM_SHIFT:
    return HK_CHANNEL_SHIFT;
  case HK_ALGORITHM_NOVELTY:
    return HK_CHANNEL_NOVELTY;
  case HK_ALGORITHM_LIMIT:
    return HK_CHANNEL_LIMIT;
  default:
    return HK_CHANNEL_SCORE;
  }
}

/* Bits of the slots with a standing alert. */
static uint8_t *standing_bits(struct hk_server *s, uint32_t slots)
{
  struct hk_alerts_sum sum;
  (void)hk_server_alerts(s, NULL, 0, &sum);
  uint8_t *bits = calloc(slots / 8 + 1, 1);
  struct hk_standing_key *keys = malloc((sum.standing + 1) * sizeof *keys);
  if (!bits || !keys) {
    free(bits);
    free(keys);
    return NULL;
  }
  for (uint32_t i = 0; i < s->shards.n; i++) {
    const uint32_t n = hk_alerts_keys(s->shard[i].alerts, keys, sum.standing);
    for (uint32_t k = 0; k < n; k++) {
      const uint32_t slot = hk_slot_outside(&s->shard[i], keys[k].slot);
      if (slot < slots) /* one that is newer than the list */
        bits[slot / 8] |= (uint8_t)(1 << slot % 8);
    }
  }
  free(keys);
  return bits;
}

/* The sort key of a score; sensors without one come last. */
static uint64_t sensor_choice_key_of(struct hk_server *s, enum hk_sensor_sort sort, uint32_t slot)
{
  const struct hk_shard *shard = &s->shard[slot % s->shards.n];
  const uint32_t within = slot / s->shards.n;
  if (sort == HK_SENSORS_BY_CHANGE) {
    const int64_t time = hk_alerts_changed(shard->alerts, within);
    return time != 0 ? (uint64_t)time ^ (uint64_t)1 << 63 : 0;
  }
  const float score = sort == HK_SENSORS_BY_SCORE ? hk_score_of(shard, within) : NAN;
  uint32_t bits;
  memcpy(&bits, &score, sizeof bits);
  return isnan(score) ? 0 : bits >> 31 ? ~bits : bits | (uint32_t)1 << 31; /* bits of floats are ordered, except for signs */
}

/* A sensor, and its place. */
struct ranked {
  struct hk_sensor_place at;
  uint32_t handle;
};

/* The first sensors so far; room for twice the wanted number, so that sorting is rare. */
struct ranking {
  struct ranked *of;
  uint32_t n, limit;
  bool full;      /* the wanted number is reached, */
  uint64_t least; /* and this is the key of the last of them */
};

static int by_place(const void *x, const void *y)
{
  const struct hk_sensor_place *a = &((const struct ranked *)x)->at, *b = &((const struct ranked *)y)->at;
  return a->key != b->key ? (a->key < b->key ? 1 : -1) : (a->slot > b->slot) - (a->slot < b->slot);
}

static void sensor_choice_cut(struct ranking *r)
{
  qsort(r->of, r->n, sizeof *r->of, by_place);
  r->n = r->n < r->limit ? r->n : r->limit;
  r->full = r->n == r->limit;
  r->least = r->full ? r->of[r->n - 1].at.key : 0;
}

/* Whether a sensor comes after the last wanted one: they come by ascending slots, so an equal key does. */
static bool behind(const struct ranking *r, struct hk_sensor_place at)
{
  return r->full && at.key <= r->least;
}

static void sensor_choice_rank(struct ranking *r, struct hk_sensor_place at, uint32_t handle)
{
  if (r->n == 2 * r->limit)
    sensor_choice_cut(r);
  r->of[r->n++] = (struct ranked){ at, handle };
}

/* The wanted sensors. */
struct filter {
  const struct hk_sensor_wanted *wanted;
  struct hk_glob *glob; /* NULL: any name */
  uint8_t *standing;    /* NULL: any */
};

/* For a slot that holds a sensor. To call under the registry's lock. */
static bool passes(const struct filter *f, const struct hk_registry *registry, uint32_t slot)
{
  const struct hk_sensor_wanted *w = f->wanted;
  if (f->standing && (f->standing[slot / 8] >> slot % 8 & 1) != (w->alert[0] == 't'))
    return false;
  if (w->groups || w->channel != HK_CHANNEL_NONE) {
    const struct hk_config_detector *d = hk_registry_detector_of(registry, hk_registry_detector(registry, slot));
    if ((w->groups && !(d && d->group && !d->residual)) || (w->channel != HK_CHANNEL_NONE && channel_of(d) != w->channel))
      return false;
  }
  if (!f->glob)
    return true;
  const struct hk_string name = hk_registry_name(registry, slot);
  return hk_glob_match(f->glob, name.data, name.length);
}

/* Ranks the sensors that pass. Returns the slot at which it stopped: after the last one, except for unsorted lists. */
static uint32_t sensor_choice_look_through(struct hk_server *s, const struct filter *f, uint32_t end, struct ranking *r)
{
  struct hk_registry *registry = s->shards.registry;
  const struct hk_sensor_wanted *w = f->wanted;
  const bool sorted = w->sort != HK_SENSORS_UNSORTED;
  uint32_t slot = sorted ? 0 : w->from.slot < end ? w->from.slot : end;
  const uint32_t begin = slot;
  while (slot < end && (sorted || (r->n < r->limit && slot - begin < LOOKED_MOST))) {
    const uint32_t stop = end - slot < TOGETHER ? end : slot + TOGETHER;
    hk_registry_read(registry);
    for (; slot < stop && (sorted || r->n < r->limit); slot++) {
      if (!hk_registry_holds(registry, slot))
        continue;
      const struct hk_sensor_place at = { sensor_choice_key_of(s, w->sort, slot), slot };
      const bool before = sorted && (at.key > w->from.key || (at.key == w->from.key && slot < w->from.slot));
      if (!before && !behind(r, at) && passes(f, registry, slot))
        sensor_choice_rank(r, at, hk_registry_handle(registry, slot));
    }
    hk_registry_read_end(registry);
  }
  return slot;
}

/* Returns the ranked sensors. */
static void sensor_choice_give(struct ranking *r, uint32_t most, struct hk_sensor_chosen *out, uint32_t *n,
                               struct hk_sensor_place *next, bool *more)
{
  sensor_choice_cut(r);
  *n = r->n < most ? r->n : most;
  for (uint32_t i = 0; i < *n; i++)
    out[i] = (struct hk_sensor_chosen){ r->of[i].handle, r->of[i].at.key };
  if (r->n <= most)
    return;
  *next = r->of[most].at;
  *more = true;
}

int hk_sensors_choose(struct hk_server *s, const struct hk_sensor_wanted *w, uint32_t most, struct hk_sensor_chosen *out,
                      uint32_t *n, struct hk_sensor_place *next, bool *more)
{
  const uint32_t end = hk_registry_slots(s->shards.registry);
  struct filter f = { .wanted = w };
  struct ranking r = { .limit = most + 1 }; /* one more: where the next part begins */
  int status = w->glob.length > 0 ? hk_glob_new(&f.glob, w->glob.data, w->glob.length) : 0;
  r.of = malloc(2 * (size_t)r.limit * sizeof *r.of);
  if (status == 0 && w->alert[0])
    f.standing = standing_bits(s, end);
  if (status == 0 && (!r.of || (w->alert[0] && !f.standing)))
    status = -ENOMEM;
  if (status == 0) {
    const uint32_t stopped = sensor_choice_look_through(s, &f, end, &r);
    *more = stopped < end;
    *next = (struct hk_sensor_place){ .slot = stopped };
    sensor_choice_give(&r, most, out, n, next, more);
  }
  hk_glob_free(f.glob);
  free(f.standing);
  free(r.of);
  return status;
}
