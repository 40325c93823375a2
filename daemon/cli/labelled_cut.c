/* Pieces of labelled recordings: see labelled_cut.h. */
#include "daemon/cli/labelled_cut.h"

#include "daemon/cli/trial_group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool concerns(const struct hk_label *label, const struct hk_recording *piece)
{
  return label->first <= piece->time[piece->n - 1] && label->last >= piece->time[0];
}

/* Makes the piece of `points` points from point `at` on. False: no memory. */
static bool make(struct hk_recording *piece, const struct hk_recording *from, uint32_t at, uint32_t points)
{
  *piece = *from;
  snprintf(piece->name, sizeof piece->name, "%.1000s from %u", from->name, at);
  piece->of_file = (uint32_t)strlen(piece->name);
  piece->n = piece->room = points;
  piece->n_labels = 0;
  piece->time = malloc(points * sizeof *piece->time);
  piece->value = malloc(points * sizeof *piece->value);
  piece->label = malloc((from->n_labels + 1) * sizeof *piece->label);
  if (!piece->time || !piece->value || !piece->label)
    return false;
  memcpy(piece->time, from->time + at, points * sizeof *piece->time);
  memcpy(piece->value, from->value + at, points * sizeof *piece->value);
  for (uint32_t i = 0; i < from->n_labels; i++)
    if (concerns(&from->label[i], piece))
      piece->label[piece->n_labels++] = from->label[i];
  return true;
}

int hk_labelled_cut(struct hk_labelled *set, uint32_t points)
{
  struct hk_labelled out = { .name = set->name, .instants = set->instants };
  size_t n = 0;
  bool fine = true;
  for (uint32_t i = 0; i < set->n; i++)
    n += set->recording[i].n / points;
  out.recording = calloc(n + 1, sizeof *out.recording);
  if (!out.recording)
    return -ENOMEM;
  for (uint32_t i = 0; i < set->n && fine; i++)
    for (uint32_t at = 0; set->recording[i].n - at >= points && fine; at += points) {
      struct hk_recording *piece = &out.recording[out.n];
      fine = make(piece, &set->recording[i], at, points);
      piece->file = out.n++;
    }
  out.n_files = out.n;
  hk_labelled_free(fine ? set : &out);
  if (!fine)
    return -ENOMEM;
  *set = out;
  return 0;
}

bool hk_labelled_has_halves(const struct hk_labelled *set, bool several)
{
  bool any[2] = { false, false };
  for (uint32_t i = 0, n; i < set->n; i += n) {
    n = hk_trial_of_one_file(set, i);
    any[set->recording[i].file % 2] |= n > 1 || !several;
  }
  return any[0] && any[1];
}

int hk_labelled_halve(const struct hk_labelled *set, struct hk_labelled half[2])
{
  for (int odd = 0; odd < 2; odd++) {
    half[odd] = *set;
    half[odd].n = 0;
    half[odd].recording = calloc(set->n + 1, sizeof *set->recording);
  }
  if (!half[0].recording || !half[1].recording)
    return -ENOMEM;
  for (uint32_t i = 0; i < set->n; i++) {
    struct hk_labelled *one = &half[set->recording[i].file % 2];
    one->recording[one->n++] = set->recording[i];
  }
  return 0;
}
