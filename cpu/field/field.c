/* Fields: see field.h. */
#include "cpu/field/arma.h"
#include "cpu/field/compute.h"
#include "cpu/field/field_internal.h"
#include "cpu/field/hoelder.h"

#include <errno.h>
#include <stdlib.h>

/* Rounds down, also before 1970. */
static int64_t row_of(const struct hk_field_rule *rule, int64_t time)
{
  return time / rule->interval - (time % rule->interval < 0);
}

/* --- life ------------------------------------------------------------------------------------------------------------ */

int hk_field_new(struct hk_field **out, const struct hk_field_rule *r)
{
  char error[256];
  if (hk_field_check(r, error, sizeof error) < 0)
    return -EINVAL;
  struct hk_field *f = calloc(1, sizeof *f);
  if (!f)
    return -ENOMEM;
  f->rule = *r;
  f->next = f->newest = HK_FIELD_NEVER;
  f->residual.rule = hk_field_residual_rule(r);
  f->residual.shows = r->neighbours == HK_FIELD_AUTO; /* the ring keeps it */
  f->open = calloc(r->wait + 1, sizeof *f->open);
  f->offload = calloc(1, sizeof *f->offload);
  if (!f->open || !f->offload) {
    hk_field_free(f);
    return -ENOMEM;
  }
  *out = f;
  return 0;
}

void hk_field_free(struct hk_field *f)
{
  if (!f)
    return;
  for (uint32_t i = 0; f->open && i <= f->rule.wait; i++) {
    free(f->open[i].value);
    free(f->open[i].time);
  }
  if (f->offload)
    hk_offload_close(f->offload);
  free(f->offload);
  hk_residual_close(&f->residual);
  hk_field_model_close(&f->model);
  hk_field_line_close(&f->line);
  free(f->open);
  free(f->member);
  free(f->value);
  free(f->time);
  free(f->ring);
  free(f->filter);
  free(f->hoelder);
  free(f->arma);
  free(f);
}

int hk_field_attach(struct hk_field *f, const struct hk_model_plan *plan, const struct hk_pipelines_place *place, char *error,
                    size_t size)
{
  const struct hk_model_rule rule = hk_field_model_rule(&f->rule);
  return f->rule.kind != HK_FIELD_MODEL || f->model.is ? 0 : hk_field_model_attach(&f->model, plan, &rule, place, error, size);
}

int hk_field_attach_line(struct hk_field *f, uint32_t n, const double *position, char *error, size_t size)
{
  const struct hk_focus_rule rule = hk_field_focus_rule(&f->rule);
  return f->rule.kind != HK_FIELD_FOCUS || f->line.is ? 0 : hk_field_line_attach(&f->line, &rule, n, position, error, size);
}

const struct hk_model *hk_field_model_of(const struct hk_field *f)
{
  return f->model.is;
}

void hk_field_compute_at(struct hk_field *f, const struct hk_field_place *place)
{
  hk_offload_grow(f->offload);
  f->offload->place = *place;
  f->offload->kind = !place->kinds ? NULL : f->rule.kind == HK_FIELD_FOCUS ? place->kinds->focus : place->kinds->residual;
}

uint64_t hk_field_need(const struct hk_field_rule *r, uint32_t members)
{
  const struct hk_residual_rule residual = hk_field_residual_rule(r);
  const uint64_t rows = (r->wait + 2) * (sizeof(double) + sizeof(int64_t)), own = sizeof(struct hk_field_member);
  const uint64_t ring = r->neighbours == HK_FIELD_AUTO ? HK_FIELD_RESIDENT * sizeof(float) : 0;
  const uint64_t alone = hk_field_filters(r)           ? sizeof(struct hk_filter)
                         : r->kind == HK_FIELD_HOELDER ? sizeof(struct hk_hoelder)
                         : r->kind == HK_FIELD_ARMA    ? sizeof(struct hk_hoelder) + sizeof(struct hk_arma)
                                                       : 0;
  if (r->kind != HK_FIELD_RESIDUAL)
    return members * (rows + own + alone);
  return hk_residual_need(&residual, members) + members * (rows + own + ring);
}

/* Enlarges a column and keeps its contents. NULL: out of memory, and the column is unchanged. */
static void *longer(void *column, size_t before, size_t room, size_t bytes)
{
  char *memory = realloc(column, room * bytes);
  if (memory)
    memset(memory + before * bytes, 0, (room - before) * bytes);
  return memory;
}

static bool longer_reals(double **column, size_t before, size_t room)
{
  double *memory = longer(*column, before, room, sizeof *memory);
  *column = memory ? memory : *column;
  return memory;
}

static bool longer_times(int64_t **column, size_t before, size_t room)
{
  int64_t *memory = longer(*column, before, room, sizeof *memory);
  *column = memory ? memory : *column;
  return memory;
}

/* Enlarges what operators keep that look at each sensor alone. */
static bool longer_alone(struct hk_field *f, size_t room)
{
  const bool filters = hk_field_filters(&f->rule), arma = f->rule.kind == HK_FIELD_ARMA;
  const bool hoelder = hk_field_alone(&f->rule) && !filters;
  struct hk_filter *filter = filters ? longer(f->filter, f->room, room, sizeof *filter) : NULL;
  struct hk_hoelder *exponent = hoelder ? longer(f->hoelder, f->room, room, sizeof *exponent) : NULL;
  struct hk_arma *forecast = arma ? longer(f->arma, f->room, room, sizeof *forecast) : NULL;
  f->filter = filter ? filter : f->filter;
  f->hoelder = exponent ? exponent : f->hoelder;
  f->arma = forecast ? forecast : f->arma;
  return (filter || !filters) && (exponent || !hoelder) && (forecast || !arma);
}

/* Forgets what is known of a sensor alone. */
static void forget_alone(struct hk_field *f, uint32_t number)
{
  if (f->filter)
    f->filter[number] = (struct hk_filter){ 0 };
  if (f->hoelder)
    f->hoelder[number] = (struct hk_hoelder){ 0 };
  if (f->arma)
    f->arma[number] = (struct hk_arma){ 0 };
}

/* Enlarges the rows of the ring to the room of the residual. */
static int grow_ring(struct hk_field *f, uint32_t before)
{
  const uint32_t room = f->residual.room;
  float *ring = malloc((size_t)HK_FIELD_RESIDENT * room * sizeof *ring);
  if (!ring)
    return -ENOMEM;
  for (size_t i = 0; i < (size_t)HK_FIELD_RESIDENT * room; i++)
    ring[i] = NAN;
  for (size_t row = 0; row < HK_FIELD_RESIDENT && before > 0; row++)
    memcpy(ring + row * room, f->ring + row * before, before * sizeof *ring);
  free(f->ring);
  f->ring = ring;
  return 0;
}

/* Enlarges all columns to `nodes` nodes. The residual grows last, so the field is unchanged if there is no memory. */
static int grow(struct hk_field *f, uint32_t nodes)
{
  const size_t before = f->room, room = (nodes + HK_RESIDUAL_LANES - 1) / HK_RESIDUAL_LANES * HK_RESIDUAL_LANES;
  struct hk_field_member *member = longer(f->member, before, room, sizeof *member);
  f->member = member ? member : f->member;
  bool fine = member && longer_reals(&f->value, before, room) && longer_times(&f->time, before, room) && longer_alone(f, room);
  for (uint32_t i = 0; i <= f->rule.wait && fine; i++) {
    fine = longer_reals(&f->open[i].value, before, room) && longer_times(&f->open[i].time, before, room);
    for (size_t k = before; k < room && fine; k++)
      f->open[i].value[k] = NAN;
  }
  if (f->rule.kind == HK_FIELD_RESIDUAL)
    hk_offload_grow(f->offload);
  if (!fine || (f->rule.kind == HK_FIELD_RESIDUAL && hk_residual_grow(&f->residual, (uint32_t)room) != 0))
    return -ENOMEM;
  f->room = (uint32_t)room;
  return f->rule.kind == HK_FIELD_RESIDUAL && f->rule.neighbours == HK_FIELD_AUTO ? grow_ring(f, (uint32_t)before) : 0;
}

int hk_field_add(struct hk_field *f, uint32_t number)
{
  const uint32_t room = f->room;
  const uint32_t wanted = 2 * room > number ? 2 * room : number + 1;
  if (number >= room && grow(f, wanted < f->rule.members ? wanted : f->rule.members) != 0)
    return -ENOMEM;
  f->member[number] =
      (struct hk_field_member){ .last = HK_FIELD_NEVER, .from = INT64_MAX, .status = HK_FIELD_MEMBER, .node = HK_RESIDUAL_NONE };
  f->n_members++;
  f->top = number < f->top ? f->top : number + 1;
  f->counted = false;
  return 0;
}

/* Removes members that have left from the neighbours of all others. */
static void sweep(struct hk_field *f)
{
  if (f->n_left == 0)
    return;
  for (uint32_t k = 0; k < f->rule.q && f->rule.kind == HK_FIELD_RESIDUAL; k++)
    for (uint32_t i = 0; i < f->top; i++) {
      const uint32_t j = hk_field_neighbour(f, i, k);
      if (j != HK_RESIDUAL_NONE && f->member[j].status == HK_FIELD_LEFT)
        hk_residual_bind(&f->residual, i, k, HK_RESIDUAL_NONE);
    }
  for (uint32_t i = 0; i < f->top; i++)
    if (f->member[i].status == HK_FIELD_LEFT)
      f->member[i].status = HK_FIELD_FREE;
  f->n_left = 0;
}

int hk_field_join(struct hk_field *f, uint32_t *number)
{
  sweep(f);
  uint32_t i = f->n_members == f->top ? f->top : 0;
  while (i < f->top && f->member[i].status != HK_FIELD_FREE)
    i++;
  if (i == f->rule.members)
    return -ENOSPC;
  const int status = hk_field_add(f, i);
  if (status == 0)
    *number = i;
  return status;
}

void hk_field_leave(struct hk_field *f, uint32_t number)
{
  if (f->coming.is && f->coming.member == number)
    f->coming.is = false;
  for (uint32_t i = 0; i <= f->rule.wait; i++) {
    f->waiting -= !isnan(f->open[i].value[number]);
    f->open[i].value[number] = NAN;
  }
  for (size_t row = 0; f->ring && row < HK_FIELD_RESIDENT; row++)
    f->ring[row * f->residual.room + number] = NAN;
  if (f->rule.kind == HK_FIELD_RESIDUAL) {
    hk_offload_change(f->offload);
    hk_residual_forget(&f->residual, number);
  }
  forget_alone(f, number);
  f->member[number].status = HK_FIELD_LEFT;
  f->n_members--;
  f->n_left++;
  f->counted = false;
}

uint32_t hk_field_members(const struct hk_field *f)
{
  return f->n_members;
}

bool hk_field_has(const struct hk_field *f, uint32_t number)
{
  return number < f->top && f->member[number].status == HK_FIELD_MEMBER;
}

void hk_field_bind(struct hk_field *f, uint32_t i, uint32_t k, uint32_t j)
{
  sweep(f);
  hk_offload_change(f->offload);
  hk_residual_bind(&f->residual, i, k, j);
}

/* The member to blame for what a member sees; HK_RESIDUAL_NONE: none. */
static uint32_t blamed_by(const struct hk_field *f, uint32_t member)
{
  const uint32_t j = hk_field_place_of(f, member), blamed = j == HK_FOCUS_NONE ? j : f->line.is->f.now.blamed[j];
  return blamed == HK_FOCUS_NONE ? HK_RESIDUAL_NONE : f->line.member[blamed];
}

const struct hk_focus_line *hk_field_line_of(const struct hk_field *f)
{
  return f->line.is;
}

uint32_t hk_field_member_at(const struct hk_field *f, uint32_t sensor)
{
  return f->line.member[sensor];
}

uint32_t hk_field_neighbour(const struct hk_field *f, uint32_t i, uint32_t k)
{
  if (f->rule.kind == HK_FIELD_FOCUS)
    return k == 0 ? blamed_by(f, i) : HK_RESIDUAL_NONE;
  return f->rule.kind == HK_FIELD_RESIDUAL ? f->residual.neighbour[hk_residual_at(f->rule.q, k, i)] : HK_RESIDUAL_NONE;
}

uint32_t hk_field_node(const struct hk_field *f, uint32_t member)
{
  return member < f->top && f->member[member].status == HK_FIELD_MEMBER ? f->member[member].node : HK_RESIDUAL_NONE;
}

void hk_field_set_node(struct hk_field *f, uint32_t member, uint32_t node)
{
  f->member[member].node = node;
}

uint32_t hk_field_top(const struct hk_field *f)
{
  return f->top;
}

/* --- rows ------------------------------------------------------------------------------------------------------------ */

/* Whether the next row waits for a sample of a member. */
static bool holds(const struct hk_field *f, const struct hk_field_member *m)
{
  return m->status == HK_FIELD_MEMBER && m->from <= f->next && m->last < f->next && f->next - m->last <= f->rule.wait;
}

static bool is_held(struct hk_field *f)
{
  if (!f->counted) {
    f->behind = 0;
    for (uint32_t i = 0; i < f->top; i++)
      f->behind += holds(f, &f->member[i]);
    f->counted = true;
  }
  return f->behind > 0;
}

void hk_field_put(struct hk_field *f, uint32_t number, int64_t time, double value)
{
  struct hk_field_member *m = &f->member[number];
  const int64_t row = row_of(&f->rule, time), wait = f->rule.wait;
  if ((m->last != HK_FIELD_NEVER && row <= m->last) || !(fabs(value) <= HK_FIELD_VALUE_MAX))
    return;
  if (f->counted && row >= f->next)
    f->behind -= holds(f, m);
  else
    f->counted = false;
  if (m->last == HK_FIELD_NEVER || row - m->last > wait)
    m->from = row + wait;
  m->last = row;
  if (f->next == HK_FIELD_NEVER)
    f->next = f->newest = row;
  if (row > f->newest)
    f->newest = row;
  if (row >= f->next && row >= m->from) {
    f->coming.is = true;
    f->coming.member = number;
    f->coming.row = row;
    f->coming.time = time;
    f->coming.value = value;
  }
}

/* Puts the last point into its row, after the rows that it forces to close were closed. */
static void settle_in(struct hk_field *f)
{
  if (!f->coming.is)
    return;
  const struct hk_field_open *open = hk_field_open_row(f, f->coming.row);
  open->value[f->coming.member] = f->coming.value;
  open->time[f->coming.member] = f->coming.time;
  f->waiting++;
  f->coming.is = false;
}

/* Closes the next row. False: it has no sample, and does not count as a row. */
static bool close_row(struct hk_field *f, struct hk_field_row *out)
{
  struct hk_field_open *open = hk_field_open_row(f, f->next++);
  int64_t latest = HK_FIELD_NEVER;
  uint32_t n = 0;
  f->counted = false;
  for (uint32_t i = 0; i < f->top; i++) {
    if (isnan(open->value[i]))
      continue;
    n++;
    latest = open->time[i] > latest ? open->time[i] : latest;
  }
  if (n == 0)
    return false;
  f->waiting -= n;
  sweep(f);
  int64_t *const times = open->time; /* where there is no value, no time is looked at */
  open->time = f->time;
  f->time = times;
  *out = (struct hk_field_row){ .n = f->top, .time = f->time, .value = f->value, .latest = latest, .own = NAN };
  hk_field_compute(f, open, out);
  for (uint32_t i = 0; i < f->top; i++)
    open->value[i] = NAN;
  return true;
}

bool hk_field_next(struct hk_field *f, struct hk_field_row *out)
{
  while (f->next != HK_FIELD_NEVER) {
    const bool driven = f->newest - f->next >= f->rule.wait;
    if (!driven)
      settle_in(f);
    if (!driven && (f->next > f->newest || is_held(f)))
      return false;
    if (driven && f->waiting == 0) { /* a hole */
      f->next = f->newest - f->rule.wait + 1;
      f->counted = false;
      continue;
    }
    if (close_row(f, out))
      return true;
  }
  return false;
}
