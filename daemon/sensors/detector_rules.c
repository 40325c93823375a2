/* An ordered list of globs, with a reference count. */
#include "daemon/sensors/detector_rules.h"

#include "daemon/base/glob.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The glob of a group or field, split at its capture. */
struct cut {
  struct hk_glob *front, *back;
  bool whole; /* without a capture: front is all of it */
  char name[HK_CONFIG_NAME_MAX];
  uint32_t number; /* of its detector */
  bool field, second;
  char first[HK_CONFIG_NAME_MAX]; /* of a second group: the name of the first */
  struct cut *beside; /* another group or field with which it may share sensors, closer to their common representative; NULL: it
                         is that itself */
  bool shares;
  struct hk_group_rule rule; /* of a group, else */
  struct hk_field_rule field_rule;
  struct hk_field_file file;
  struct hk_field_series series;
};

struct hk_sections {
  atomic_uint references;
  uint32_t n_groups, n_fields;
  struct cut *groups, *fields;
  uint32_t n;
  struct hk_section section[];
};

/* Makes a glob for part of a pattern; an empty part matches every name, and has none. */
static int part_of(struct hk_glob **out, const char *pattern, size_t length)
{
  *out = NULL;
  return length > 0 ? hk_glob_new(out, pattern, length) : 0;
}

/* The detector of the own series of a group or field. */
static uint32_t own_number(const struct hk_config *config, const char *name)
{
  for (uint32_t i = 0; i < config->n_detectors; i++)
    if (config->detectors[i].name[0] == HK_DERIVED_MARK && strcmp(config->detectors[i].name + 1, name) == 0)
      return config->detectors[i].number;
  return UINT32_MAX; /* there is one */
}

static int cut_groups(struct hk_sections *s, const struct hk_config *config)
{
  int status = 0;
  s->groups = calloc(config->n_groups + 1, sizeof *s->groups);
  if (!s->groups)
    return -ENOMEM;
  for (; s->n_groups < config->n_groups && status == 0; s->n_groups++) {
    const struct hk_config_group *g = &config->groups[s->n_groups];
    struct cut *cut = &s->groups[s->n_groups];
    const char *back = g->match + g->capture + 3;
    snprintf(cut->name, sizeof cut->name, "%s", g->name);
    cut->number = own_number(config, g->name);
    cut->rule = g->rule;
    cut->second = g->second;
    if (g->second)
      snprintf(cut->first, sizeof cut->first, "%.*s", (int)(strlen(g->name) - strlen(HK_SECOND_SUFFIX)), g->name);
    status = part_of(&cut->front, g->match, g->capture);
    if (status == 0)
      status = part_of(&cut->back, back, strlen(back));
  }
  return status;
}

static void take_series(struct cut *cut, const struct hk_config *config, const struct hk_config_field *f)
{
  for (uint32_t i = 0; i < f->n_series; i++) {
    const struct hk_config_detector *d = &config->detectors[f->series[i]];
    cut->series.number[cut->series.n] = d->number;
    snprintf(cut->series.suffix[cut->series.n++], HK_CONFIG_NAME_MAX, "%s", strchr(d->name, HK_DERIVED_MARK));
  }
}

static int cut_fields(struct hk_sections *s, const struct hk_config *config)
{
  int status = 0;
  s->fields = calloc(config->n_fields + 1, sizeof *s->fields);
  if (!s->fields)
    return -ENOMEM;
  for (; s->n_fields < config->n_fields && status == 0; s->n_fields++) {
    const struct hk_config_field *f = &config->fields[s->n_fields];
    struct cut *cut = &s->fields[s->n_fields];
    snprintf(cut->name, sizeof cut->name, "%s", f->name);
    cut->number = own_number(config, f->name);
    cut->field = true;
    cut->field_rule = f->rule;
    cut->file = hk_field_file_hold(&f->file);
    cut->whole = f->capture == HK_CONFIG_NO_CAPTURE;
    take_series(cut, config, f);
    status = part_of(&cut->front, f->match, cut->whole ? strlen(f->match) : f->capture);
    if (status == 0 && !cut->whole)
      status = part_of(&cut->back, f->match + f->capture + 3, strlen(f->match + f->capture + 3));
  }
  return status;
}

/* Writes the glob of a group or field without its capture. */
static const char *whole_of(const char *match, uint32_t capture, char out[HK_GLOB_MAX + 2])
{
  if (capture == HK_CONFIG_NO_CAPTURE)
    return match;
  snprintf(out, HK_GLOB_MAX + 2, "%.*s*%s", (int)capture, match, match + capture + 3);
  return out;
}

static bool meet(const struct hk_config *config, uint32_t group, uint32_t field)
{
  const struct hk_config_group *g = &config->groups[group];
  const struct hk_config_field *f = &config->fields[field];
  char of_group[HK_GLOB_MAX + 2], of_field[HK_GLOB_MAX + 2];
  return hk_globs_meet(whole_of(g->match, g->capture, of_group), whole_of(f->match, f->capture, of_field));
}

static struct cut *representative(struct cut *c)
{
  while (c->beside)
    c = c->beside;
  return c;
}

/* Groups and fields that may share sensors, directly or through others, must find the same shard. */
static void put_beside(struct hk_sections *s, const struct hk_config *config)
{
  for (uint32_t i = 0; i < s->n_groups; i++)
    for (uint32_t k = 0; k < s->n_fields; k++) {
      if (!meet(config, i, k))
        continue;
      struct cut *a = representative(&s->groups[i]), *b = representative(&s->fields[k]);
      s->groups[i].shares = s->fields[k].shares = true;
      if (a != b)
        a->beside = b;
    }
}

int hk_sections_new(struct hk_sections **out, const struct hk_config *config)
{
  struct hk_sections *s = calloc(1, sizeof *s + config->n_detectors * sizeof *s->section);
  if (!s)
    return -ENOMEM;
  atomic_init(&s->references, 1);
  int cut = cut_groups(s, config);
  if (cut == 0)
    cut = cut_fields(s, config);
  if (cut != 0) {
    hk_sections_release(s);
    return cut;
  }
  put_beside(s, config);
  for (uint32_t i = 0; i < config->n_detectors; i++) {
    const struct hk_config_detector *d = &config->detectors[i];
    if (d->group)
      continue;
    if (d->derived) { /* a companion of the one before it */
      struct hk_section *of = &s->section[s->n - 1];
      snprintf(of->suffix[of->n_companions], sizeof *of->suffix, "%s", strchr(d->name, HK_DERIVED_MARK));
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
  for (uint32_t i = 0; i < s->n_groups; i++) {
    hk_glob_free(s->groups[i].front);
    hk_glob_free(s->groups[i].back);
  }
  for (uint32_t i = 0; i < s->n_fields; i++) {
    hk_glob_free(s->fields[i].front);
    hk_glob_free(s->fields[i].back);
    hk_field_file_release(&s->fields[i].file);
  }
  free(s->fields);
  free(s->groups);
  free(s);
}

static bool is_match(const struct hk_glob *glob, const char *text, size_t length)
{
  return glob ? hk_glob_match(glob, text, length) : length == 0;
}

/* The first end of a capture that begins at `from`; 0: none. */
static size_t detector_rules_end_of(const struct cut *g, const char *name, size_t length, size_t from)
{
  for (size_t to = from + 1; to <= length; to++)
    if (is_match(g->back, name + to, length - to))
      return to;
  return 0;
}

static struct hk_machine_name detector_rules_name_of(const struct cut *g, const char *capture, size_t length)
{
  const struct cut *first = g;
  while (first->beside)
    first = first->beside;
  return (struct hk_machine_name){ .group = g->name,
                                   .capture = capture,
                                   .length = length,
                                   .number = g->number,
                                   .rule = g->field ? NULL : &g->rule,
                                   .field = g->field ? &g->field_rule : NULL,
                                   .file = &g->file,
                                   .series = &g->series,
                                   .first = g->second ? g->first : NULL,
                                   .beside = g->shares ? first->name : NULL };
}

/* Whether a name matches one of these; second: of the second groups, else of the others. */
static bool find_cut(const struct cut *all, uint32_t n, bool second, const char *name, size_t length, struct hk_machine_name *out)
{
  static const char whole[] = "field";
  for (uint32_t i = 0; i < n; i++) {
    const struct cut *g = &all[i];
    size_t from = 0;
    if (g->second != second)
      continue;
    if (g->whole && is_match(g->front, name, length)) {
      *out = detector_rules_name_of(g, whole, sizeof whole - 1);
      return true;
    }
    while (!g->whole && from < length && !is_match(g->front, name, from))
      from++;
    const size_t to =
        !g->whole && from < length ? detector_rules_end_of(g, name, length, from) : 0; /* a later beginning has no more ends */
    if (to == 0)
      continue;
    *out = detector_rules_name_of(g, name + from, to - from);
    return true;
  }
  return false;
}

bool hk_sections_group(const struct hk_sections *s, const char *name, size_t length, struct hk_machine_name *out)
{
  return find_cut(s->groups, s->n_groups, false, name, length, out);
}

bool hk_sections_second(const struct hk_sections *s, const char *name, size_t length, struct hk_machine_name *out)
{
  return find_cut(s->groups, s->n_groups, true, name, length, out);
}

bool hk_sections_field(const struct hk_sections *s, const char *name, size_t length, struct hk_machine_name *out)
{
  return find_cut(s->fields, s->n_fields, false, name, length, out);
}

/* Whether one of these is a text. */
static bool has_suffix(const char (*suffix)[HK_CONFIG_NAME_MAX], uint32_t n, const char *text, size_t length)
{
  for (uint32_t k = 0; k < n; k++)
    if (strlen(suffix[k]) == length && memcmp(text, suffix[k], length) == 0)
      return true;
  return false;
}

/* The group or field of a name; NULL: there is none. */
static const struct cut *cut_named(const struct hk_sections *s, const char *name, size_t length)
{
  for (uint32_t i = 0; i < s->n_groups + s->n_fields; i++) {
    const struct cut *g = i < s->n_groups ? &s->groups[i] : &s->fields[i - s->n_groups];
    if (strlen(g->name) == length && memcmp(g->name, name, length) == 0)
      return g;
  }
  return NULL;
}

bool hk_sections_machine(const struct hk_sections *s, const char *name, size_t length, struct hk_machine_name *out)
{
  const char *mark = memchr(name, HK_DERIVED_MARK, length);
  const struct cut *g = mark ? cut_named(s, name, (size_t)(mark - name)) : NULL;
  if (g)
    *out = detector_rules_name_of(g, mark + 1, length - (size_t)(mark + 1 - name));
  return g != NULL;
}

bool hk_sections_derived(const struct hk_sections *s, const char *name, size_t length)
{
  struct hk_machine_name field;
  for (size_t at = length; at-- > 1;) {
    if (name[at] != HK_DERIVED_MARK)
      continue;
    const char *rest = name + at;
    const struct hk_section *of = hk_sections_find(s, name, at);
    if ((of && has_suffix(of->suffix, of->n_companions, rest, length - at)) ||
        (hk_sections_field(s, name, at, &field) && has_suffix(field.series->suffix, field.series->n, rest, length - at)) ||
        cut_named(s, name, at))
      return true;
  }
  return false;
}

size_t hk_sections_series(const struct hk_machine_name *m, char out[HK_NAME_MAX])
{
  const size_t length = strlen(m->group), all = length + 1 + m->length;
  if (all > HK_NAME_MAX)
    return 0;
  memcpy(out, m->group, length);
  out[length] = HK_DERIVED_MARK;
  memcpy(out + length + 1, m->capture, m->length);
  return all;
}

bool hk_sections_grouped(const struct hk_sections *s)
{
  return s->n_groups > 0;
}

bool hk_sections_seconded(const struct hk_sections *s)
{
  bool any = false;
  for (uint32_t i = 0; i < s->n_groups; i++)
    any |= s->groups[i].second;
  return any;
}

bool hk_sections_fielded(const struct hk_sections *s)
{
  return s->n_fields > 0;
}

static bool has_number(const struct cut *g, uint32_t number)
{
  bool has = g->number == number;
  for (uint32_t i = 0; i < g->series.n; i++)
    has |= g->series.number[i] == number;
  return has;
}

bool hk_sections_group_by(const struct hk_sections *s, uint32_t number, struct hk_machine_name *out)
{
  for (uint32_t i = 0; i < s->n_groups + s->n_fields; i++) {
    const struct cut *g = i < s->n_groups ? &s->groups[i] : &s->fields[i - s->n_groups];
    *out = detector_rules_name_of(g, NULL, 0);
    if (has_number(g, number))
      return true;
  }
  return false;
}

struct hk_string hk_sections_home(const struct hk_sections *s, uint32_t number, struct hk_string series, char room[HK_NAME_MAX])
{
  struct hk_machine_name machine;
  if (!hk_sections_group_by(s, number, &machine))
    return series;
  if (machine.beside)
    return (struct hk_string){ machine.beside, strlen(machine.beside) };
  const size_t before = strlen(machine.group), after = machine.first ? strlen(machine.first) : before;
  if (!machine.first || series.length < before)
    return series;
  memcpy(room, machine.first, after);
  memcpy(room + after, series.data + before, series.length - before);
  return (struct hk_string){ room, series.length - before + after };
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

bool hk_sections_share(const struct hk_config *config, uint32_t *at, char *line, size_t size)
{
  for (; *at < config->n_groups * config->n_fields; ++*at) {
    const uint32_t group = *at / config->n_fields, field = *at % config->n_fields;
    if (config->groups[group].second || !meet(config, group, field))
      continue;
    ++*at;
    snprintf(
        line, size,
        "[group %s] and [field %s] may have sensors in common: with several devices the sensors of both are all on one of them",
        config->groups[group].name, config->fields[field].name);
    return true;
  }
  return false;
}

static bool derived_by_field(const struct hk_config *config, const char *detector)
{
  for (uint32_t i = 0; i < config->n_fields; i++)
    if (strcmp(config->fields[i].detector, detector) == 0)
      return true;
  return false;
}

/* A glob without `?` that matches another glob's text matches everything that the other matches: only its own stars can match
 * the other's wildcards. */
bool hk_sections_unreached(const struct hk_config *config, uint32_t i, char *line, size_t size)
{
  const struct hk_config_detector *d = &config->detectors[i];
  if (derived_by_field(config, d->name))
    return false;
  for (const struct hk_config_detector *before = config->detectors; before < d; before++) {
    struct hk_glob *glob;
    if (d->derived || before->derived || strchr(before->match, '?') ||
        hk_glob_new(&glob, before->match, strlen(before->match)) != 0)
      continue;
    const bool all = hk_glob_match(glob, d->match, strlen(d->match));
    hk_glob_free(glob);
    if (!all)
      continue;
    snprintf(line, size, "no sensor reaches [detector %s] (match = %.64s): [detector %s] (match = %.64s) comes first", d->name,
             d->match, before->name, before->match);
    return true;
  }
  return false;
}
