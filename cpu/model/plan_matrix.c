/* Processes given as matrices, in model files: see plan_matrix.h. */
#include "cpu/model/plan_matrix.h"
#include "cpu/model/matrix_shape.h"
#include "cpu/state_mark.h"
#include "cpu/whole_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LONGEST 4096

/* --- files -------------------------------------------------------------------------------------------------------------- */

/* Reads a file that the model file names. */
static int read_matrix(const struct hk_plan_lines *r, const struct hk_plan_word *w, const char *folder, struct hk_market *out)
{
  char path[PATH_LONGEST], why[256];
  if (!folder)
    return hk_plan_complain(r, w, "no files can be read here");
  const bool absolute = w->is.text[0] == '/';
  const int length =
      snprintf(path, sizeof path, "%s%s%.*s", absolute ? "" : folder, absolute ? "" : "/", (int)w->is.length, w->is.text);
  if (length < 0 || (size_t)length >= sizeof path)
    return hk_plan_complain(r, w, "the path is too long");
  char *text;
  size_t bytes;
  int status = hk_whole_file_read(path, HK_MARKET_BYTES, &text, &bytes);
  if (status != 0)
    snprintf(why, sizeof why, "%s", strerror(-status));
  else
    status = hk_market_parse(out, text, bytes, why, sizeof why);
  free(text);
  if (status == -ENOMEM)
    return hk_plan_no_memory(r);
  return status == 0 ? 0 : hk_plan_complain(r, w, why);
}

/* Checks a number of rows or columns. */
static int check_side(const struct hk_plan_lines *r, const struct hk_plan_word *w, const char *what, uint32_t is, uint32_t wanted)
{
  char why[160];
  if (is == wanted)
    return 0;
  snprintf(why, sizeof why, "the matrix has %u %s, and the equations have %u unknowns", is, what, wanted);
  return hk_plan_complain(r, w, why);
}

/* Adds the places of M to A, with zeros, and takes M's numbers at all places of A. */
static int join_storage(struct hk_plan_matrix *m, const struct hk_plan_lines *r, const struct hk_market *storage)
{
  struct hk_market *a = &m->shape.equations;
  const size_t most = (size_t)a->at[a->rows] + storage->at[storage->rows] + 1;
  struct hk_market all = { a->rows, a->columns, calloc((size_t)a->rows + 1, sizeof *all.at), malloc(most * sizeof *all.column),
                           malloc(most * sizeof *all.value) };
  uint32_t n = 0;
  m->storage = malloc(most * sizeof *m->storage);
  if (!all.at || !all.column || !all.value || !m->storage) {
    hk_market_free(&all);
    return hk_plan_no_memory(r);
  }
  for (uint32_t i = 0; i < a->rows; i++) {
    uint32_t k = a->at[i], l = storage->at[i];
    while (k < a->at[i + 1] || l < storage->at[i + 1]) {
      const bool here = k < a->at[i + 1] && (l == storage->at[i + 1] || a->column[k] <= storage->column[l]);
      const bool there = l < storage->at[i + 1] && (k == a->at[i + 1] || storage->column[l] <= a->column[k]);
      all.column[n] = here ? a->column[k] : storage->column[l];
      m->storage[n] = there ? storage->value[l] : 0;
      all.value[n++] = here ? a->value[k] : 0;
      k += here;
      l += there;
    }
    all.at[i + 1] = n;
  }
  hk_market_free(a);
  *a = all;
  m->shape.storage = m->storage;
  return 0;
}

static int plan_matrix_read_all(struct hk_plan_matrix *m, const struct hk_plan_lines *r, const char *folder)
{
  const struct hk_plan_word *file = r->matrix.file;
  struct hk_matrix_shape *s = &m->shape;
  struct hk_market storage = { 0 };
  int status = read_matrix(r, &file[HK_PLAN_EQUATIONS], folder, &s->equations);
  s->n = s->equations.rows;
  if (status == 0 && s->equations.columns != s->n) {
    char why[128];
    snprintf(why, sizeof why, "the equations are not square: %u rows, columns: %u", s->n, s->equations.columns);
    return hk_plan_complain(r, &file[HK_PLAN_EQUATIONS], why);
  }
  if (status == 0 && file[HK_PLAN_STORAGE].is.length > 0) {
    status = read_matrix(r, &file[HK_PLAN_STORAGE], folder, &storage);
    status = status ? status : check_side(r, &file[HK_PLAN_STORAGE], "rows", storage.rows, s->n);
    status = status ? status : check_side(r, &file[HK_PLAN_STORAGE], "columns", storage.columns, s->n);
    status = status ? status : join_storage(m, r, &storage);
    hk_market_free(&storage);
  }
  if (status == 0 && file[HK_PLAN_INPUTS].is.length > 0) {
    status = read_matrix(r, &file[HK_PLAN_INPUTS], folder, &s->inputs);
    status = status ? status : check_side(r, &file[HK_PLAN_INPUTS], "rows", s->inputs.rows, s->n);
  }
  if (status == 0 && file[HK_PLAN_READINGS].is.length > 0) {
    status = read_matrix(r, &file[HK_PLAN_READINGS], folder, &s->readings);
    status = status ? status : check_side(r, &file[HK_PLAN_READINGS], "columns", s->readings.columns, s->n);
  }
  return status;
}

/* --- sensors ------------------------------------------------------------------------------------------------------------ */

/* Reads a number from 1 to `most`, and counts it from 0. */
static int plan_matrix_take_place(const struct hk_plan_lines *r, const struct hk_plan_word *w, const char *what, uint32_t most,
                                  uint32_t *out)
{
  double value = 0;
  *out = 0;
  if (most == 0)
    return hk_plan_complain(r, w, "the file has no such matrix: it needs a line that begins with inputs, or with readings");
  const int status = hk_plan_number(r, w, what, 1, most, &value);
  if (status == 0 && value != floor(value))
    return hk_plan_complain(r, w, "not a whole number");
  if (status == 0)
    *out = (uint32_t)value - 1;
  return status;
}

static int place_drive(struct hk_plan_matrix *m, const struct hk_plan_lines *r, const struct hk_plan_sensor *s,
                       const struct hk_matrix_place *at, bool *taken)
{
  bool *before = at->what == HK_MATRIX_INPUT ? &taken[at->at] : &m->given[at->at];
  if (*before)
    return hk_plan_complain(r, &s->name,
                            at->what == HK_MATRIX_INPUT
                                ? "another boundary, or a constant, gives this input already"
                                : "another boundary gives this unknown already; make one of them a check");
  *before = true;
  m->drive[m->shape.drives++] = *at;
  return 0;
}

static int place_all(struct hk_plan_matrix *m, const struct hk_plan_lines *r, bool *taken)
{
  static const char *const what[] = { "an unknown", "a row of the readings", "a column of the inputs" };
  const struct hk_matrix_shape *s = &m->shape;
  const uint32_t most[] = { s->n, s->readings.rows, s->inputs.columns };
  int status = 0;
  for (uint32_t i = 0; i < r->matrix.constants && status == 0; i++) {
    uint32_t column = 0;
    status = plan_matrix_take_place(r, &r->matrix.constant[i].column, what[HK_MATRIX_INPUT], s->inputs.columns, &column);
    if (status == 0 && taken[column])
      return hk_plan_complain(r, &r->matrix.constant[i].column, "this input has a constant already");
    if (status == 0) {
      taken[column] = true;
      m->constant[column] = r->matrix.constant[i].value;
    }
  }
  for (uint32_t i = 0; i < r->sensors && status == 0; i++) {
    struct hk_matrix_place *at = &m->where[i];
    at->what = (enum hk_matrix_what)r->sensor[i].what;
    status = plan_matrix_take_place(r, &r->sensor[i].node, what[at->what], most[at->what], &at->at);
    if (status == 0 && r->sensor[i].boundary)
      status = place_drive(m, r, &r->sensor[i], at, taken);
  }
  return status;
}

/* Checks that checks are computed, and all inputs known. */
static int check_all(const struct hk_plan_matrix *m, const struct hk_plan_lines *r, const bool *taken)
{
  char why[128];
  for (uint32_t i = 0; i < r->sensors; i++)
    if (!r->sensor[i].boundary && m->where[i].what == HK_MATRIX_UNKNOWN && m->given[m->where[i].at])
      return hk_plan_complain(r, &r->sensor[i].name, "a boundary gives this unknown; a check stands where the model computes it");
  for (uint32_t k = 0; k < m->shape.inputs.columns; k++)
    if (!taken[k]) {
      snprintf(why, sizeof why, "neither a boundary nor a constant gives input %u of %u", k + 1, m->shape.inputs.columns);
      return hk_plan_complain(r, &r->matrix.file[HK_PLAN_INPUTS], why);
    }
  if (m->shape.drives > 0)
    return 0;
  snprintf(r->error, r->size, "no sensor is a boundary: nothing drives the model");
  return -EINVAL;
}

int hk_plan_matrix_make(struct hk_plan_matrix *m, const struct hk_plan_lines *r, const char *folder)
{
  struct hk_matrix_shape *s = &m->shape;
  int status = plan_matrix_read_all(m, r, folder);
  if (status != 0)
    return status;
  bool *taken = calloc((size_t)s->inputs.columns + 1, sizeof *taken);
  m->given = calloc(s->n, sizeof *m->given);
  m->constant = calloc((size_t)s->inputs.columns + 1, sizeof *m->constant);
  m->drive = calloc((size_t)r->sensors + 1, sizeof *m->drive);
  m->where = calloc((size_t)r->sensors + 1, sizeof *m->where);
  status = taken && m->given && m->constant && m->drive && m->where ? place_all(m, r, taken) : hk_plan_no_memory(r);
  if (status == 0)
    status = check_all(m, r, taken);
  free(taken);
  s->drive = m->drive;
  s->constant = m->constant;
  s->given = m->given;
  if (status == 0 && hk_matrix_order(s, &m->order) != 0)
    status = hk_plan_no_memory(r);
  if (r->matrix.unit.is.length > 0)
    memcpy(m->unit, r->matrix.unit.is.text, r->matrix.unit.is.length);
  return status;
}

static uint64_t mix_market(uint64_t hash, const struct hk_market *m)
{
  const uint32_t side[2] = { m->rows, m->columns };
  hash = hk_state_mark_mix(hash, side, sizeof side);
  if (m->rows == 0)
    return hash;
  hash = hk_state_mark_mix(hash, m->at, ((size_t)m->rows + 1) * sizeof *m->at);
  hash = hk_state_mark_mix(hash, m->column, m->at[m->rows] * sizeof *m->column);
  return hk_state_mark_mix(hash, m->value, m->at[m->rows] * sizeof *m->value);
}

uint64_t hk_plan_matrix_mark(const struct hk_matrix_shape *s, uint64_t hash)
{
  hash = mix_market(mix_market(mix_market(hash, &s->equations), &s->inputs), &s->readings);
  if (s->storage)
    hash = hk_state_mark_mix(hash, s->storage, s->equations.at[s->n] * sizeof *s->storage);
  return s->inputs.columns > 0 ? hk_state_mark_mix(hash, s->constant, s->inputs.columns * sizeof *s->constant) : hash;
}

void hk_plan_matrix_free(struct hk_plan_matrix *m)
{
  hk_market_free(&m->shape.equations);
  hk_market_free(&m->shape.inputs);
  hk_market_free(&m->shape.readings);
  free(m->drive);
  free(m->where);
  free(m->storage);
  free(m->constant);
  free(m->given);
  free(m->order);
}
