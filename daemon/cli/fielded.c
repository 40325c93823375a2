/* Recordings as fields: see fielded.h. */
#include "daemon/cli/fielded.h"
#include "daemon/cli/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX "#residual"

struct hk_fielded {
  struct hk_field *field;
  struct hk_field_binding binding;
  uint32_t n;
  char **name; /* of the derived sensors */
  struct hk_field_row row;
  uint32_t at; /* in it; row.n: it is through */
  uint64_t points;
};

static bool join_all(struct hk_fielded *f, const struct hk_recordings *csv)
{
  for (uint32_t i = 0; i < f->n; i++) {
    const char *sensor = hk_recording_sensor(csv, i);
    const size_t length = strlen(sensor);
    uint32_t member;
    f->name[i] = malloc(length + sizeof SUFFIX);
    if (!f->name[i] || hk_field_join(f->field, &member) != 0 || member != i)
      return false;
    hk_field_binding_join(&f->binding, f->field, member, sensor, length);
    memcpy(f->name[i], sensor, length);
    memcpy(f->name[i] + length, SUFFIX, sizeof SUFFIX);
  }
  return true;
}

int hk_fielded_open(struct hk_fielded **out, char **argv, const char *keys, const struct hk_recordings *csv)
{
  struct hk_field_rule rule;
  char error[1024];
  if (hk_field_parse(keys, &rule, error, sizeof error) != 0)
    return hk_usage(argv, "--field: %s", error);
  const uint32_t n = hk_recording_sensors(csv);
  if (n > rule.members)
    return hk_usage(argv, "--field: members = %u, and there are %u sensors", rule.members, n);
  struct hk_fielded *f = calloc(1, sizeof *f);
  if (!f)
    return hk_failed(argv, "out of memory");
  *out = f;
  if (hk_field_binding_open(&f->binding, &rule, error, sizeof error) != 0)
    return hk_failed(argv, "--field: %s", error);
  f->n = n;
  f->name = calloc(n + 1, sizeof *f->name);
  const bool fine = f->name && hk_field_new(&f->field, &rule) == 0 && join_all(f, csv);
  return fine ? 0
              : hk_failed(argv, "no memory for a field of %u sensors: it needs %" PRIu64 " bytes", n, hk_field_need(&rule, n));
}

void hk_fielded_close(struct hk_fielded *f)
{
  if (!f)
    return;
  for (uint32_t i = 0; f->name && i < f->n; i++)
    free(f->name[i]);
  free(f->name);
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
  }
}

const char *hk_fielded_blamed(const struct hk_fielded *f, uint32_t sensor, double value)
{
  const uint32_t blamed = hk_residual_blamed(value);
  const uint32_t neighbour = blamed > 0 ? hk_field_neighbour(f->field, sensor, blamed - 1) : HK_RESIDUAL_NONE;
  return neighbour < f->n ? f->name[neighbour] : NULL;
}

void hk_fielded_explain(const struct hk_fielded *f)
{
  const struct hk_field_count count = hk_field_count(f->field);
  if (f->points == 0)
    fprintf(stderr,
            "hankel replay: no sensor of the field has a residual: a sensor needs %u rows to settle, and as many more with two "
            "neighbours\n",
            HK_RESIDUAL_SETTLE);
  else if (count.explained < f->n)
    fprintf(stderr,
            "hankel replay: %u of %u sensors have no residual at the end: %u have fewer than %u rows, or stand still; "
            "the others have fewer than two neighbours that have\n",
            f->n - count.explained, f->n, f->n - count.settled, HK_RESIDUAL_SETTLE);
}
