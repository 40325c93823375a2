/* Lines of sensors: see focus.h. */
#include "cpu/field/focus.h"

#include "cpu/state_mark.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 1e30
#define STRONGEST 64 /* root of HK_FOCUS_REACH_MAX */
#define ROW_MAX ((int64_t)1 << 54)
#define LAGS_MAX ((size_t)1 << 28)

static int refuse(char *error, size_t size, int status, const char *why)
{
  snprintf(error, size, "%s", why);
  return status;
}

/* --- the order on the line -------------------------------------------------------------------------------------------- */

struct sensor {
  double x;
  uint32_t node;
};

static int compare_positions(const void *a, const void *b)
{
  const struct sensor *s = a, *t = b;
  if (s->x != t->x)
    return s->x < t->x ? -1 : 1;
  return (s->node > t->node) - (s->node < t->node);
}

static int sort_sensors(struct hk_focus_line *line, const double *position)
{
  const uint32_t n = line->f.n;
  struct sensor *sensor = malloc(n * sizeof *sensor);
  if (!sensor)
    return -ENOMEM;
  for (uint32_t i = 0; i < n; i++)
    sensor[i] = (struct sensor){ position[i], i };
  qsort(sensor, n, sizeof *sensor, compare_positions);
  for (uint32_t i = 0; i < n; i++) {
    line->x[i] = sensor[i].x;
    line->node[i] = sensor[i].node;
    line->rank[sensor[i].node] = i;
  }
  free(sensor);
  return 0;
}

double hk_focus_position(const struct hk_focus_line *line, uint32_t place)
{
  const uint32_t n = line->f.n, j = place / line->f.places, k = place % line->f.places;
  const double *x = line->x, low = j > 0 ? (x[j - 1] + x[j]) / 2 : x[j], high = j + 1 < n ? (x[j] + x[j + 1]) / 2 : x[j];
  return low + (high - low) * (k + 0.5) / line->f.places;
}

uint32_t hk_focus_nearest(const struct hk_focus_line *line, double position)
{
  uint32_t j = 0;
  while (j + 1 < line->f.n && position > (line->x[j] + line->x[j + 1]) / 2)
    j++;
  return j;
}

double hk_focus_speed(const struct hk_focus_line *line, uint32_t aim)
{
  const struct hk_focus_keys *k = &line->rule.keys;
  const double speed = k->speed[k->travel == HK_FOCUS_ONWARD ? aim / 2 : aim];
  return k->travel == HK_FOCUS_ONWARD && aim % 2 == 1 ? -speed : speed;
}

/* --- views ------------------------------------------------------------------------------------------------------------- */

/* The first sensor at x or above it. */
static uint32_t first_at(const struct hk_focus_line *line, double x)
{
  uint32_t low = 0, high = line->f.n;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (line->x[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The sensors of a place for an aim. */
static struct hk_focus_view view_of(const struct hk_focus_line *line, uint32_t aim, uint32_t place)
{
  const double p = hk_focus_position(line, place), reach = line->rule.keys.reach, speed = hk_focus_speed(line, aim);
  const bool onward = line->rule.keys.travel == HK_FOCUS_ONWARD;
  const uint32_t first = first_at(line, onward && speed > 0 ? p : p - reach);
  uint32_t end = first_at(line, onward && speed < 0 ? p : p + reach);
  while (end < line->f.n && line->x[end] == (onward && speed < 0 ? p : p + reach))
    end++;
  return (struct hk_focus_view){ .first = first, .n = end > first ? end - first : 0 };
}

/* Rows from a place to a sensor. */
static double lag_of(const struct hk_focus_line *line, uint32_t aim, double p, uint32_t sensor)
{
  const double way = line->x[sensor] - p, speed = fabs(hk_focus_speed(line, aim));
  const double flow = line->rule.keys.flow;
  return round(fabs(way) / (way > 0 ? speed + flow : speed - flow) / line->rule.interval);
}

/* Fills the views without their lags, and counts these. Returns 0 or -EINVAL. */
static int make_views(struct hk_focus_line *line, struct hk_focus_view *view, char *error, size_t size)
{
  const uint32_t all = line->f.n * line->f.places;
  for (uint32_t a = 0; a < line->f.aims; a++)
    for (uint32_t p = 0; p < all; p++) {
      struct hk_focus_view *v = &view[(size_t)a * all + p];
      *v = view_of(line, a, p);
      v->at = (uint32_t)line->lags;
      line->lags += v->n;
      if (v->n > HK_FOCUS_REACH_MAX || line->lags > LAGS_MAX)
        return refuse(error, size, -EINVAL, "too many sensors are within `reach` of a place: a shorter reach is needed");
    }
  return 0;
}

/* Fills the lags, and finds the greatest. Returns 0 or -EINVAL. */
static int make_lags(struct hk_focus_line *line, const struct hk_focus_view *view, uint16_t *lag, char *error, size_t size)
{
  const uint32_t all = line->f.n * line->f.places;
  double most = 0;
  for (size_t i = 0; i < (size_t)line->f.aims * all; i++)
    for (uint32_t k = 0; k < view[i].n; k++) {
      const double rows = lag_of(line, (uint32_t)(i / all), hk_focus_position(line, (uint32_t)(i % all)), view[i].first + k);
      if (!(rows <= HK_FOCUS_LAG_MAX))
        return refuse(error, size, -EINVAL,
                      "a change takes over 4095 rows to cross `reach`: a longer interval, or a shorter reach, is needed");
      lag[view[i].at + k] = (uint16_t)rows;
      most = rows > most ? rows : most;
    }
  line->f.keep = (uint32_t)most;
  return 0;
}

static void make_near(const struct hk_focus_line *line, struct hk_focus_near *near)
{
  const double reach = line->rule.keys.reach;
  for (uint32_t j = 0; j < line->f.n; j++) {
    near[j].first = first_at(line, line->x[j] - reach);
    near[j].end = first_at(line, line->x[j] + reach);
    while (near[j].end < line->f.n && line->x[near[j].end] == line->x[j] + reach)
      near[j].end++;
  }
}

static int make_tables(struct hk_focus_line *line, char *error, size_t size)
{
  const size_t views = (size_t)line->f.aims * line->f.n * line->f.places;
  struct hk_focus_view *view = calloc(views, sizeof *view);
  struct hk_focus_near *near = calloc(line->f.n, sizeof *near);
  uint16_t *lag = NULL;
  line->f.view = view;
  line->f.near = near;
  int status = view && near ? make_views(line, view, error, size) : refuse(error, size, -ENOMEM, "out of memory");
  if (status == 0 && !(lag = malloc((line->lags + 1) * sizeof *lag)))
    status = refuse(error, size, -ENOMEM, "out of memory");
  line->f.lag = lag;
  if (status == 0)
    status = make_lags(line, view, lag, error, size);
  if (status == 0)
    make_near(line, near);
  return status;
}

/* --- life -------------------------------------------------------------------------------------------------------------- */

static uint32_t power(uint32_t least)
{
  uint32_t room = 1;
  while (room < least)
    room *= 2;
  return room;
}

/* Everything that the state depends on. */
static uint32_t mark_of(const struct hk_focus_line *line)
{
  const struct hk_focus_keys *k = &line->rule.keys;
  uint64_t hash = hk_state_mark_mix(HK_STATE_MARK_BEGIN, line->x, line->f.n * sizeof *line->x);
  hash = hk_state_mark_mix(hash, line->node, line->f.n * sizeof *line->node);
  hash = hk_state_mark_mix(hash, k->speed, k->speeds * sizeof *k->speed);
  const double real[] = { k->flow, k->reach, k->threshold, line->rule.interval };
  const uint32_t whole[] = { k->speeds, k->travel, k->block, k->places };
  hash = hk_state_mark_mix(hk_state_mark_mix(hash, real, sizeof real), whole, sizeof whole);
  return hk_state_mark_of(hash);
}

/* Columns of a line without points. */
static int make_columns(struct hk_focus *f)
{
  const size_t samples = (size_t)f->wide * f->past, changes = (size_t)f->wide * f->room;
  f->sample = malloc(samples * sizeof *f->sample);
  f->change = malloc(changes * sizeof *f->change);
  f->held = malloc(changes * sizeof *f->held);
  f->error = calloc(f->n, sizeof *f->error);
  f->errors = calloc(f->n, sizeof *f->errors);
  f->peak = calloc(f->n, sizeof *f->peak);
  f->now.strength = calloc((size_t)f->n * f->places, sizeof *f->now.strength);
  f->now.aimed = calloc((size_t)f->n * f->places, sizeof *f->now.aimed);
  f->now.top = calloc(f->n, sizeof *f->now.top);
  f->now.top_at = calloc(f->n, sizeof *f->now.top_at);
  f->now.value = calloc(f->n, sizeof *f->now.value);
  f->now.blamed = calloc(f->n, sizeof *f->now.blamed);
  if (!f->sample || !f->change || !f->held || !f->error || !f->errors || !f->peak || !f->now.strength || !f->now.aimed ||
      !f->now.top || !f->now.top_at || !f->now.value || !f->now.blamed)
    return -ENOMEM;
  for (size_t i = 0; i < samples; i++)
    f->sample[i] = NAN;
  for (size_t i = 0; i < changes; i++)
    f->change[i] = f->held[i] = NAN;
  for (uint32_t j = 0; j < f->n; j++) {
    f->peak[j] = (struct hk_focus_peak){ .now_at = HK_FOCUS_NONE, .before_at = HK_FOCUS_NONE };
    f->now.blamed[j] = HK_FOCUS_NONE;
  }
  return 0;
}

static int set_up_line(struct hk_focus_line *line, uint32_t n, const double *position, char *error, size_t size)
{
  const struct hk_focus_rule *r = &line->rule;
  struct hk_focus *f = &line->f;
  f->n = n;
  f->places = r->keys.places;
  f->aims = r->keys.speeds * (r->keys.travel == HK_FOCUS_ONWARD ? 2 : 1);
  f->block = r->keys.block;
  f->threshold = (float)r->keys.threshold;
  f->slowly = 1 - r->forget;
  line->x = malloc(n * sizeof *line->x);
  line->node = malloc(n * sizeof *line->node);
  line->rank = malloc(n * sizeof *line->rank);
  if (!line->x || !line->node || !line->rank || sort_sensors(line, position) != 0)
    return refuse(error, size, -ENOMEM, "out of memory");
  const int status = make_tables(line, error, size);
  if (status != 0)
    return status;
  f->period = f->keep > 0 ? 2 * f->keep : 1;
  f->room = power(f->keep + 2 + HK_FOCUS_AT_ONCE);
  f->past = power(2 * f->block);
  f->wide = ((n + 15) / 16 * 16) | 16; /* so that the rows of a column do not all fall on the same sets of a cache */
  f->step = 1;
  line->mark = mark_of(line);
  return make_columns(f) == 0 ? 0 : refuse(error, size, -ENOMEM, "out of memory");
}

int hk_focus_new(struct hk_focus_line **out, const struct hk_focus_rule *rule, uint32_t n, const double *position, char *error,
                 size_t size)
{
  if (n < HK_FOCUS_LEAST)
    return refuse(error, size, -EINVAL, "a line has at least 3 sensors");
  if ((uint64_t)n * rule->keys.places > HK_FOCUS_NONE / (2 * HK_FOCUS_SPEEDS_MAX) - 1)
    return refuse(error, size, -EINVAL, "too many places");
  struct hk_focus_line *line = calloc(1, sizeof *line);
  if (!line)
    return refuse(error, size, -ENOMEM, "out of memory");
  line->rule = *rule;
  const int status = set_up_line(line, n, position, error, size);
  if (status == 0)
    *out = line;
  else
    hk_focus_free(line);
  return status;
}

void hk_focus_free(struct hk_focus_line *line)
{
  if (!line)
    return;
  struct hk_focus *f = &line->f;
  free((void *)f->view);
  free((void *)f->lag);
  free((void *)f->near);
  free(f->sample);
  free(f->change);
  free(f->held);
  free(f->error);
  free(f->errors);
  free(f->peak);
  free(f->now.strength);
  free(f->now.aimed);
  free(f->now.top);
  free(f->now.top_at);
  free(f->now.value);
  free(f->now.blamed);
  free(line->x);
  free(line->node);
  free(line->rank);
  free(line);
}

/* Bytes of the columns of a sensor, and of the tables of a view. */
static uint64_t sensor_bytes(uint32_t past, uint32_t room, uint32_t places)
{
  return past * sizeof(double) + 2 * room * sizeof(float) + sizeof(struct hk_focus_peak) + sizeof(struct hk_focus_near) + 48 +
         8 * places;
}

uint64_t hk_focus_bytes(const struct hk_focus_line *line)
{
  const struct hk_focus *f = &line->f;
  return f->n * sensor_bytes(f->past, f->room, f->places) + (uint64_t)f->aims * f->n * f->places * sizeof(struct hk_focus_view) +
         line->lags * sizeof(uint16_t);
}

/* --- rows -------------------------------------------------------------------------------------------------------------- */

static struct hk_focus_find focus_find(const struct hk_focus *f, int64_t row)
{
  struct hk_focus_find found = { NAN, HK_FOCUS_NONE, HK_FOCUS_NONE };
  for (uint32_t j = 0; j < f->n; j++) {
    if (!(f->now.value[j] <= found.strongest) && !isnan(f->now.value[j]))
      found.strongest = f->now.value[j];
    if (hk_focus_finds(f, row, j) && (found.sensor == HK_FOCUS_NONE || f->now.value[j] > f->now.value[found.sensor]))
      found.sensor = j;
  }
  if (found.sensor != HK_FOCUS_NONE)
    found.at = f->now.top_at[found.sensor];
  return found;
}

void hk_focus_conclude(struct hk_focus_line *line, int64_t row, const struct hk_focus_find *find)
{
  const struct hk_focus *f = &line->f;
  struct hk_focus_found found = { .strongest = find->strongest, .sensor = find->sensor };
  if (find->sensor != HK_FOCUS_NONE) {
    found.changed = line->stands = true;
    found.position = hk_focus_position(line, find->at / f->aims);
    found.speed = hk_focus_speed(line, find->at % f->aims);
    line->since = row;
  } else if (line->stands && row - line->since >= 2 * (int64_t)f->period) {
    found.settled = true;
    line->stands = false;
  }
  line->found = found;
}

void hk_focus_row(struct hk_focus_line *line, int64_t row, const double *x)
{
  struct hk_focus *f = &line->f;
  for (uint32_t j = 0; j < f->n; j++)
    hk_focus_sense(f, row, x[j], j);
  for (uint32_t p = 0; p < f->n * f->places; p++)
    hk_focus_aim(f, row, p);
  for (uint32_t j = 0; j < f->n; j++)
    hk_focus_gather(f, row, j);
  for (uint32_t j = 0; j < f->n; j++)
    hk_focus_judge(f, row, j);
  const struct hk_focus_find found = focus_find(f, row);
  hk_focus_conclude(line, row, &found);
  f->any = true;
  f->row = row;
}

/* --- state ------------------------------------------------------------------------------------------------------------- */

/* Numbers have the representation of memory, little-endian. Behind it, of each sensor: 2 block - 1 values, `keep` d and
 * `keep` + 2 strengths, each from the oldest row to the newest; then error and errors; then peak. */
struct head {
  uint32_t n, mark, any, stands;
  int64_t row, since;
};
_Static_assert(sizeof(struct head) == 32, "no padding");

struct kept {
  float error;
  uint32_t errors;
  struct hk_focus_peak peak;
};
_Static_assert(sizeof(struct kept) == 24, "no padding");

static uint32_t samples_of(const struct hk_focus *f)
{
  return 2 * f->block - 1;
}

/* Bytes of a sensor's d and strengths. */
static size_t rows_size(const struct hk_focus *f)
{
  return 2 * (f->keep + 1) * sizeof(float);
}

size_t hk_focus_state_size(const struct hk_focus_line *line)
{
  const struct hk_focus *f = &line->f;
  return sizeof(struct head) + f->n * (samples_of(f) * sizeof(double) + rows_size(f) + sizeof(struct kept));
}

void hk_focus_write(const struct hk_focus_line *line, void *state)
{
  const struct hk_focus *f = &line->f;
  const struct head head = { .n = f->n,
                             .mark = line->mark,
                             .any = f->any,
                             .stands = line->stands,
                             .row = f->any ? f->row : 0,
                             .since = line->stands ? line->since : 0 };
  uint8_t *at = state;
  memset(at, 0, hk_focus_state_size(line));
  memcpy(at, &head, sizeof head);
  at += sizeof head;
  for (uint32_t j = 0; j < f->n; j++) {
    const struct kept kept = { f->error[j], f->errors[j], f->peak[j] };
    for (uint32_t k = samples_of(f); k > 0; k--, at += sizeof(double))
      memcpy(at, &f->sample[hk_focus_at(f, f->past, head.row + 1 - k, j)], sizeof(double));
    for (uint32_t k = f->keep; k > 0; k--, at += sizeof(float))
      memcpy(at, &f->change[hk_focus_at(f, f->room, head.row + 1 - k, j)], sizeof(float));
    for (uint32_t k = f->keep + 2; k > 0; k--, at += sizeof(float))
      memcpy(at, &f->held[hk_focus_at(f, f->room, head.row + 1 - k, j)], sizeof(float));
    memcpy(at, &kept, sizeof kept);
    at += sizeof kept;
  }
}

/* Whether the remembered greatest value of a sensor is possible. */
static bool is_peak(const struct hk_focus *f, uint32_t j, float value, uint32_t at)
{
  const uint32_t of = f->places * f->aims;
  return at == HK_FOCUS_NONE ? value == 0 : value > 0 && value <= HK_FOCUS_BOUND * STRONGEST && at / of == j;
}

/* Whether a sensor's rows are possible. */
static bool are_rows(const struct hk_focus *f, uint32_t j)
{
  const float most = HK_FOCUS_BOUND * STRONGEST;
  bool good = true;
  for (uint32_t k = 0; k < f->past; k++)
    good &= !(fabs(f->sample[hk_focus_at(f, f->past, k, j)]) > VALUE_MAX);
  for (uint32_t k = 0; k < f->room; k++) {
    const float change = f->change[hk_focus_at(f, f->room, k, j)], held = f->held[hk_focus_at(f, f->room, k, j)];
    good &= !(fabsf(change) > HK_FOCUS_BOUND) && !(held < 0 || held > most);
  }
  return good;
}

static bool is_kept(const struct hk_focus *f, uint32_t j, const struct kept *k)
{
  return k->error >= 0 && (double)k->error <= 10 * VALUE_MAX && is_peak(f, j, k->peak.now, k->peak.now_at) &&
         is_peak(f, j, k->peak.before, k->peak.before_at);
}

static bool is_head(const struct head *h)
{
  const bool row = h->any ? h->row <= ROW_MAX && h->row >= -ROW_MAX : h->row == 0;
  return h->any <= 1 && h->stands <= h->any && row && (h->stands ? h->since <= h->row && h->since >= -ROW_MAX : h->since == 0);
}

int hk_focus_read(struct hk_focus_line *line, const void *state, size_t size)
{
  struct hk_focus *f = &line->f;
  const uint8_t *at = state;
  struct head head;
  if (size < sizeof head)
    return -EBADMSG;
  memcpy(&head, at, sizeof head);
  if (head.n != f->n || head.mark != line->mark)
    return -EINVAL;
  if (size != hk_focus_state_size(line) || !is_head(&head))
    return -EBADMSG;
  at += sizeof head;
  for (uint32_t j = 0; j < f->n; j++) {
    struct kept kept;
    for (uint32_t k = samples_of(f); k > 0; k--, at += sizeof(double))
      memcpy(&f->sample[hk_focus_at(f, f->past, head.row + 1 - k, j)], at, sizeof(double));
    for (uint32_t k = f->keep; k > 0; k--, at += sizeof(float))
      memcpy(&f->change[hk_focus_at(f, f->room, head.row + 1 - k, j)], at, sizeof(float));
    for (uint32_t k = f->keep + 2; k > 0; k--, at += sizeof(float))
      memcpy(&f->held[hk_focus_at(f, f->room, head.row + 1 - k, j)], at, sizeof(float));
    memcpy(&kept, at, sizeof kept);
    at += sizeof kept;
    if (!is_kept(f, j, &kept) || !are_rows(f, j))
      return -EBADMSG;
    f->error[j] = kept.error;
    f->errors[j] = kept.errors;
    f->peak[j] = kept.peak;
  }
  line->stands = head.stands;
  line->since = head.since;
  f->any = head.any;
  f->row = head.row;
  return 0;
}
