/* Globs in a row, with a count of references. */
#include "daemon/sections.h"

#include "daemon/glob.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hk_sections {
  atomic_uint references;
  uint32_t n;
  struct hk_section section[];
};

int hk_sections_new(struct hk_sections **out, const struct hk_config *config)
{
  struct hk_sections *s = calloc(1, sizeof *s + config->n_detectors * sizeof *s->section);
  if (!s)
    return -ENOMEM;
  atomic_init(&s->references, 1);
  for (uint32_t i = 0; i < config->n_detectors; i++) {
    const struct hk_config_detector *d = &config->detectors[i];
    if (d->derived) { /* of the one before it */
      struct hk_section *of = &s->section[s->n - 1];
      of->companion[of->n_companions++] = d->number;
      continue;
    }
    const int status = hk_glob_new(&s->section[s->n].glob, d->match, strlen(d->match));
    if (status != 0) {
      hk_sections_release(s);
      return status;
    }
    s->section[s->n++].number = d->number;
  }
  *out = s;
  return 0;
}

struct hk_sections *hk_sections_hold(struct hk_sections *s)
{
  atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
  return s;
}

void hk_sections_release(struct hk_sections *s)
{
  if (!s || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) > 1)
    return;
  for (uint32_t i = 0; i < s->n; i++)
    hk_glob_free(s->section[i].glob);
  free(s);
}

const struct hk_section *hk_sections_find(const struct hk_sections *s, const char *name, size_t length)
{
  for (uint32_t i = 0; i < s->n; i++)
    if (hk_glob_match(s->section[i].glob, name, length))
      return &s->section[i];
  return NULL;
}

const struct hk_section *hk_sections_of(const struct hk_sections *s, uint32_t number)
{
  for (uint32_t i = 0; i < s->n; i++)
    if (s->section[i].number == number)
      return &s->section[i];
  return NULL;
}

bool hk_sections_accompanied(const struct hk_sections *s)
{
  for (uint32_t i = 0; i < s->n; i++)
    if (s->section[i].n_companions > 0)
      return true;
  return false;
}

/* A glob without `?` that matches another one's text matches whatever that matches: only its own stars can stand for the other's
 * wildcards. */
bool hk_sections_unreached(const struct hk_config *config, uint32_t i, char *line, size_t size)
{
  const struct hk_config_detector *d = &config->detectors[i];
  for (const struct hk_config_detector *before = config->detectors; before < d; before++) {
    struct hk_glob *glob;
    if (d->derived || before->derived || strchr(before->match, '?') ||
        hk_glob_new(&glob, before->match, strlen(before->match)) != 0)
      continue;
    const bool all = hk_glob_match(glob, d->match, strlen(d->match));
    hk_glob_free(glob);
    if (!all)
      continue;
    snprintf(line, size, "no sensor comes to [detector %s] (match = %.64s): [detector %s] (match = %.64s) stands before it",
             d->name, d->match, before->name, before->match);
    return true;
  }
  return false;
}
