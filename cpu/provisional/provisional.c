/* Provisional scores: see provisional.h. */
#include "cpu/provisional/provisional.h"
#include "cpu/rules/state.h"
#include "cpu/sst/score.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW HK_PROVISIONAL_WINDOW
_Static_assert(WINDOW == 12, "hk_provisional_new parses it");
#define SEED UINT64_C(0x70726f766973696f) /* of the feedback vector of every small window */
#define LEAST 256u                        /* entries that are allocated at first */

/* The small window of a sensor. */
struct young {
  struct hk_window window;
  struct hk_alert alert;
  float ring[HK_PROVISIONAL_FIRST];
  float feedback[WINDOW];
};

struct entry {
  struct young *young; /* NULL: none */
  uint32_t alerts;     /* provisional alerts so far */
  uint32_t number;     /* of the last alert, provisional or not, as far as it passed here */
};

struct hk_provisional {
  struct entry *entries; /* by slot */
  uint32_t n;
  struct hk_detector base; /* of small windows, but for the keys that are the sensor's */
  struct hk_scorer *scorer;
  struct hk_event *made; /* by the batch that is being completed */
  uint32_t n_made, room;
};

int hk_provisional_new(struct hk_provisional **out)
{
  struct hk_provisional *p = calloc(1, sizeof *p);
  char error[128];
  if (!p)
    return -ENOMEM;
  int status = hk_detector_parse("window=12", &p->base, error, sizeof error);
  if (status == 0)
    status = hk_scorer_new(&p->scorer, &p->base, 1);
  if (status != 0) {
    free(p);
    return status;
  }
  *out = p;
  return 0;
}

void hk_provisional_free(struct hk_provisional *p)
{
  if (!p)
    return;
  for (uint32_t i = 0; i < p->n; i++)
    free(p->entries[i].young);
  free(p->entries);
  free(p->made);
  hk_scorer_free(p->scorer);
  free(p);
}

size_t hk_provisional_bytes(void)
{
  return sizeof(struct young);
}

/* The entry of a slot; NULL: no memory. */
static struct entry *entry_of(struct hk_provisional *p, uint32_t slot)
{
  if (slot >= p->n) {
    const uint32_t n = slot < LEAST / 2 ? LEAST : 2 * slot;
    struct entry *grown = realloc(p->entries, n * sizeof *grown);
    if (!grown)
      return NULL;
    memset(grown + p->n, 0, (n - p->n) * sizeof *grown);
    p->entries = grown;
    p->n = n;
  }
  return &p->entries[slot];
}

/* The detector of the small window of a sensor with detector d. */
static struct hk_detector small_of(const struct hk_provisional *p, const struct hk_detector *d)
{
  struct hk_detector small = p->base;
  small.interval = d->interval;
  small.fill = d->fill;
  small.max_fill = d->max_fill;
  small.rate = d->rate;
  small.hold = d->hold;
  small.false_alarms = d->false_alarms;
  small.alert = d->alert == HK_ALERT_OFF ? HK_ALERT_OFF : HK_ALERT_ADAPTIVE;
  return small;
}

static struct young *young_new(void)
{
  struct young *young = calloc(1, sizeof *young);
  if (!young)
    return NULL;
  young->window.seed = SEED;
  hk_feedback_reset(young->feedback, SEED, WINDOW);
  return young;
}

static void young_free(struct entry *entry)
{
  free(entry->young);
  entry->young = NULL;
}

/* Adds an event at a point of a batch, if there is room. */
static int add_event(struct hk_provisional *p, const struct hk_batch *batch, uint32_t point, struct hk_event event)
{
  if (p->n_made == p->room) {
    const uint32_t room = p->room > 0 ? 2 * p->room : 64;
    struct hk_event *grown = realloc(p->made, room * sizeof *grown);
    if (!grown)
      return -ENOMEM;
    p->made = grown;
    p->room = room;
  }
  if (p->n_made + batch->n_events == batch->capacity)
    return 0;
  event.index = point;
  event.slot = batch->slot[point];
  event.marks = HK_PROVISIONAL_MARK;
  event.severity = 0;
  p->made[p->n_made++] = event;
  return 0;
}

/* Ends the small window: the wanted one is full. */
static int end(struct hk_provisional *p, struct entry *entry, const struct hk_batch *batch, uint32_t point)
{
  struct young *young = entry->young;
  int status = 0;
  if (hk_alert_end(&young->alert) != 0) {
    struct hk_event event = hk_alert_event(&young->alert, &young->window, HK_EVENT_CLEARED, HK_CHANNEL_SCORE);
    event.time = batch->time[point];
    status = add_event(p, batch, point, event);
  }
  young_free(entry);
  return status;
}

/* Takes a point of a sensor whose wanted window is not full. known: number of its last alert. */
static int take(struct hk_provisional *p, struct entry *entry, const struct hk_detector *d, uint32_t known,
                struct hk_batch *batch, uint32_t point)
{
  struct young *young = entry->young;
  const struct hk_detector small = small_of(p, d);
  const struct hk_step step = hk_window_take(&young->window, young->ring, &small, batch->time[point], batch->value[point],
                                             batch->arrival, young->alert.raised);
  if (step.state == HK_STATE_LATE || step.state == HK_STATE_REJECTED)
    return 0;
  struct hk_task task = { .window = &young->window, .ring = young->ring, .feedback = young->feedback, .z = NAN, .share = NAN };
  if (step.restarted)
    hk_feedback_reset(young->feedback, SEED, WINDOW);
  if (step.score)
    hk_score(p->scorer, &small, &task, 1);
  batch->score[point] = task.z;
  if (step.state != HK_STATE_WARMING)
    batch->state[point] = HK_STATE_PROVISIONAL;
  if (!young->alert.raised)
    young->alert.number = known > entry->number ? known : entry->number;
  struct hk_event event;
  if (!hk_alert_decide(&young->alert, &young->window, young->ring, &small, step, (double)task.z, (double)task.share, &event))
    return 0;
  if (event.kind == HK_EVENT_RAISED) {
    entry->alerts++;
    entry->number = event.number;
  }
  return add_event(p, batch, point, event);
}

/* A point in state warming: begins a small window, if the sensor is to have one, and takes the point. */
static int warm(struct hk_provisional *p, const struct hk_provisional_sensors *sensors, struct hk_batch *batch, uint32_t point)
{
  const uint32_t slot = batch->slot[point];
  const struct hk_detector *d = sensors->detector(sensors->arg, slot);
  if (!d || !d->provisional)
    return 0;
  struct entry *entry = entry_of(p, slot);
  if (!entry || (!entry->young && !(entry->young = young_new())))
    return -ENOMEM;
  return take(p, entry, d, sensors->number ? sensors->number(sensors->arg, slot) : 0, batch, point);
}

/* Raises the numbers of the backend's events by those of provisional alerts up to then. */
static void provisional_renumber(struct hk_provisional *p, struct hk_event *event)
{
  struct entry *entry = event->slot < p->n ? &p->entries[event->slot] : NULL;
  if (!entry || event->number == 0)
    return;
  event->number += entry->alerts;
  if (event->number > entry->number)
    entry->number = event->number;
}

/* Merges the events that were made into those of the batch: by point, and the backend's last. */
static void provisional_merge(struct hk_provisional *p, struct hk_batch *batch)
{
  uint32_t to = batch->n_events + p->n_made, from = batch->n_events, made = p->n_made;
  batch->n_events = to;
  while (made > 0)
    batch->event[--to] =
        from > 0 && batch->event[from - 1].index >= p->made[made - 1].index ? batch->event[--from] : p->made[--made];
}

int hk_provisional_complete(struct hk_provisional *p, const struct hk_provisional_sensors *sensors, struct hk_batch *batch)
{
  int status = 0;
  p->n_made = 0;
  for (uint32_t i = 0, event = 0; i < batch->n; i++) {
    int failed = 0;
    struct entry *entry = batch->slot[i] < p->n ? &p->entries[batch->slot[i]] : NULL;
    for (; event < batch->n_events && batch->event[event].index <= i; event++)
      provisional_renumber(p, &batch->event[event]);
    if (batch->state[i] == HK_STATE_WARMING)
      failed = warm(p, sensors, batch, i);
    else if (!entry || !entry->young)
      continue;
    else if (batch->state[i] == HK_STATE_REJECTED)
      hk_window_refuse(&entry->young->window, sensors->detector(sensors->arg, batch->slot[i]), batch->value[i]);
    else if (batch->state[i] != HK_STATE_LATE)
      failed = end(p, entry, batch, i);
    status = failed != 0 ? failed : status;
  }
  provisional_merge(p, batch);
  return status;
}

void hk_provisional_forget(struct hk_provisional *p, uint32_t slot)
{
  if (slot >= p->n)
    return;
  young_free(&p->entries[slot]);
  p->entries[slot] = (struct entry){ 0 };
}

/* --- saved: u32 alerts, u32 number, and the state of the small window, if there is one ------------------------------------ */

#define HEAD 8

size_t hk_provisional_save(const struct hk_provisional *p, uint32_t slot, void *out)
{
  const struct entry *entry = slot < p->n ? &p->entries[slot] : NULL;
  const struct young *young = entry ? entry->young : NULL;
  if (!young && (!entry || entry->alerts == 0))
    return 0;
  uint8_t *at = hk_state_put(out, &entry->alerts, 4);
  at = hk_state_put(at, &entry->number, 4);
  if (!young)
    return HEAD;
  hk_state_write(at, &p->base, &young->window, &young->alert, young->ring, young->feedback);
  return HEAD + hk_state_size(&p->base, young->window.count);
}

int hk_provisional_restore(struct hk_provisional *p, uint32_t slot, const struct hk_detector *d, const void *saved, size_t size)
{
  struct entry *entry = entry_of(p, slot), read = { 0 };
  const struct hk_detector small = small_of(p, d);
  if (!entry)
    return -ENOMEM;
  if (size < HEAD)
    return -EINVAL;
  const uint8_t *at = hk_state_take(saved, &read.alerts, 4);
  at = hk_state_take(at, &read.number, 4);
  if (size > HEAD && !(read.young = young_new()))
    return -ENOMEM;
  struct young *young = read.young;
  const int status =
      young ? hk_state_read(at, size - HEAD, &small, &young->window, &young->alert, young->ring, young->feedback) : 0;
  if (status != 0) {
    young_free(&read);
    return status;
  }
  young_free(entry);
  *entry = read;
  return 0;
}
