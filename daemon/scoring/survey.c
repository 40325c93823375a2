/* See survey.h. */
#include "daemon/scoring/survey.h"

#include "cpu/backend/state_size.h"
#include "cpu/rules/state.h"
#include "daemon/scoring/field_rows.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/hand_over.h"
#include "daemon/scoring/look.h"
#include "daemon/scoring/score_log.h"
#include "daemon/scoring/shard.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- scores ----------------------------------------------------------------------------------------------------------- */

/* Bits are stored inverted, so that zeroed memory, which is committed only when written, is NANs. */
static uint32_t packed(float score)
{
  uint32_t bits;
  memcpy(&bits, &score, sizeof bits);
  return ~bits;
}

static float unpacked(uint32_t bits)
{
  float score;
  bits = ~bits;
  memcpy(&score, &bits, sizeof score);
  return score;
}

void hk_scores_note(struct hk_shard *s, const struct hk_batch *b)
{
  uint32_t *const last = s->requests.surveys.score; /* other threads read it */
  const uint32_t n = b->n, *const slot = b->slot;
  const float *const score = b->score;
  const uint8_t *const state = b->state;
  if (s->requests.surveys.log)
    hk_score_log_put(s->requests.surveys.log, b);
  for (uint32_t i = 0; i < n; i++)
    if (!isnan(score[i]))
      __atomic_store_n(&last[slot[i]], packed(score[i]), __ATOMIC_RELAXED);
    else if (state[i] == HK_STATE_WARMING)
      __atomic_store_n(&last[slot[i]], 0, __ATOMIC_RELAXED);
}

float hk_score_of(const struct hk_shard *s, uint32_t within)
{
  return unpacked(__atomic_load_n(&s->requests.surveys.score[within], __ATOMIC_RELAXED));
}

void hk_scores_forget(struct hk_shard *s, uint32_t within)
{
  __atomic_store_n(&s->requests.surveys.score[within], 0, __ATOMIC_RELAXED);
  if (s->requests.surveys.log)
    hk_score_log_forget(s->requests.surveys.log, within);
}

/* --- surveys ---------------------------------------------------------------------------------------------------------- */

struct hk_survey *hk_survey_new(uint32_t n)
{
  struct hk_survey *v = calloc(1, sizeof *v + n * sizeof v->sensor[0]);
  if (!v)
    return NULL;
  v->n = n;
  v->line = UINT32_MAX;
  atomic_store_explicit(&v->holders, 2, memory_order_relaxed);
  atomic_store_explicit(&v->outcome, HK_SURVEY_WAITS, memory_order_relaxed);
  return v;
}

void hk_survey_release(struct hk_survey *v)
{
  if (!v || atomic_fetch_sub_explicit(&v->holders, 1, memory_order_acq_rel) != 1)
    return;
  for (uint32_t i = 0; i < v->n; i++) {
    free(v->sensor[i].member);
    hk_profile_free(v->sensor[i].profile);
  }
  free(v);
}

void hk_survey_post(struct hk_shard *s, struct hk_survey *v)
{
  struct hk_survey *top = atomic_load_explicit(&s->requests.surveys.posted, memory_order_relaxed);
  v->posted = hk_now();
  do
    v->next = top;
  while (
      !atomic_compare_exchange_weak_explicit(&s->requests.surveys.posted, &top, v, memory_order_release, memory_order_relaxed));
  hk_wake_up(&s->life.wake, HK_WAKE_WORK);
}

/* Memory for reading one state after the other. */
struct scratch {
  void *state;
  float *ring;
  size_t size;
  uint32_t span;
};

/* Makes room. False: no memory. */
static bool survey_make_room(struct scratch *room, const struct hk_detector *d)
{
  const size_t most = hk_state_most(d);
  const uint32_t span = hk_detector_span(d);
  if (most > room->size) {
    free(room->state);
    room->state = malloc(most);
    room->size = room->state ? most : 0;
  }
  if (span > room->span) {
    free(room->ring);
    room->ring = malloc(span * sizeof *room->ring);
    room->span = room->ring ? span : 0;
  }
  return room->state && room->ring;
}

/* The newest sample that was not filled in. */
static double survey_newest(const struct hk_window *w, const float *ring, uint32_t span)
{
  for (uint32_t back = 1; back <= w->count; back++) {
    const float sample = ring[(w->head + span - back) % span];
    if (!hk_sample_filled(sample))
      return w->reference + (double)sample;
  }
  return NAN;
}

/* Lists the members of a machine. Returns 0 or -ENOMEM. */
static int look_at_members(const struct hk_groups *groups, uint32_t within, struct hk_surveyed *one)
{
  one->members = hk_groups_members(groups, within, NULL, 0);
  if (one->members == 0)
    return 0;
  const uint32_t room = one->members < HK_SURVEY_MEMBERS ? one->members : HK_SURVEY_MEMBERS;
  one->member = malloc(room * sizeof *one->member);
  if (!one->member)
    return -ENOMEM;
  (void)hk_groups_members(groups, within, one->member, room);
  return 0;
}

/* Returns 0 or -ENOMEM. */
static int survey_look_at(struct hk_shard *s, struct hk_surveyed *one, uint32_t line, struct scratch *room)
{
  struct hk_registry *registry = s->all->registry;
  struct hk_device *device = s->device;
  struct hk_backend *b = device->backend;
  const uint32_t slot = one->handle & 0xffffff, within = hk_slot_within(s->all, slot);
  const uint8_t *rest;
  size_t rest_size;
  one->value = one->explained = NAN;
  one->score = NAN;
  if (!hk_registry_holds(registry, slot) || hk_registry_handle(registry, slot) != one->handle)
    return 0;
  const struct hk_config_detector *d = hk_registry_detector_of(registry, hk_registry_detector(registry, slot));
  if (!d)
    return 0;
  one->there = true;
  one->detector = d->detector;
  one->score = hk_score_of(s, within);
  one->explained = hk_fields_explains(s->machines.fields, within);
  if (d->field && !d->residual && line != UINT32_MAX)
    one->profile = hk_fields_profile(s->machines.fields, within, line);
  if (d->group && !d->residual)
    return look_at_members(hk_groups_with(s, d), within, one);
  if (!survey_make_room(room, &d->detector))
    return -ENOMEM;
  pthread_mutex_lock(&device->calls);
  const int64_t size = b->ops->export_(b, within, room->state, room->size);
  pthread_mutex_unlock(&device->calls);
  one->held =
      size >= 0 && (size_t)size <= room->size &&
      hk_state_open(room->state, (size_t)size, &d->detector, &one->window, &one->alert, room->ring, &rest, &rest_size) == 0;
  if (one->held)
    one->value = survey_newest(&one->window, room->ring, hk_detector_span(&d->detector));
  return 0;
}

static void survey_take(struct hk_shard *s, struct hk_survey *v)
{
  struct scratch room = { 0 };
  int outcome = s->device ? 0 : hk_failover_moves(&s->failover) ? -EAGAIN : -ENODEV;
  for (uint32_t i = 0; i < v->n && outcome == 0; i++)
    outcome = survey_look_at(s, &v->sensor[i], v->line, &room);
  free(room.state);
  free(room.ring);
  void (*ready)(void *) = v->ready;
  void *arg = v->arg;
  atomic_store_explicit(&v->outcome, outcome, memory_order_release);
  hk_survey_release(v);
  if (ready)
    ready(arg);
  else
    hk_shard_settled(s);
}

bool hk_shard_take_surveys(struct hk_shard *s)
{
  if (!s->requests.surveys.waiting && !atomic_load_explicit(&s->requests.surveys.posted, memory_order_relaxed))
    return false;
  struct hk_survey *v = atomic_exchange_explicit(&s->requests.surveys.posted, NULL, memory_order_acquire);
  for (struct hk_survey *next; v; v = next) {
    next = v->next;
    v->next = s->requests.surveys.waiting;
    s->requests.surveys.waiting = v;
  }
  if (s->device && hk_queue_in_flight(&s->queue) > 0)
    return false;
  if (hk_shard_survey_waits(s))
    s->requests.surveys.held = hk_now();
  for (struct hk_survey *next; s->requests.surveys.waiting; s->requests.surveys.waiting = next) {
    next = s->requests.surveys.waiting->next;
    survey_take(s, s->requests.surveys.waiting);
  }
  return true;
}

bool hk_shard_survey_waits(const struct hk_shard *s)
{
  const int64_t now = s->requests.surveys.waiting ? hk_now() : 0;
  if (now - s->requests.surveys.held < HK_LOOK_REST)
    return false;
  for (const struct hk_survey *v = s->requests.surveys.waiting; v; v = v->next)
    if (now - v->posted >= HK_LOOK_PATIENCE)
      return true;
  return false;
}

static void survey_drop(struct hk_survey *v)
{
  for (struct hk_survey *next; v; v = next) {
    next = v->next;
    hk_survey_release(v);
  }
}

int hk_surveys_open(struct hk_surveys *surveys, uint32_t slots, uint64_t log)
{
  surveys->score = calloc(slots, sizeof *surveys->score);
  surveys->log = log > 0 ? hk_score_log_new(log) : NULL;
  return surveys->score && (surveys->log || log == 0) ? 0 : -ENOMEM;
}

void hk_surveys_close(struct hk_surveys *surveys)
{
  survey_drop(atomic_exchange_explicit(&surveys->posted, NULL, memory_order_acquire));
  survey_drop(surveys->waiting);
  free(surveys->score);
  hk_score_log_free(surveys->log);
  *surveys = (struct hk_surveys){ .score = NULL };
}
