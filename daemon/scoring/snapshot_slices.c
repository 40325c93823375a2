/* The shard's side: which slice is next, and when. */
#include "daemon/scoring/snapshot_slices.h"
#include "daemon/base/grow.h"
#include "daemon/durable/disk_health.h"
#include "daemon/scoring/derived_points.h"
#include "daemon/scoring/evict.h"
#include "daemon/scoring/group_restore.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/hand_over.h"
#include "daemon/scoring/rates.h"
#include "daemon/scoring/snapshot_slice.h"
#include "daemon/scoring/snapshot_thread.h"
#include "daemon/scoring/turn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE 3     /* times the duration of a slice */
#define LOOK 65536u /* slots examined in one turn */

static bool reserve(void **list, uint32_t *room, uint32_t n, size_t each)
{
  void *longer = hk_grow(*list, n, room, each, 256);
  if (!longer)
    return false;
  *list = longer;
  return true;
}

static bool reserve_names(struct hk_slice *slice, size_t more)
{
  if (slice->names_size + more <= slice->names_room)
    return true;
  const uint32_t room = slice->names_room ? 2 * slice->names_room : 64 << 10;
  char *names = realloc(slice->names, room);
  if (!names)
    return false;
  slice->names = names;
  slice->names_room = room;
  return true;
}

/* --- begin and end --------------------------------------------------------------------------------------------------- */

static int feed_note(void *arg, struct hk_feed *feed)
{
  struct hk_saver *v = arg;
  if (!reserve((void **)&v->feeds, &v->room_feeds, v->n_feeds, sizeof *v->feeds))
    return -ENOMEM;
  hk_feed_hold(feed); /* until its section is written */
  v->feeds[v->n_feeds++] = (struct hk_saved_feed){ feed, feed->owner, atomic_load(&feed->part[v->place.shard->number].taken) };
  return 0;
}

/* Sensors are saved in this order: a machine is saved after all its members, and points derived from a field's rows are in the
 * state of its derived sensors, or derived again from the points after the field's position. */
enum phase { PLAIN, SERIES, RESIDUALS };

/* Copies how many points of each feed this shard has taken. */
static int note_feeds(struct hk_saver *v)
{
  v->n_feeds = 0;
  return hk_feeds_each(v->place.durable->feeds, feed_note, v);
}

static void begin(struct hk_saver *v)
{
  struct hk_shard *s = v->place.shard;
  v->progress.begun = hk_now();
  v->progress.about = (struct hk_snapshot_about){ .shard = s->number,
                                                  .shards = s->all->n,
                                                  .number = ++v->progress.number,
                                                  .epoch = v->place.epoch,
                                                  .begin = hk_commit_gate_position(&s->gate),
                                                  .order = hk_durable_order(v->place.durable, s->all->registry),
                                                  .made = hk_wall(),
                                                  .latest = s->taking.reach.latest,
                                                  .together = hk_durable_together(v->place.durable) };
  v->progress.logged = s->all->events ? hk_eventlog_last(s->all->events) : 0;
  v->progress.asked = atomic_load(&v->asks);
  v->progress.hurry = atomic_exchange(&v->hurries, false);
  v->progress.at = v->progress.n_left = 0;
  v->progress.phase = PLAIN;
  v->progress.next_slice = 0;
  v->failed = false;
  v->progress.state = HK_SAVER_SLICING;
  const int32_t held = v->place.shared ? hk_partitions_copy(s->requests.partitions, &v->held) : 0;
  v->n_held = held > 0 ? (uint32_t)held : 0;
  if (note_feeds(v) != 0 || held < 0)
    hk_saver_fail(v, "no memory or descriptors for the feeds");
  v->order[0].kind = HK_SAVE_BEGIN;
  hk_saver_send(v, &v->order[0]);
}

static void end(struct hk_saver *v)
{
  struct hk_shard *s = v->place.shard;
  v->progress.state = HK_SAVER_ENDING;
  v->progress.due = v->progress.held_up = false;
  uv_timer_stop(&s->life.saves);
  v->order[1].kind = v->failed ? HK_SAVE_GIVE_UP : HK_SAVE_END;
  hk_saver_send(v, &v->order[1]);
}

/* --- slices ---------------------------------------------------------------------------------------------------------- */

static struct hk_slice *free_slice(struct hk_saver *v)
{
  for (uint32_t i = 0; i < HK_EXPORTS; i++)
    if (!atomic_load_explicit(&v->slice[i].busy, memory_order_acquire))
      return &v->slice[i];
  return NULL;
}

/* The index of a detector within the slice; -1: no memory. */
static int32_t detector_of(struct hk_slice *slice, const struct hk_config_detector *d)
{
  for (uint32_t i = slice->n_detectors; i-- > 0;)
    if (slice->detectors[i].number == d->number)
      return (int32_t)i;
  if (!reserve((void **)&slice->detectors, &slice->room_detectors, slice->n_detectors, sizeof *slice->detectors))
    return -1;
  slice->detectors[slice->n_detectors] = *d;
  return (int32_t)slice->n_detectors++;
}

static const struct hk_config_detector *detector(const struct hk_shard *s, uint32_t outside)
{
  return hk_registry_detector_of(s->all->registry, hk_registry_detector(s->all->registry, outside));
}

static uint32_t phase_of(const struct hk_config_detector *d)
{
  return d->residual ? RESIDUALS : d->group ? SERIES : PLAIN;
}

/* The machines of which one has this series. */
static struct hk_groups *machines_of(const struct hk_shard *s, uint32_t local)
{
  return hk_groups_with(s, detector(s, hk_slot_outside(s, local)));
}

/* Copies the machine of a series, if the slot is one. False: no memory. */
static bool add_machine(struct hk_shard *s, struct hk_slice *slice, uint32_t local, uint32_t image)
{
  struct hk_saved_machine machine = { .image = image };
  const size_t before = slice->machines.size;
  if (!hk_groups_save(machines_of(s, local), local, &slice->machines, &machine.places))
    return !slice->machines.failed;
  if (!reserve((void **)&slice->machine, &slice->room_machines, slice->n_machines, sizeof machine))
    return false;
  slice->machine[slice->n_machines++] = machine;
  slice->bytes += slice->machines.size - before;
  return true;
}

/* Adds a sensor to the slice. False: no room, or no memory. */
static bool add(struct hk_saver *v, struct hk_slice *slice, struct hk_batch *b, uint32_t outside, uint32_t local)
{
  struct hk_shard *s = v->place.shard;
  const struct hk_config_detector *d = detector(s, outside);
  const uint64_t most = s->device->backend->ops->image_most(&d->detector);
  if (b->n == b->capacity || (b->n > 0 && slice->bytes + most > HK_EXPORT_BYTES))
    return false;
  const int32_t number = detector_of(slice, d);
  if (number < 0 || (v->progress.phase == SERIES && !add_machine(s, slice, local, b->n))) {
    hk_saver_fail(v, "no memory for a slice");
    return false;
  }
  slice->sensors[b->n].detector = (uint16_t)number;
  slice->sensors[b->n].rate = hk_rates_of(&s->rates, local);
  slice->bytes += most;
  b->slot[b->n++] = local;
  return true;
}

/* Adds the sensors that had points in chains and no longer have. */
static void fill_left(struct hk_saver *v, struct hk_slice *slice, struct hk_batch *b)
{
  struct hk_shard *s = v->place.shard;
  uint32_t kept = 0, i = 0;
  for (; i < v->progress.n_left; i++) {
    const uint32_t local = v->progress.left[i], outside = hk_slot_outside(s, local);
    if (!hk_registry_holds(s->all->registry, outside))
      continue;
    if (hk_stage_has(s->stage, local))
      v->progress.left[kept++] = local;
    else if (!add(v, slice, b, outside, local))
      break;
  }
  while (i < v->progress.n_left)
    v->progress.left[kept++] = v->progress.left[i++];
  v->progress.n_left = kept;
}

/* Fills a slice from where the last one ended. */
static void fill(struct hk_saver *v, struct hk_slice *slice, struct hk_batch *b)
{
  struct hk_shard *s = v->place.shard;
  const uint32_t slots = hk_registry_slots(s->all->registry), looked = v->progress.at + LOOK;
  for (; v->progress.at < looked && hk_slot_outside(s, v->progress.at) < slots && !v->failed; v->progress.at++) {
    const uint32_t outside = hk_slot_outside(s, v->progress.at);
    if (!hk_registry_holds(s->all->registry, outside) || phase_of(detector(s, outside)) != v->progress.phase)
      continue;
    if (hk_stage_has(s->stage, v->progress.at)) {
      if (reserve((void **)&v->progress.left, &v->progress.room_left, v->progress.n_left, sizeof *v->progress.left))
        v->progress.left[v->progress.n_left++] = v->progress.at;
      else
        hk_saver_fail(v, "no memory for a list of sensors");
    } else if (!add(v, slice, b, outside, v->progress.at)) {
      return;
    }
  }
  v->progress.passed = hk_slot_outside(s, v->progress.at) >= slots;
  if (v->progress.passed)
    fill_left(v, slice, b);
}

static void on_pace(uv_timer_t *timer)
{
  (void)timer; /* it wakes the thread, whose turn does the rest */
}

/* Determines when the next slice is due, by the duration of the last one. */
static void pace(struct hk_saver *v, int64_t took)
{
  const struct hk_shard *s = v->place.shard;
  const int64_t now = hk_now(), left = v->progress.begun + s->config->snapshot / 2 - now;
  const uint32_t sensors = (hk_registry_count(s->all->registry) + s->all->n - 1) / s->all->n;
  const uint32_t slices =
      v->progress.saved < sensors && v->progress.in_slice > 0 ? (sensors - v->progress.saved) / v->progress.in_slice + 1 : 1;
  int64_t pause = PAUSE * took;
  if (pause + took > left / (int64_t)slices)
    pause = left / (int64_t)slices - took;
  v->progress.next_slice = v->progress.hurry || pause < 0 ? 0 : now + pause;
}

/* The device may have to become idle first: then this is tried again, and no batch goes before it. */
static void submit(struct hk_saver *v, struct hk_delivery *p)
{
  v->progress.stuck = hk_shard_submit(v->place.shard, p) == HK_AGAIN;
}

/* Launches the next slice if it is due; true when all have been launched. */
static bool slice(struct hk_saver *v)
{
  struct hk_shard *s = v->place.shard;
  struct hk_delivery *p = hk_queue_free_export(&s->queue);
  struct hk_slice *slice = free_slice(v);
  if (v->progress.stuck)
    submit(v, v->progress.exporting->delivery);
  if (v->progress.exporting)
    return false;
  if (v->progress.passed && v->progress.n_left == 0 &&
      (v->progress.phase == RESIDUALS ||
       (!hk_groups_any(s->machines.groups) && !hk_groups_any(s->machines.seconds) && !hk_groups_any(s->machines.fields))))
    return true;
  if (v->progress.passed && v->progress.n_left == 0) {
    v->progress.phase++;
    v->progress.passed = false;
    v->progress.at = 0;
  }
  v->progress.due = p && slice && hk_now() >= v->progress.next_slice && !hk_shard_forgets(s);
  v->progress.held_up = v->progress.due && hk_derive_within(s); /* a slice has one position for all its sensors */
  if (!v->progress.due || v->progress.held_up || hk_queue_kept(&s->queue) || hk_reload_holds(&s->reload) ||
      hk_queue_in_flight(&s->queue) == HK_IN_FLIGHT)
    return false;
  slice->bytes = 0;
  slice->n_detectors = slice->n_machines = 0;
  slice->machines.size = slice->provisional.size = 0;
  p->batch->n = p->n_runs = 0;
  fill(v, slice, p->batch);
  if (p->batch->n == 0)
    return false; /* it is still due: the remaining sensors have points in chains, which empty while no chunk is taken */
  v->progress.due = false;
  /* all points that were taken are in batches, or in chains of other sensors */
  slice->position = hk_shard_staged(s);
  slice->arrival = hk_now() + s->ahead;
  slice->delivery = p;
  atomic_store_explicit(&slice->busy, true, memory_order_relaxed);
  v->progress.exporting = slice;
  hk_queue_begin_export(&s->queue);
  submit(v, p);
  return false;
}

/* Adds what was published of a machine up to the slice's position. */
static void note_machine(struct hk_saver *v, struct hk_slice *slice, struct hk_saved_machine *m, uint32_t local,
                         const struct hk_saved_sensor *series)
{
  m->generation = series->generation;
  m->partition = series->partition;
  m->whole = hk_groups_save_told(machines_of(v->place.shard, local), local, &slice->machines, &m->places, &m->memory);
  if (slice->machines.failed)
    hk_saver_fail(v, "no memory for machines");
}

/* Adds what is to be saved of a sensor's provisional scores, after the points up to the slice's position. */
static void note_provisional(struct hk_saver *v, struct hk_slice *slice, struct hk_saved_sensor *to, uint32_t local)
{
  const struct hk_provisional *p = v->place.shard->provisional;
  char *room = p ? hk_buffer_room(&slice->provisional, HK_PROVISIONAL_SAVED) : NULL;
  to->provisional_size = room ? (uint16_t)hk_provisional_save(p, local, room) : 0;
  slice->provisional.size += to->provisional_size;
  if (slice->provisional.failed)
    hk_saver_fail(v, "no memory for provisional scores");
}

void hk_saver_back(struct hk_saver *v, struct hk_delivery *p)
{
  struct hk_shard *s = v->place.shard;
  struct hk_slice *slice = v->progress.exporting;
  struct hk_batch *b = p->batch;
  const struct hk_image *image = b->work;
  uint32_t n = 0, machine = 0;
  slice->names_size = 0;
  for (uint32_t i = 0; i < b->n && !v->failed; i++) {
    const uint32_t outside = hk_slot_outside(s, b->slot[i]);
    if (image[i].size == 0 || !hk_registry_holds(s->all->registry, outside))
      continue;
    const struct hk_string name = hk_registry_name(s->all->registry, outside);
    if (!reserve_names(slice, name.length)) {
      hk_saver_fail(v, "no memory for names");
      break;
    }
    struct hk_saved_sensor *to = &slice->sensors[n++];
    const uint16_t detector = slice->sensors[i].detector; /* n <= i */
    const struct hk_rate rate = slice->sensors[i].rate;
    *to = (struct hk_saved_sensor){ .owner = hk_registry_owner(s->all->registry, outside),
                                    .rate = rate,
                                    .slot = outside,
                                    .image = i,
                                    .name = slice->names_size,
                                    .name_size = (uint16_t)name.length,
                                    .detector = detector,
                                    .generation = (uint8_t)(hk_registry_handle(s->all->registry, outside) >> 24),
                                    .partition = v->place.shared ? hk_shard_partition(s, outside) : 0 };
    memcpy(slice->names + slice->names_size, name.data, name.length);
    slice->names_size += (uint32_t)name.length;
    hk_alerts_get(s->alerts, b->slot[i], &to->alerts);
    note_provisional(v, slice, to, b->slot[i]);
    while (machine < slice->n_machines && slice->machine[machine].image < i)
      machine++;
    if (machine < slice->n_machines && slice->machine[machine].image == i)
      note_machine(v, slice, &slice->machine[machine], b->slot[i], to);
  }
  slice->n = n;
  slice->events = s->all->events ? hk_eventlog_appended(s->all->events) : 0;
  v->progress.saved += n;
  v->progress.in_slice = b->n;
  v->progress.exporting = NULL;
  hk_queue_end_export(&s->queue);
  pace(v, hk_now() - p->stamps.submitted);
  p->kind = HK_DELIVERY_EXPORT;
  p->late = p->derived.late = p->rejected = p->derived.rejected = p->scored = p->unscored = p->failed = p->device_lost = 0;
  p->shard = s;
  atomic_store_explicit(&p->holders, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&p->device->lent, 1, memory_order_relaxed);
  if (v->place.shared)
    hk_shard_send_after(s, p);
  hk_saver_send(v, &slice->order);
}

void hk_saver_dropped(struct hk_saver *v, struct hk_delivery *p, const char *why)
{
  struct hk_shard *s = v->place.shard;
  if (v->progress.exporting && v->progress.exporting->delivery == p) {
    atomic_store_explicit(&v->progress.exporting->busy, false, memory_order_release);
    v->progress.exporting = NULL;
    hk_queue_end_export(&s->queue);
  }
  v->progress.stuck = false;
  hk_saver_fail(v, why);
  hk_queue_give_export(&s->queue, p);
}

/* Whether all slices are back; shared: from loops, too, so they have published all results that the snapshot includes. */
static bool all_back(const struct hk_saver *v)
{
  return !v->progress.exporting && (v->failed || !v->place.shared || hk_queue_exports_home(&v->place.shard->queue));
}

bool hk_saver_due(const struct hk_saver *v)
{
  return v->progress.due;
}

bool hk_saver_stuck(const struct hk_saver *v)
{
  return v->progress.stuck;
}

bool hk_saver_pauses(const struct hk_saver *v)
{
  return v->progress.state == HK_SAVER_WAITING || v->progress.held_up ||
         (v->progress.state == HK_SAVER_SLICING && v->progress.passed && v->progress.n_left > 0 && v->progress.due);
}

/* --- the turn -------------------------------------------------------------------------------------------------------- */

void hk_saver_turn(struct hk_saver *v)
{
  struct hk_shard *s = v->place.shard;
  if (v->progress.state == HK_SAVER_IDLE && s->device && !s->replaying && hk_durable_wants_snapshot(v->place.durable, s->number))
    atomic_fetch_add(&v->asks, 1);
  if (v->progress.state == HK_SAVER_IDLE && s->device && !s->replaying &&
      (atomic_load(&v->asks) > v->progress.asked || hk_now() - v->progress.ended >= s->config->snapshot))
    v->progress.state = HK_SAVER_WAITING;
  if (v->progress.state == HK_SAVER_WAITING && !hk_taking_any(&s->taking)) {
    v->progress.passed = false;
    v->progress.saved = 0;
    begin(v);
    uv_timer_start(&s->life.saves, on_pace, 1, 1);
  }
  if (v->progress.state == HK_SAVER_SLICING && (v->failed || !s->device || slice(v))) {
    if (!s->device)
      hk_saver_fail(v, "the device was lost");
    if (all_back(v))
      end(v);
  }
  if (v->progress.state == HK_SAVER_ENDING && atomic_load_explicit(&v->over, memory_order_acquire)) {
    atomic_store_explicit(&v->over, false, memory_order_relaxed);
    v->progress.ended = hk_now();
    v->progress.state = HK_SAVER_IDLE;
    atomic_store(&v->answered, v->progress.asked);
  }
}

/* --- for others ------------------------------------------------------------------------------------------------------ */

uint64_t hk_saver_ask(struct hk_saver *v, bool hurry)
{
  if (hurry)
    atomic_store(&v->hurries, true);
  const uint64_t asked = atomic_fetch_add(&v->asks, 1) + 1;
  hk_wake_up(&v->place.shard->life.wake, HK_WAKE_WORK);
  return asked;
}

bool hk_saver_finished(struct hk_saver *v, uint64_t asked)
{
  return atomic_load(&v->answered) >= asked;
}
