/* Groups over labelled recordings: see trial_group.h. The sensors of a file are a machine, and what comes of it is judged as one
 * recording. */
#include "daemon/cli/trial_group.h"
#include "cpu/group/group.h"
#include "cpu/rules/alert.h"
#include "daemon/base/grow.h"
#include "daemon/cli/options.h"

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

/* One file: recordings r[0..n-1], whose machine has so many labels. */
static bool trial_group_score(const struct hk_group_rule *rule, const struct hk_recording *r, uint32_t n, uint32_t labels,
                              struct hk_outcome *o)
{
  struct hk_group *g = NULL;
  uint32_t *number = calloc(2 * (size_t)n, sizeof *number), most = 0;
  for (uint32_t i = 0; i < n; i++)
    most += r[i].n; /* rows, at most */
  o->detector.window = TOLERANCE * rule->shortest;
  bool fine = number && hk_outcome_prepare(o, most, labels) && hk_group_new(&g, rule) == 0;
  for (uint32_t i = 0; i < n && fine; i++)
    fine = hk_group_join(g, &number[i]) == 0;
  fine = fine && trial_group_feed(g, r, n, number, number + n, o);
  hk_group_free(g);
  free(number);
  return fine;
}

uint32_t hk_trial_of_one_file(const struct hk_labelled *set, uint32_t i)
{
  uint32_t n = 1;
  while (i + n < set->n && set->recording[i + n].file == set->recording[i].file)
    n++;
  return n;
}

static bool has_label(const struct hk_recording *r, const struct hk_label *label)
{
  for (uint32_t i = 0; i < r->n_labels; i++)
    if (r->label[i].first == label->first && r->label[i].last == label->last)
      return true;
  return false;
}

/* Gives a machine the labels of its sensors r[0..n-1], each once and in order. False: no memory. */
static bool label_machine(struct hk_recording *machine, const struct hk_recording *r, uint32_t n)
{
  size_t most = 0;
  for (uint32_t i = 0; i < n; i++)
    most += r[i].n_labels;
  machine->n_labels = 0;
  machine->label = calloc(most + 1, sizeof *machine->label);
  for (uint32_t i = 0; i < n && machine->label; i++)
    for (uint32_t j = 0; j < r[i].n_labels; j++) {
      if (has_label(machine, &r[i].label[j]))
        continue;
      uint32_t at = machine->n_labels++;
      for (; at > 0 && machine->label[at - 1].first > r[i].label[j].first; at--)
        machine->label[at] = machine->label[at - 1];
      machine->label[at] = r[i].label[j];
    }
  return machine->label != NULL;
}

int hk_trial_machines(const struct hk_labelled *set, struct hk_labelled *out)
{
  *out = (struct hk_labelled){ .name = set->name, .instants = set->instants };
  out->recording = calloc(set->n + 1, sizeof *out->recording);
  bool fine = out->recording != NULL;
  for (uint32_t i = 0, n; i < set->n && fine; i += n) {
    struct hk_recording *r = &out->recording[out->n++];
    n = hk_trial_of_one_file(set, i);
    *r = set->recording[i];
    r->time = NULL;
    r->value = NULL;
    if (r->of_file < sizeof r->name)
      r->name[r->of_file] = 0;
    fine = label_machine(r, &set->recording[i], n);
  }
  out->n_files = out->n;
  return fine ? 0 : -ENOMEM;
}

static int trial_group_earlier(const void *a, const void *b)
{
  const struct hk_found *one = a, *other = b;
  return (one->raised > other->raised) - (one->raised < other->raised);
}

int hk_trial_together(const struct hk_labelled *set, const struct hk_labelled *machines, const struct hk_outcome *all,
                      struct hk_verdict *sum, double **delay)
{
  uint32_t most = 0, most_labels = 0;
  size_t labels = 0;
  for (uint32_t i = 0; i < set->n; i++)
    most += all[i].n_found;
  for (uint32_t i = 0; i < machines->n; i++) {
    most_labels = machines->recording[i].n_labels > most_labels ? machines->recording[i].n_labels : most_labels;
    labels += machines->recording[i].n_labels;
  }
  *sum = (struct hk_verdict){ 0 };
  *delay = calloc(labels + 1, sizeof **delay);
  struct hk_found *found = calloc(most + 1, sizeof *found);
  struct hk_marked *marked = calloc(most_labels + 1, sizeof *marked);
  const bool fine = *delay && found && marked;
  for (uint32_t i = 0, n, file = 0; i < set->n && fine; i += n, file++) {
    const struct hk_outcome *whole = &all[i]; /* the sensor with the most points has the times for all */
    n = hk_trial_of_one_file(set, i);
    for (uint32_t j = i; j < i + n; j++)
      whole = all[j].points > whole->points ? &all[j] : whole;
    struct hk_outcome one = *whole;
    one.n_found = 0;
    one.found = found;
    one.marked = marked;
    one.delay = *delay + sum->hits;
    for (uint32_t j = i; j < i + n; j++)
      for (uint32_t k = 0; k < all[j].n_found; k++) {
        const struct hk_found *f = &all[j].found[k];
        found[one.n_found++] = (struct hk_found){ hk_outcome_index(&one, all[j].time[f->instant]),
                                                  hk_outcome_index(&one, all[j].time[f->raised]), f->severity };
      }
    qsort(found, one.n_found, sizeof *found, trial_group_earlier);
    hk_trial_judge(set, &machines->recording[file], &one);
    one.verdict.covered = 0; /* the instants are in no order */
    hk_verdict_add(sum, &one.verdict);
  }
  free(found);
  free(marked);
  return fine ? 0 : -ENOMEM;
}

int hk_trial_check_group(const struct hk_trial *trial, const char *option, const char *keys)
{
  struct hk_group_rule ignored;
  char error[512];
  return hk_group_parse(keys, &ignored, error, sizeof error) < 0 ? hk_usage(trial->argv, "%s: %s", option, error) : 0;
}

int hk_trial_group(const struct hk_trial *trial, const struct hk_labelled *set, const struct hk_labelled *machines,
                   const char *keys, struct hk_outcome *all)
{
  struct hk_group_rule rule;
  char error[512];
  if (hk_group_parse(keys, &rule, error, sizeof error) < 0)
    return hk_usage(trial->argv, "--group: %s", error);
  for (uint32_t i = 0, n, machine = 0; i < set->n; i += n, machine++) {
    n = hk_trial_of_one_file(set, i);
    if (n > rule.members)
      return hk_usage(trial->argv, "--group: %s has %u sensors, members = %u", set->recording[i].name, n, rule.members);
    if (!trial_group_score(&rule, &set->recording[i], n, machines->recording[machine].n_labels, &all[machine]))
      return hk_failed(trial->argv, "out of memory");
  }
  return 0;
}
