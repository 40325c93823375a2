/* Recordings as fields: see fielded.h. */
#include "daemon/cli/fielded.h"
#include "cpu/field/count.h"
#include "cpu/field/filter.h"
#include "cpu/field/focus.h"
#include "cpu/field/hoelder.h"
#include "cpu/field/residual.h"
#include "daemon/base/grow.h"
#include "daemon/cli/options.h"
#include "proto/hankel.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hk_fielded {
  struct hk_field *field;
  const char *command; /* whose messages they are */
  struct hk_field_binding binding;
  uint32_t n, kind;      /* kind: enum hk_field_operator */
  char suffix[16];       /* of names of derived sensors */
  char **sensor, **name; /* names, and those of derived sensors */
  struct hk_field_row row;
  uint32_t at; /* in it; row.n: it is through */
  uint64_t points, spikes;
  uint32_t samples;        /* of a filter; else 0 */
  uint32_t fit;            /* of arma: exponents of a fit */
  struct hk_event *change; /* changes that a focus has found, in order: n_changes, of which `told` were returned */
  uint32_t n_changes, room_changes, told;
};

/* Prints a line about the field on standard error, as the command that made it. */
__attribute__((format(printf, 2, 3))) static void fielded_say(const struct hk_fielded *f, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "hankel %s: ", f->command);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
}

static bool join_all(struct hk_fielded *f, const char *const *sensor)
{
  for (uint32_t i = 0; i < f->n; i++) {
    const size_t length = strlen(sensor[i]);
    uint32_t member;
    f->sensor[i] = strdup(sensor[i]);
    f->name[i] = malloc(length + strlen(f->suffix) + 1);
    if (!f->sensor[i] || !f->name[i] || hk_field_join(f->field, &member) != 0 || member != i)
      return false;
    hk_field_binding_join(&f->binding, f->field, member, sensor[i], length);
    memcpy(f->name[i], sensor[i], length);
    memcpy(f->name[i] + length, f->suffix, strlen(f->suffix) + 1);
  }
  return true;
}

/* Makes the field, with the contents of its file. Returns 0 or a negative errno with a message. */
static int make_field(struct hk_fielded *f, const struct hk_field_rule *rule, char *error, size_t size)
{
  const struct hk_pipelines_place host = { &hk_pipelines_host, 0 };
  const struct hk_field_file *file = &f->binding.file;
  snprintf(error, size, "out of memory");
  int status = hk_field_new(&f->field, rule);
  if (status == 0 && file->plan)
    status = hk_field_attach(f->field, file->plan, &host, error, size);
  if (status == 0 && rule->kind == HK_FIELD_FOCUS)
    status =
        hk_field_attach_line(f->field, hk_field_graph_nodes(file->graph), hk_field_graph_positions(file->graph), error, size);
  return status;
}

int hk_fielded_open_named(struct hk_fielded **out, char **argv, const char *keys, const char *const *sensor, uint32_t n)
{
  struct hk_field_rule rule;
  char error[1024];
  if (hk_field_parse(keys, &rule, error, sizeof error) != 0)
    return hk_usage(argv, "--field: %s", error);
  if (n > rule.members)
    return hk_usage(argv, "--field: members = %u, and there are %u sensors", rule.members, n);
  struct hk_fielded *f = calloc(1, sizeof *f);
  if (!f)
    return hk_failed(argv, "out of memory");
  *out = f;
  if (hk_field_binding_open(&f->binding, &rule, error, sizeof error) != 0)
    return hk_failed(argv, "--field: %s", error);
  f->n = n;
  f->command = argv[0];
  f->kind = rule.kind;
  f->samples = hk_field_filters(&rule) ? hk_field_filter_rule(&rule).samples : 0;
  f->fit = hk_field_arma_rows(&rule);
  snprintf(f->suffix, sizeof f->suffix, "#%s", hk_field_operator_name(rule.kind));
  f->sensor = calloc(n + 1, sizeof *f->sensor);
  f->name = calloc(n + 1, sizeof *f->name);
  const bool room = f->sensor && f->name;
  if (room && make_field(f, &rule, error, sizeof error) != 0)
    return hk_failed(argv, "--field: %s%s%s", rule.file, rule.file[0] ? ": " : "", error);
  return room && join_all(f, sensor)
             ? 0
             : hk_failed(argv, "no memory for a field of %u sensors: it needs %" PRIu64 " bytes", n, hk_field_need(&rule, n));
}

int hk_fielded_open(struct hk_fielded **out, char **argv, const char *keys, const struct hk_recordings *csv)
{
  const uint32_t n = hk_recording_sensors(csv);
  const char **sensor = calloc(n + 1, sizeof *sensor);
  for (uint32_t i = 0; sensor && i < n; i++)
    sensor[i] = hk_recording_sensor(csv, i);
  const int code = sensor ? hk_fielded_open_named(out, argv, keys, sensor, n) : hk_failed(argv, "out of memory");
  free(sensor);
  return code;
}

void hk_fielded_close(struct hk_fielded *f)
{
  if (!f)
    return;
  for (uint32_t i = 0; f->name && f->sensor && i < f->n; i++) {
    free(f->name[i]);
    free(f->sensor[i]);
  }
  free(f->name);
  free(f->sensor);
  free(f->change);
  hk_field_binding_close(&f->binding);
  hk_field_free(f->field);
  free(f);
}

const char *hk_fielded_name(const struct hk_fielded *f, uint32_t sensor)
{
  return f->name[sensor];
}

void hk_fielded_put(struct hk_fielded *f, uint32_t sensor, int64_t time, double value)
{
  hk_field_put(f->field, sensor, time, value);
}

/* Notes the change that a row has found. Out of memory it is left out, as the daemon does. */
static void note_found(struct hk_fielded *f)
{
  const struct hk_focus_line *line = hk_field_line_of(f->field);
  if (!line || !line->found.changed || isnan(f->row.own))
    return;
  struct hk_event *change = hk_grow(f->change, f->n_changes, &f->room_changes, sizeof *change, 16);
  if (!change)
    return;
  const double strength = (double)line->found.strongest, unit = line->rule.keys.threshold;
  const float margin = hk_alert_margin(strength, unit);
  f->change = change;
  f->change[f->n_changes] = (struct hk_event){ .kind = HK_EVENT_RAISED,
                                               .number = f->n_changes + 1,
                                               .channel = HK_CHANNEL_GROUP,
                                               .time = f->row.latest,
                                               .from = f->row.latest,
                                               .instant = f->row.latest,
                                               .score = (float)(strength / (strength + unit)),
                                               .margin = margin,
                                               .severity = hk_focus_severity(margin),
                                               .after = line->found.position,
                                               .spread_after = (float)line->found.speed,
                                               .marks = HANKEL_TRAVELS };
  f->n_changes++;
}

const struct hk_event *hk_fielded_change(struct hk_fielded *f, int64_t time, const char **sensor)
{
  if (f->told == f->n_changes || f->change[f->told].time > time)
    return NULL;
  const struct hk_event *change = &f->change[f->told++];
  const struct hk_focus_line *line = hk_field_line_of(f->field);
  const uint32_t member = f->binding.member[line->node[hk_focus_nearest(line, change->after)]];
  *sensor = member < f->n ? f->sensor[member] : "?";
  return change;
}

bool hk_fielded_next(struct hk_fielded *f, struct hk_fielded_point *out)
{
  for (;;) {
    for (; f->at < f->row.n; f->at++) {
      if (isnan(f->row.value[f->at]))
        continue;
      *out = (struct hk_fielded_point){ f->at, f->row.time[f->at], f->row.value[f->at] };
      f->at++;
      f->points++;
      return true;
    }
    f->at = f->row.n = 0;
    if (!hk_field_next(f->field, &f->row))
      return false;
    f->spikes += f->row.spikes;
    note_found(f);
  }
}

const char *hk_fielded_blamed(const struct hk_fielded *f, uint32_t sensor, double value)
{
  const uint32_t blamed = hk_residual_blamed(value);
  const uint32_t neighbour = blamed > 0 ? hk_field_neighbour(f->field, sensor, blamed - 1) : HK_RESIDUAL_NONE;
  return neighbour < f->n ? f->name[neighbour] : NULL;
}

/* Reports how much a model explains, or why it gives no residuals. */
static void explain_model(const struct hk_fielded *f)
{
  const struct hk_model *model = hk_field_model_of(f->field);
  const struct hk_model_plan *plan = hk_model_plan_of(model);
  double silence = 0;
  for (uint32_t i = 0; i < plan->lines; i++)
    silence = fmax(silence, hk_model_silence(model, i));
  for (uint32_t i = 0; i < plan->sensors; i++) {
    const struct hk_model_sensor *s = &plan->sensor[i];
    if (f->binding.member[i] == HK_RESIDUAL_NONE)
      fielded_say(f, "the recording has no sensor %.*s of the model", (int)s->name.length, s->name.text);
    else if (!s->boundary && !isnan(hk_model_explains(model, i)))
      fielded_say(f, "%.*s: the model explains %.1f %% of its variance", (int)s->name.length, s->name.text,
                  100 * hk_model_explains(model, i));
  }
  if (f->points == 0 && plan->matrix)
    fielded_say(f, "the model has no values: it begins when all boundaries have values, and needs %.0f s to forget its start",
                silence);
  else if (f->points == 0)
    fielded_say(f, "the model has no values: it begins when both boundaries have values, and needs %.0f s from then on", silence);
  for (uint32_t i = 0; i < plan->lines && f->points > 0 && !plan->matrix; i++) {
    const struct hk_model_word *name = &plan->line[i].name;
    fielded_say(f, "%s%s%.*s, as a multiple of what the model file says: %.4f", plan->heat ? "loss of heat" : "friction",
                name->length > 0 ? " of " : "", (int)name->length, name->text, hk_model_friction(model, i));
  }
}

/* Reports which sensors of a line the recording lacks, and the last departures. */
static void explain_line(const struct hk_fielded *f)
{
  const struct hk_field_count count = hk_field_count(f->field);
  const uint32_t nodes = hk_field_graph_nodes(f->binding.file.graph);
  uint32_t lacking = 0;
  for (uint32_t i = 0; i < nodes; i++)
    lacking += f->binding.member[i] == HK_RESIDUAL_NONE;
  if (lacking > 0)
    fielded_say(f, "the recording lacks %u of the %u sensors that have a position", lacking, nodes);
  if (f->points == 0)
    fielded_say(f,
                "no sensor of the line has a value: %u of %u sensors have a position and %u rows with a change to "
                "measure noise by; a place needs at least 3 such sensors within `reach`, and half of all there",
                count.settled, f->n, HK_FOCUS_SETTLE);
}

/* How many values were spikes. */
static void explain_filter(const struct hk_fielded *f)
{
  if (f->points == 0)
    fielded_say(f,
                "no sensor has a filtered value: each needs the last %u samples within %u rows; is "
                "interval the time between two samples?",
                f->samples, f->samples);
  else
    fielded_say(f, "%" PRIu64 " of %" PRIu64 " values were spikes", f->spikes, f->points);
}

/* Reports why there is no exponent, or no forecast. */
static void explain_exponents(const struct hk_fielded *f)
{
  if (f->points > 0)
    return;
  fielded_say(f,
              "no sensor has an exponent: each needs %u samples that move, within %u rows; is interval the time between "
              "two samples?",
              HK_HOELDER_SAMPLES, HK_HOELDER_SAMPLES);
  if (f->kind == HK_FIELD_ARMA)
    fielded_say(f, "and arma begins after two fits of %u exponents each", f->fit);
}

void hk_fielded_explain(const struct hk_fielded *f)
{
  if (f->binding.file.plan) {
    explain_model(f);
    return;
  }
  if (f->kind == HK_FIELD_FOCUS) {
    explain_line(f);
    return;
  }
  if (f->samples > 0) {
    explain_filter(f);
    return;
  }
  if (f->kind == HK_FIELD_HOELDER || f->kind == HK_FIELD_ARMA) {
    explain_exponents(f);
    return;
  }
  const struct hk_field_count count = hk_field_count(f->field);
  if (f->points == 0)
    fielded_say(f,
                "no sensor of the field has a residual: a sensor needs %u rows to settle, and as many more with two "
                "neighbours",
                HK_RESIDUAL_SETTLE);
  else if (count.explained < f->n)
    fielded_say(f,
                "%u of %u sensors have no residual at the end: %u have fewer than %u rows, or stand still; "
                "the others have fewer than two neighbours that have",
                f->n - count.explained, f->n, f->n - count.settled, HK_RESIDUAL_SETTLE);
}
