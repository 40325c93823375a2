/* Groups over labelled recordings: see trial.h. The sensors of a file are a machine, and what comes of it is judged as one
 * recording. */
#include "cpu/group/group.h"
#include "cpu/rules/alert.h"
#include "daemon/base/grow.h"
#include "daemon/cli/options.h"
#include "daemon/cli/trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 5 /* an alert hits within so many shortest parts */

/* Takes in a row. False: no memory. */
static bool trial_group_collect(struct hk_outcome *o, const struct hk_group_tick *t)
{
  o->time[o->points] = t->time;
  o->value[o->points] = t->statistic;
  o->score[o->points] = (float)t->score;
  if (t->members > 0 && o->scored > o->points)
    o->scored = o->points;
  o->points++;
  if (t->change == HK_GROUP_GRAVER && o->n_found > 0)
    o->found[o->n_found - 1].severity = (float)t->severity;
  if (t->change != HK_GROUP_CHANGED)
    return true;
  struct hk_found *found = hk_grow(o->found, o->n_found, &o->room, sizeof *found, 64);
  if (!found)
    return false;
  o->found = found;
  o->found[o->n_found++] = (struct hk_found){ hk_outcome_index(o, t->instant), o->points - 1, (float)t->severity };
  return true;
}

/* Feeds the n sensors of a file, in the order of time. False: no memory. */
static bool trial_group_feed(struct hk_group *g, const struct hk_recording *r, uint32_t n, const uint32_t *number, uint32_t *fed,
                             struct hk_outcome *o)
{
  struct hk_group_tick tick;
  for (;;) {
    uint32_t first = n;
    for (uint32_t i = 0; i < n; i++)
      if (fed[i] < r[i].n && (first == n || r[i].time[fed[i]] < r[first].time[fed[first]]))
        first = i;
    if (first == n)
      return true;
    const uint32_t at = fed[first]++;
    hk_group_put(g, number[first], r[first].time[at], r[first].value[at]);
    while (hk_group_next(g, &tick))
      if (!trial_group_collect(o, &tick))
        return false;
  }
}

/* One file: recordings r[0..n-1]. */
static bool trial_group_score(const struct hk_group_rule *rule, const struct hk_recording *r, uint32_t n, struct hk_outcome *o)
{
  struct hk_group *g = NULL;
  uint32_t *number = calloc(2 * (size_t)n, sizeof *number), most = 0;
  for (uint32_t i = 0; i < n; i++)
    most += r[i].n; /* rows, at most */
  o->detector.window = TOLERANCE * rule->shortest;
  bool fine = number && hk_outcome_prepare(o, most, r->n_labels) && hk_group_new(&g, rule) == 0;
  for (uint32_t i = 0; i < n && fine; i++)
    fine = hk_group_join(g, &number[i]) == 0;
  fine = fine && trial_group_feed(g, r, n, number, number + n, o);
  hk_group_free(g);
  free(number);
  return fine;
}

/* Recordings from i on that are of one file. */
static uint32_t of_one_file(const struct hk_labelled *set, uint32_t i)
{
  uint32_t n = 1;
  while (i + n < set->n && set->recording[i + n].file == set->recording[i].file)
    n++;
  return n;
}

int hk_trial_machines(const struct hk_labelled *set, struct hk_labelled *out)
{
  *out = (struct hk_labelled){ .name = set->name, .instants = set->instants };
  out->recording = calloc(set->n + 1, sizeof *out->recording);
  for (uint32_t i = 0; out->recording && i < set->n; i += of_one_file(set, i)) {
    struct hk_recording *r = &out->recording[out->n++];
    *r = set->recording[i];
    if (r->of_file < sizeof r->name)
      r->name[r->of_file] = 0;
  }
  out->n_files = out->n;
  return out->recording ? 0 : -ENOMEM;
}

int hk_trial_check_group(const struct hk_trial *trial, const char *option, const char *keys)
{
  struct hk_group_rule ignored;
  char error[512];
  return hk_group_parse(keys, &ignored, error, sizeof error) < 0 ? hk_usage(trial->argv, "%s: %s", option, error) : 0;
}

int hk_trial_group(const struct hk_trial *trial, const struct hk_labelled *set, const char *keys, struct hk_outcome *all)
{
  struct hk_group_rule rule;
  char error[512];
  if (hk_group_parse(keys, &rule, error, sizeof error) < 0)
    return hk_usage(trial->argv, "--group: %s", error);
  for (uint32_t i = 0, n, machine = 0; i < set->n; i += n, machine++) {
    n = of_one_file(set, i);
    if (n > rule.members)
      return hk_usage(trial->argv, "--group: %s has %u sensors, members = %u", set->recording[i].name, n, rule.members);
    if (!trial_group_score(&rule, &set->recording[i], n, &all[machine]))
      return hk_failed(trial->argv, "out of memory");
  }
  return 0;
}
