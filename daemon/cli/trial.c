/* Detectors over labelled recordings: see trial.h. */
#include "daemon/cli/trial.h"
#include "daemon/base/grow.h"

#include "cpu/graph/window_search.h"
#include "cpu/provisional/provisional.h"
#include "daemon/cli/backend_option.h"
#include "daemon/cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_A_TURN HK_BATCH_PER_SENSOR

void hk_outcomes_free(struct hk_outcome *all, uint32_t n)
{
  for (uint32_t i = 0; all && i < n; i++) {
    free(all[i].time);
    free(all[i].value);
    free(all[i].score);
    free(all[i].found);
    free(all[i].marked);
    free(all[i].delay);
  }
  free(all);
}

uint32_t hk_outcome_index(const struct hk_outcome *o, int64_t time)
{
  uint32_t low = 0, high = o->points;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (o->time[middle] < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low < o->points ? low : o->points > 0 ? o->points - 1 : 0;
}

/* Takes in what a batch says. False: no memory. */
static bool trial_collect(struct hk_outcome *all, const struct hk_batch *batch)
{
  const struct hk_event *event = batch->event, *last = event + batch->n_events;
  for (uint32_t i = 0; i < batch->n; i++) {
    struct hk_outcome *o = &all[batch->slot[i]];
    if (batch->state[i] == HK_STATE_LATE || batch->state[i] == HK_STATE_REJECTED)
      continue;
    if (!isnan(batch->score[i]) && o->scored > o->points)
      o->scored = o->points;
    o->time[o->points] = batch->time[i];
    o->value[o->points] = batch->value[i];
    o->score[o->points++] = batch->score[i];
    for (; event < last && event->index <= i; event++) {
      if (event->kind != HK_EVENT_RAISED) {
        if (o->n_found > 0 && event->severity > o->found[o->n_found - 1].severity)
          o->found[o->n_found - 1].severity = event->severity;
        continue;
      }
      struct hk_found *found = hk_grow(o->found, o->n_found, &o->room, sizeof *found, 64);
      if (!found)
        return false;
      o->found = found;
      o->found[o->n_found++] = (struct hk_found){ hk_outcome_index(o, event->instant), o->points - 1, event->severity };
    }
  }
  return true;
}

static const struct hk_detector *trial_detector_of(void *arg, uint32_t slot)
{
  const struct hk_outcome *all = arg;
  return &all[slot].detector;
}

/* Adds provisional scores to a batch that has come back. provisional: NULL: none are wanted. False: no memory. */
static bool trial_complete(struct hk_provisional *provisional, struct hk_outcome *all, struct hk_batch *batch)
{
  const struct hk_provisional_sensors sensors = { all, trial_detector_of, NULL };
  return !provisional || hk_provisional_complete(provisional, &sensors, batch) == 0;
}

/* Scores all recordings of a set, side by side. 0 or an exit code. */
static int trial_run(const struct hk_trial *trial, const struct hk_labelled *set, struct hk_backend *b,
                     struct hk_provisional *provisional, struct hk_outcome *all)
{
  struct hk_batch *batch = hk_batch_new(b, set->n * POINTS_A_TURN);
  int code = batch ? 0 : hk_failed(trial->argv, "out of memory");
  while (code == 0) {
    batch->n = 0;
    for (uint32_t i = 0; i < set->n; i++) {
      const struct hk_recording *r = &set->recording[i];
      for (uint32_t j = 0; j < POINTS_A_TURN && all[i].fed < r->n; j++, batch->n++) {
        batch->slot[batch->n] = i;
        batch->time[batch->n] = r->time[all[i].fed];
        const double value = r->value[all[i].fed++];
        batch->value[batch->n] =
            all[i].detector.rate ? hk_rate_next(&all[i].rate, all[i].detector.rate, batch->time[batch->n], value) : value;
      }
    }
    if (batch->n == 0)
      break;
    if (b->ops->submit(b, batch) != 0)
      code = hk_failed(trial->argv, "the %s backend refused a batch", b->ops->name);
    while (code == 0 && !b->ops->reap(b))
      b->ops->wait(b);
    if (code == 0 && batch->status < 0)
      code = hk_failed(trial->argv, "the %s backend failed: %s", b->ops->name, strerror(-batch->status));
    if (code == 0 && (!trial_complete(provisional, all, batch) || !trial_collect(all, batch)))
      code = hk_failed(trial->argv, "out of memory");
  }
  hk_batch_free(batch);
  return code;
}

bool hk_outcome_prepare(struct hk_outcome *o, uint32_t points, uint32_t labels)
{
  o->scored = UINT32_MAX;
  o->time = calloc(points + 1, sizeof *o->time);
  o->value = calloc(points + 1, sizeof *o->value);
  o->score = calloc(points + 1, sizeof *o->score);
  o->marked = calloc(labels + 1, sizeof *o->marked);
  o->delay = calloc(labels + 1, sizeof *o->delay);
  return o->time && o->value && o->score && o->marked && o->delay;
}

/* Whether an item, up to a comma, is a window: with the name of an algorithm before it or not. */
static bool is_window(const char *item)
{
  size_t end = strcspn(item, ",=");
  while (end > 0 && (item[end - 1] == ' ' || item[end - 1] == '\t'))
    end--;
  static const char key[] = "window";
  const size_t length = sizeof key - 1;
  return end >= length && memcmp(item + end - length, key, length) == 0 &&
         (end == length || strchr(" \t.", item[end - length - 1]));
}

static bool names_window(const char *keys)
{
  bool named = is_window(keys);
  for (const char *comma = strchr(keys, ','); comma && !named; comma = strchr(comma + 1, ','))
    named = is_window(comma + 1);
  return named;
}

/* The detector that keys say, with this window in place of theirs if it is not 0. 0, or a negative errno with a message. */
static int parse_keys(const char *keys, uint32_t window, struct hk_detector *out, char *error, size_t size)
{
  char text[1024];
  size_t length = 0;
  if (window == 0)
    return hk_detector_parse(keys, out, error, size);
  for (const char *item = keys; *item; item += strcspn(item, ","), item += *item == ',') {
    if (!is_window(item) && length < sizeof text)
      length += (size_t)snprintf(text + length, sizeof text - length, "%.*s,", (int)strcspn(item, ","), item);
  }
  if (length < sizeof text)
    length += (size_t)snprintf(text + length, sizeof text - length, "window=%u", window);
  if (length >= sizeof text) {
    snprintf(error, size, "over %zu characters", sizeof text - 1);
    return -EINVAL;
  }
  return hk_detector_parse(text, out, error, size);
}

int hk_trial_check(const struct hk_trial *trial, const char *option, const char *keys)
{
  struct hk_detector ignored;
  char error[512];
  const uint32_t window = trial->given_windows && !names_window(keys) ? HK_GRAPH_FALLBACK : 0;
  return parse_keys(keys, window, &ignored, error, sizeof error) < 0 ? hk_usage(trial->argv, "%s: %s", option, error) : 0;
}

/* The detector of a recording. 0 or an exit code. */
static int read_keys(const struct hk_trial *trial, const struct hk_labelled *set, uint32_t i, const char *keys,
                     struct hk_detector *out)
{
  const struct hk_recording *r = &set->recording[i];
  const uint32_t window = trial->given_windows ? r->window : 0;
  char error[512];
  if (parse_keys(keys, window, out, error, sizeof error) == 0)
    return 0;
  if (window == 0)
    return hk_usage(trial->argv, "--detector: %s", error);
  return hk_failed(trial->argv, "--given-windows: %s: %s, of window %u: %s", set->name, r->name, window, error);
}

int hk_trial_score(const struct hk_trial *trial, const struct hk_labelled *set, const char *keys, struct hk_outcome *all)
{
  struct hk_detector *detectors = calloc(set->n, sizeof *detectors);
  struct hk_backend *b = NULL;
  struct hk_provisional *provisional = NULL;
  char error[512];
  int code = detectors ? 0 : hk_failed(trial->argv, "out of memory");
  for (uint32_t i = 0; i < set->n && code == 0; i++) {
    code = read_keys(trial, set, i, keys, &detectors[i]);
    if (set->derived) /* as the daemon's fields */
      detectors[i].rate = HK_RATE_NO;
    all[i].detector = detectors[i];
    if (code == 0 && detectors[i].provisional && !provisional && hk_provisional_new(&provisional) != 0)
      code = hk_failed(trial->argv, "out of memory");
    if (code == 0 && !hk_outcome_prepare(&all[i], set->recording[i].n, set->recording[i].n_labels))
      code = hk_failed(trial->argv, "out of memory");
  }
  const struct hk_backend_config config = { .detectors = detectors, .n_detectors = set->n, .max_sensors = set->n };
  if (code == 0 && hk_choose_backend(&b, trial->choice, &config, error, sizeof error) < 0)
    code = hk_failed(trial->argv, "%s", error);
  for (uint32_t i = 0; i < set->n && code == 0; i++) {
    const char *sensor = set->recording[i].sensor;
    if (b->ops->add(b, i, i, hk_seed(sensor, strlen(sensor))) != 0)
      code = hk_failed(trial->argv, "no memory for %u sensors", set->n);
  }
  if (code == 0)
    code = trial_run(trial, set, b, provisional, all);
  if (b)
    b->ops->close(b);
  hk_provisional_free(provisional);
  free(detectors);
  return code;
}

uint32_t hk_trial_window(const struct hk_outcome *o)
{
  return o->detector.search ? HK_GRAPH_FALLBACK : o->detector.window; /* what was found is not told */
}

void hk_trial_judge(const struct hk_labelled *set, const struct hk_recording *r, struct hk_outcome *o)
{
  for (uint32_t i = 0; i < r->n_labels; i++)
    o->marked[i] = (struct hk_marked){ hk_outcome_index(o, r->label[i].first), hk_outcome_index(o, r->label[i].last) };
  o->scored = o->scored < o->points ? o->scored : o->points;
  const uint32_t window = hk_trial_window(o);
  o->verdict = hk_judge(o->points, o->scored, window, o->found, o->n_found, o->marked, r->n_labels, o->delay);
  if (set->instants) {
    o->verdict.covering = hk_judge_covering(o->points, o->found, o->n_found, o->marked, r->n_labels);
    o->verdict.covered = 1;
  }
}
