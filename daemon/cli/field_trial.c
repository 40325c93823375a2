/* Fields over labelled recordings: see field_trial.h. */
#include "daemon/cli/field_trial.h"
#include "cpu/field/residual.h"
#include "cpu/field/rule.h"
#include "daemon/base/grow.h"
#include "daemon/cli/fielded.h"
#include "daemon/cli/options.h"
#include "daemon/cli/trial_group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hk_field_trial_check(const struct hk_trial *trial, const char *keys)
{
  struct hk_field_rule ignored;
  char error[512];
  return hk_field_parse(keys, &ignored, error, sizeof error) < 0 ? hk_usage(trial->argv, "--field: %s", error) : 0;
}

/* Adds the next points that a field has made. False: no memory. */
static bool field_trial_collect(struct hk_fielded *field, struct hk_recording *derived)
{
  struct hk_fielded_point made;
  bool fine = true;
  while (hk_fielded_next(field, &made))
    fine = fine && hk_labelled_add_point(&derived[made.sensor], made.time, made.value) == 0;
  return fine;
}

/* Feeds the n sensors of a file, in the order of time. fed: n zeros. False: no memory. */
static bool field_trial_feed(struct hk_fielded *field, const struct hk_recording *r, uint32_t n, uint32_t *fed,
                             struct hk_recording *derived)
{
  bool fine = true;
  while (fine) {
    int64_t first = INT64_MAX;
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
      if (fed[i] < r[i].n && (!any || r[i].time[fed[i]] < first)) {
        first = r[i].time[fed[i]];
        any = true;
      }
    if (!any)
      break;
    for (uint32_t i = 0; i < n && fine; i++)
      while (fed[i] < r[i].n && r[i].time[fed[i]] <= first && fine) {
        const uint32_t at = fed[i]++;
        hk_fielded_put(field, i, r[i].time[at], r[i].value[at]);
        fine = field_trial_collect(field, derived);
      }
  }
  return fine;
}

/* Takes the alerts of the field itself. first: number of its first recording. False: no memory. */
static bool take_changes(struct hk_field_trial *out, struct hk_fielded *field, const struct hk_recording *r, uint32_t first,
                         uint32_t n)
{
  const struct hk_event *change;
  const char *sensor;
  while ((change = hk_fielded_change(field, INT64_MAX, &sensor))) {
    uint32_t at = 0;
    while (at < n && strcmp(r[at].sensor, sensor) != 0)
      at++;
    struct hk_field_found *found = hk_grow(out->found, out->n_found, &out->room_found, sizeof *found, 16);
    if (!found)
      return false;
    out->found = found;
    out->found[out->n_found++] =
        (struct hk_field_found){ first + (at < n ? at : 0), change->instant, change->time, change->severity };
  }
  return true;
}

/* Runs one file: recordings alone[0..n-1], of which the first is number `first` of out->alone. Returns 0 or an exit code. */
static int field_trial_make(struct hk_field_trial *out, const struct hk_trial *trial, const char *keys, uint32_t first,
                            uint32_t n)
{
  const struct hk_recording *r = &out->alone.recording[first];
  struct hk_recording *derived = &out->derived.recording[first];
  struct hk_fielded *field = NULL;
  const char **sensor = calloc(n, sizeof *sensor);
  uint32_t *fed = calloc(n, sizeof *fed);
  int code = sensor && fed ? 0 : hk_failed(trial->argv, "out of memory");
  for (uint32_t i = 0; i < n && code == 0; i++)
    sensor[i] = r[i].sensor;
  if (code == 0)
    code = hk_fielded_open_named(&field, trial->argv, keys, sensor, n);
  if (code == 0 && (!field_trial_feed(field, r, n, fed, derived) || !take_changes(out, field, r, first, n)))
    code = hk_failed(trial->argv, "out of memory");
  for (uint32_t i = 0; i < n && code == 0; i++)
    snprintf(derived[i].sensor, sizeof derived[i].sensor, "%s", hk_fielded_name(field, i));
  if (code == 0)
    hk_fielded_explain(field);
  hk_fielded_close(field);
  free(sensor);
  free(fed);
  return code;
}

int hk_field_trial_open(struct hk_field_trial *out, const struct hk_trial *trial, const struct hk_labelled *set, const char *keys)
{
  struct hk_field_rule rule;
  char error[512];
  *out = (struct hk_field_trial){ 0 };
  if (hk_field_parse(keys, &rule, error, sizeof error) < 0)
    return hk_usage(trial->argv, "--field: %s", error);
  out->blames = rule.kind == HK_FIELD_RESIDUAL || rule.kind == HK_FIELD_FOCUS;
  out->alone = out->derived = (struct hk_labelled){ .name = set->name, .instants = set->instants };
  out->derived.derived = true;
  out->alone.recording = calloc(set->n + 1, sizeof *out->alone.recording);
  out->derived.recording = calloc(set->n + 1, sizeof *out->derived.recording);
  int code = out->alone.recording && out->derived.recording ? 0 : hk_failed(trial->argv, "out of memory");
  for (uint32_t i = 0, n; i < set->n && code == 0; i += n) {
    const uint32_t first = out->alone.n;
    n = hk_trial_of_one_file(set, i);
    if (n < 2)
      continue;
    for (uint32_t j = 0; j < n; j++) {
      struct hk_recording *derived = &out->derived.recording[first + j];
      out->alone.recording[first + j] = *derived = set->recording[i + j];
      derived->time = NULL;
      derived->value = NULL;
      derived->n = derived->room = 0;
    }
    out->alone.n = out->derived.n = first + n;
    out->alone.n_files = ++out->derived.n_files;
    code = field_trial_make(out, trial, keys, first, n);
  }
  return code;
}

void hk_field_trial_close(struct hk_field_trial *fields)
{
  for (uint32_t i = 0; i < fields->derived.n; i++) {
    free(fields->derived.recording[i].time);
    free(fields->derived.recording[i].value);
  }
  free(fields->derived.recording);
  free(fields->alone.recording);
  free(fields->found);
  *fields = (struct hk_field_trial){ 0 };
}

/* Adds an alert of the field itself to those of a series, in the order of `raised`. False: no memory. */
static bool add_change(struct hk_outcome *o, const struct hk_field_found *change)
{
  if (o->points == 0) /* and so no point at which it was raised */
    return true;
  struct hk_found *found = hk_grow(o->found, o->n_found, &o->room, sizeof *found, 16);
  if (!found)
    return false;
  o->found = found;
  const struct hk_found one = { hk_outcome_index(o, change->instant), hk_outcome_index(o, change->raised), change->severity };
  uint32_t at = o->n_found++;
  for (; at > 0 && found[at - 1].raised > one.raised; at--)
    found[at] = found[at - 1];
  found[at] = one;
  return true;
}

int hk_field_trial_settle(const struct hk_field_trial *fields, struct hk_outcome *all, uint64_t *secondary)
{
  for (uint32_t i = 0; i < fields->derived.n && fields->blames; i++) {
    uint32_t left = 0;
    for (uint32_t j = 0; j < all[i].n_found; j++) {
      const bool other = hk_residual_blamed(all[i].value[all[i].found[j].raised]) != 0;
      secondary[i] += other;
      if (!other)
        all[i].found[left++] = all[i].found[j];
    }
    all[i].n_found = left;
  }
  for (uint32_t i = 0; i < fields->n_found; i++)
    if (!add_change(&all[fields->found[i].recording], &fields->found[i]))
      return -ENOMEM;
  return 0;
}
