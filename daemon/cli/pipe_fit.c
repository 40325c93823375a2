/* Fits of lines and networks of pipes: see pipe_fit.h. */
#include "daemon/cli/pipe_fit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 15
#define FRICTION_FIRST 2 /* steps, so that the spreads are those of noise when it is asked whether the wave speed is seen */
#define STEP_MAX 0.3     /* of a logarithm */
#define STEP_LEAST 1e-4
#define DELTA 1e-3 /* of a logarithm, for derivatives */
#define HUBER 1.345
#define SCALE_LEAST 1e-12         /* of differences, in a sensor's unit */
#define NORMAL 1.4826022185056018 /* standard deviation of a normal variable over its median distance from 0 */
#define TRANSITS 3                /* rows of a block are at least so many */
#define BLOCKS_MAX 50
#define NOISE_ROWS 4000

/* The recording shows a number if it changes the checks, in squares, so many times as much as the noise of the boundaries
 * alone does. On simulated lines friction was wrong by 6 % at 740 (a flow of 0.1 m/s) and by 0.3 % at 90,000; for the wave
 * speed, recordings without waves reached 1.8 at most, and those with pumps that are moved at least 10. */
static const double NOISES[HK_FIT_NUMBERS] = { 2000, 5 };

/* The state of a fit. */
struct fitting {
  const char *text;
  size_t length;
  const struct hk_fit_rows *rows;
  const struct hk_model_plan *plan; /* of the file */
  double *nu[1 + HK_FIT_NUMBERS];   /* as rows->value: at the current numbers, and with each number increased a little */
  double *sorted, *scale;           /* by row; by sensor */
  double log[HK_FIT_NUMBERS];       /* logarithms of the numbers to be found */
  bool seen[HK_FIT_NUMBERS];
  uint64_t block; /* rows of a block */
  uint32_t blocks, passes;
  void (*tell)(void *arg, double share);
  void *arg;
  char *error;
  size_t size;
};

/* --- the text ----------------------------------------------------------------------------------------------------------- */

static bool pipe_fit_is_blank(char c)
{
  return c == ' ' || c == '\t' || c == '\r';
}

static size_t pipe_fit_put(char *out, size_t at, size_t room, const char *text, size_t length)
{
  if (length > 0 && at + length <= room)
    memcpy(out + at, text, length);
  return at + length;
}

/* Copies the line text..end without its end, with words 5 and 6 of a pipe multiplied. Returns the place in `out` after it. */
static size_t put_line(char *out, size_t at, size_t room, const char *text, const char *end, const double times[HK_FIT_NUMBERS])
{
  bool pipe = false;
  for (uint32_t word = 0; text < end && *text != '#'; word++) {
    const char *from = text;
    while (text < end && pipe_fit_is_blank(*text))
      text++;
    at = pipe_fit_put(out, at, room, from, (size_t)(text - from));
    from = text;
    while (text < end && !pipe_fit_is_blank(*text) && *text != '#')
      text++;
    const size_t length = (size_t)(text - from);
    char number[64];
    pipe = word == 0 ? length == 4 && memcmp(from, "edge", 4) == 0 : pipe;
    if (pipe && (word == 5 || word == 6) && length > 0 && length < sizeof number) {
      memcpy(number, from, length);
      number[length] = 0;
      snprintf(number, sizeof number, "%.8g", strtod(number, NULL) * times[word == 5 ? HK_FIT_FRICTION : HK_FIT_WAVE]);
      at = pipe_fit_put(out, at, room, number, strlen(number));
    } else {
      at = pipe_fit_put(out, at, room, from, length);
    }
  }
  return pipe_fit_put(out, at, room, text, (size_t)(end - text));
}

/* Whether a line of the text begins a line of pipes. */
static bool begins_line(const char *text, const char *end)
{
  while (text < end && pipe_fit_is_blank(*text))
    text++;
  return end - text > 4 && memcmp(text, "line", 4) == 0 && pipe_fit_is_blank(text[4]);
}

static size_t pipe_fit_put_text(char *out, size_t room, const char *text, size_t length, const double (*times)[HK_FIT_NUMBERS])
{
  size_t at = 0;
  bool first = true;
  for (const char *end = text + length; text < end;) {
    const char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline : end;
    if (begins_line(text, stop)) {
      times += !first; /* text before the first one belongs to it, or there is only one */
      first = false;
    }
    at = put_line(out, at, room, text, stop, *times);
    at = newline ? pipe_fit_put(out, at, room, "\n", 1) : at;
    text = newline ? newline + 1 : end;
  }
  return at;
}

char *hk_fit_text(const char *text, size_t length, const double (*times)[HK_FIT_NUMBERS], size_t *out_length)
{
  *out_length = pipe_fit_put_text(NULL, 0, text, length, times);
  char *out = malloc(*out_length + 1);
  if (out)
    out[pipe_fit_put_text(out, *out_length, text, length, times)] = 0;
  return out;
}

char *hk_fit_line(const char *text, size_t length, uint32_t line)
{
  char *out = malloc(length + 1), *to = out;
  uint32_t now = 0; /* 1 + the number of the line */
  for (const char *end = text + length; out && text < end;) {
    const char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline + 1 : end;
    now += begins_line(text, stop);
    if (now == 0 || now == line + 1) {
      memcpy(to, text, (size_t)(stop - text));
      to += stop - text;
    } else if (newline) {
      *to++ = '\n';
    }
    text = stop;
  }
  if (out)
    *to = 0;
  return out;
}

/* --- passes through a recording ----------------------------------------------------------------------------------------- */

static int pipe_fit_fail(const struct fitting *f, const char *why)
{
  snprintf(f->error, f->size, "%s", why);
  return -EINVAL;
}

/* The plan with the numbers of the fit, number `more` increased a little; HK_FIT_NUMBERS: none. */
static int pipe_fit_make_plan(const struct fitting *f, uint32_t more, const struct hk_model_plan **out)
{
  double times[1][HK_FIT_NUMBERS];
  char why[256];
  size_t length;
  for (uint32_t i = 0; i < HK_FIT_NUMBERS; i++)
    times[0][i] = exp(f->log[i] + (i == more ? DELTA : 0));
  char *text = hk_fit_text(f->text, f->length, (const double(*)[HK_FIT_NUMBERS])times, &length);
  const int status = text ? hk_model_plan_parse(out, text, length, why, sizeof why) : -ENOMEM;
  free(text);
  if (status == -EINVAL)
    snprintf(f->error, f->size, "the fitted factors are out of range for a model file: %s", why);
  return status;
}

/* The differences of the checks in each row. */
static int pipe_fit_pass(struct fitting *f, uint32_t more, const struct hk_fit_rows *rows, double *nu)
{
  const struct hk_model_rule rule = { .interval = rows->interval, .clip = 1, .hold = HK_PIPE_FIT_HOLD };
  const struct hk_model_plan *plan = NULL;
  struct hk_model *model = NULL;
  const struct hk_pipelines_place host = { &hk_pipelines_host, 1 };
  char why[128];
  int status = pipe_fit_make_plan(f, more, &plan);
  status = status ? status : hk_model_new(&model, plan, &rule, &host, why, sizeof why);
  for (uint64_t row = 0; row < rows->rows && status == 0; row++) {
    const double *now = hk_model_row(model, (int64_t)row, rows->value + row * rows->sensors);
    if (hk_model_turn_of(model, 0) == HK_MODEL_UNSOLVED)
      status = pipe_fit_fail(f, "it cannot be solved along this recording");
    memcpy(nu + row * rows->sensors, now, rows->sensors * sizeof *now);
  }
  hk_model_free(model);
  hk_model_plan_release(plan);
  if (f->tell)
    f->tell(f->arg, fmin(0.99, ++f->passes / 24.0));
  return status;
}

static int pipe_fit_compare(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median of |nu - from| of a sensor, over the rows that have it; NaN: no row has. */
static double median_distance(struct fitting *f, const double *nu, uint32_t sensor, double from)
{
  uint64_t n = 0;
  for (uint64_t row = 0; row < f->rows->rows; row++) {
    const double v = nu[row * f->rows->sensors + sensor];
    if (!isnan(v))
      f->sorted[n++] = fabs(v - from);
  }
  qsort(f->sorted, n, sizeof *f->sorted, pipe_fit_compare);
  return n > 0 ? f->sorted[n / 2] : NAN;
}

/* --- steps -------------------------------------------------------------------------------------------------------------- */

/* The normal equations of the weighted differences, and the squares of the blocks' parts of their right side. */
struct equations {
  double matrix[2][2], right[2];
  double squares[2][2];
  double energy[2]; /* squares of the derivatives */
  uint64_t values;
};
_Static_assert(HK_FIT_NUMBERS == 2, "two unknowns");

static void add_block(struct equations *e, const double block[2])
{
  for (uint32_t i = 0; i < 2; i++)
    for (uint32_t k = 0; k < 2; k++)
      e->squares[i][k] += block[i] * block[k];
}

static struct equations make_equations(const struct fitting *f)
{
  const uint32_t sensors = f->rows->sensors;
  struct equations e = { 0 };
  double block[2] = { 0, 0 };
  for (uint64_t at = 0; at < f->rows->rows * sensors; at++) {
    const double r = f->nu[0][at] / f->scale[at % sensors], w = fabs(r) > HUBER ? HUBER / fabs(r) : 1;
    double by[2];
    if (at % (f->block * sensors) == 0 && at > 0) {
      add_block(&e, block);
      block[0] = block[1] = 0;
    }
    for (uint32_t i = 0; i < 2; i++) /* the model's, not the difference's */
      by[i] = (f->nu[0][at] - f->nu[1 + i][at]) / DELTA / f->scale[at % sensors];
    if (isnan(r) || isnan(by[0]) || isnan(by[1]))
      continue;
    e.values++;
    for (uint32_t i = 0; i < 2; i++) {
      e.energy[i] += by[i] * by[i];
      e.right[i] += w * by[i] * r;
      block[i] += w * by[i] * r;
      for (uint32_t k = 0; k < 2; k++)
        e.matrix[i][k] += w * by[i] * by[k];
    }
  }
  add_block(&e, block);
  return e;
}

/* The inverse for the numbers that are seen; zeros elsewhere. */
static void invert(const struct fitting *f, const double m[2][2], double out[2][2])
{
  const double whole = m[0][0] * m[1][1] - m[0][1] * m[1][0];
  memset(out, 0, 4 * sizeof out[0][0]);
  if (f->seen[0] && f->seen[1]) {
    out[0][0] = m[1][1] / whole;
    out[1][1] = m[0][0] / whole;
    out[0][1] = out[1][0] = -m[0][1] / whole;
  } else {
    for (uint32_t i = 0; i < 2; i++)
      out[i][i] = f->seen[i] ? 1 / m[i][i] : 0;
  }
}

/* Standard errors of the logarithms. */
static void find_errors(const struct fitting *f, const struct equations *e, double out[2])
{
  double inverse[2][2];
  invert(f, e->matrix, inverse);
  for (uint32_t i = 0; i < 2; i++) {
    double sum = 0;
    for (uint32_t k = 0; k < 2; k++)
      for (uint32_t l = 0; l < 2; l++)
        sum += inverse[i][k] * e->squares[k][l] * inverse[l][i];
    out[i] = f->seen[i] ? sqrt(sum * f->blocks / (f->blocks - 2)) : NAN;
  }
}

/* Makes the passes at the current numbers and near them, and computes the spreads of the differences. */
static int pipe_fit_look(struct fitting *f)
{
  int status = pipe_fit_pass(f, HK_FIT_NUMBERS, f->rows, f->nu[0]);
  for (uint32_t i = 0; i < HK_FIT_NUMBERS && status == 0; i++)
    status = pipe_fit_pass(f, i, f->rows, f->nu[1 + i]);
  for (uint32_t i = 0; i < f->rows->sensors && status == 0; i++)
    f->scale[i] = fmax(SCALE_LEAST, NORMAL * median_distance(f, f->nu[0], i, 0)); /* fmax: NaN is less */
  return status;
}

/* Makes one step. True: it was so small that it is the last. */
static bool go(struct fitting *f, const struct equations *e)
{
  double inverse[2][2], largest = 0;
  invert(f, e->matrix, inverse);
  for (uint32_t i = 0; i < 2; i++) {
    const double step = inverse[i][0] * e->right[0] + inverse[i][1] * e->right[1];
    f->log[i] += fmax(-STEP_MAX, fmin(STEP_MAX, step));
    largest = fmax(largest, fabs(step));
  }
  return !(largest > STEP_LEAST);
}

/* --- what is seen ------------------------------------------------------------------------------------------------------- */

static double pipe_fit_normal(unsigned short chance[3])
{
  const double a = 1 - erand48(chance), b = erand48(chance);
  return sqrt(-2 * log(a)) * cos(2 * 3.14159265358979323846 * b);
}

/* The level of a boundary, and the noise of its values from second differences, to which moves contribute little. */
static void find_noise(struct fitting *f, uint32_t sensor, double *level, double *noise)
{
  const struct hk_fit_rows *r = f->rows;
  uint64_t n = 0, levels = 0;
  for (uint64_t row = 0; row < r->rows; row++)
    if (!isnan(r->value[row * r->sensors + sensor]))
      f->sorted[levels++] = r->value[row * r->sensors + sensor];
  qsort(f->sorted, levels, sizeof *f->sorted, pipe_fit_compare);
  *level = levels > 0 ? f->sorted[levels / 2] : 0;
  for (uint64_t row = 2; row < r->rows; row++) {
    const double *v = r->value + row * r->sensors + sensor,
                 second = v[0] - 2 * v[-(ptrdiff_t)r->sensors] + v[-2 * (ptrdiff_t)r->sensors];
    if (!isnan(second))
      f->sorted[n++] = fabs(second);
  }
  qsort(f->sorted, n, sizeof *f->sorted, pipe_fit_compare);
  *noise = n > 0 ? NORMAL * f->sorted[n / 2] / sqrt(6) : 0;
}

/* The mean square of the derivatives of the checks, each minus its mean, from all differences and from those with a number
 * increased a little. */
static double spread_of_derivatives(const struct fitting *f, const double *nu, const double *more, uint64_t all)
{
  double squares = 0, values = 0;
  for (uint32_t i = 0; i < f->rows->sensors; i++) {
    double mean = 0, n = 0;
    for (uint64_t at = i; at < all; at += f->rows->sensors) {
      const double by = (nu[at] - more[at]) / DELTA / f->scale[i];
      if (isnan(by))
        continue;
      const double away = by - mean;
      mean += away / ++n;
      squares += away * (by - mean);
    }
    values += n;
  }
  return values > 0 ? squares / values : 0;
}

/* How much the noise of the boundaries alone changes the checks by each number, per value and in squares. */
static int find_quiver(struct fitting *f, double out[HK_FIT_NUMBERS])
{
  const uint32_t sensors = f->rows->sensors;
  const uint64_t n = f->rows->rows < NOISE_ROWS ? f->rows->rows : NOISE_ROWS, all = n * sensors;
  unsigned short chance[3] = { 1, 2, 3 };
  const struct hk_model_line *line = f->plan->line;
  double *level = calloc(2 * (size_t)line->boundaries, sizeof *level), *noise = level ? level + line->boundaries : NULL,
         *value = calloc(all, sizeof *value), *nu = calloc(2 * all, sizeof *nu);
  const struct hk_fit_rows still = { sensors, n, f->rows->interval, value };
  int status = level && value && nu ? 0 : -ENOMEM;
  for (uint32_t k = 0; k < line->boundaries && status == 0; k++)
    find_noise(f, line->boundary[k], &level[k], &noise[k]);
  for (uint64_t row = 0; row < n && status == 0; row++)
    for (uint32_t k = 0; k < line->boundaries; k++)
      value[row * sensors + line->boundary[k]] = level[k] + noise[k] * pipe_fit_normal(chance);
  status = status ? status : pipe_fit_pass(f, HK_FIT_NUMBERS, &still, nu);
  for (uint32_t i = 0; i < HK_FIT_NUMBERS && status == 0; i++) {
    status = pipe_fit_pass(f, i, &still, nu + all);
    out[i] = status == 0 ? spread_of_derivatives(f, nu, nu + all, all) : 0;
  }
  free(level);
  free(value);
  free(nu);
  return status;
}

/* Determines which numbers the recording shows, from the equations at the end of the previous steps. */
static int find_seen(struct fitting *f, const struct equations *e)
{
  double quiver[HK_FIT_NUMBERS];
  const int status = find_quiver(f, quiver);
  for (uint32_t i = 0; i < HK_FIT_NUMBERS && status == 0; i++)
    f->seen[i] = e->matrix[i][i] >= HK_MODEL_SEEN && e->energy[i] / (double)e->values >= NOISES[i] * quiver[i];
  return status;
}

/* --- the whole ---------------------------------------------------------------------------------------------------------- */

static struct hk_fit_check *pipe_fit_judge(struct fitting *f, const double *nu)
{
  const struct hk_fit_rows *r = f->rows;
  struct hk_fit_check *out = calloc(r->sensors, sizeof *out);
  for (uint32_t i = 0; i < r->sensors && out; i++) {
    double sum = 0, squares = 0, level = 0, moves = 0, n = 0;
    for (uint64_t at = i; at < r->rows * r->sensors; at += r->sensors) {
      if (isnan(nu[at]))
        continue;
      n++;
      const double off = nu[at] - sum, away = r->value[at] - level;
      sum += off / n;
      squares += off * (nu[at] - sum);
      level += away / n;
      moves += away * (r->value[at] - level);
    }
    out[i] =
        (struct hk_fit_check){ sum, NORMAL * median_distance(f, nu, i, sum), moves > 0 ? 1 - squares / moves : NAN, (uint64_t)n };
  }
  return out;
}

/* Fits the numbers that are seen, starting from the file's. */
static int search(struct fitting *f, struct hk_fit *out, struct equations *e)
{
  int status = pipe_fit_look(f);
  if (status == 0 && !(out->before = pipe_fit_judge(f, f->nu[0])))
    status = -ENOMEM;
  for (bool last = false; status == 0 && !last && out->steps < STEPS_MAX; out->steps++) {
    *e = make_equations(f);
    if (e->values < 100)
      return pipe_fit_fail(f, "too few rows can be compared: a model has no values for three transits of a wave after its start");
    if (out->steps < FRICTION_FIRST)
      f->seen[HK_FIT_FRICTION] = e->matrix[0][0] > 0;
    else if (out->steps == FRICTION_FIRST)
      status = find_seen(f, e);
    last = go(f, e) && out->steps >= FRICTION_FIRST;
    status = status ? status : pipe_fit_look(f);
  }
  if (status == 0)
    *e = make_equations(f);
  return status;
}

static int open_fitting(struct fitting *f)
{
  const size_t n = f->rows->rows * f->rows->sensors;
  bool there = true;
  for (uint32_t i = 0; i < 1 + HK_FIT_NUMBERS; i++)
    there &= (f->nu[i] = malloc((n + 1) * sizeof *f->nu[i])) != NULL;
  f->sorted = malloc((f->rows->rows + 1) * sizeof *f->sorted);
  f->scale = calloc(f->rows->sensors, sizeof *f->scale);
  const double transits = TRANSITS * f->plan->line->transit / f->rows->interval, most = (double)f->rows->rows / BLOCKS_MAX;
  f->block = (uint64_t)fmax(1, fmax(transits, most));
  f->blocks = (uint32_t)(f->rows->rows / f->block);
  if (!there || !f->sorted || !f->scale)
    return -ENOMEM;
  if (f->blocks >= HK_PIPE_FIT_BLOCKS)
    return 0;
  snprintf(f->error, f->size, "too short: %.3g s, and %.3g s at least are needed, %d times what a wave takes from end to end",
           (double)f->rows->rows * f->rows->interval, HK_PIPE_FIT_BLOCKS * TRANSITS * f->plan->line->transit,
           HK_PIPE_FIT_BLOCKS * TRANSITS);
  return -EINVAL;
}

int hk_fit_run(struct hk_fit *out, const char *text, size_t length, const struct hk_fit_rows *rows, void (*tell)(void *, double),
               void *arg, char *error, size_t size)
{
  struct fitting f = { .text = text, .length = length, .rows = rows, .tell = tell, .arg = arg, .error = error, .size = size };
  struct equations e;
  *out = (struct hk_fit){ 0 };
  int status = pipe_fit_make_plan(&f, HK_FIT_NUMBERS, &f.plan);
  status = status ? status : open_fitting(&f);
  status = status ? status : search(&f, out, &e);
  if (status == 0 && !(out->after = pipe_fit_judge(&f, f.nu[0])))
    status = -ENOMEM;
  if (status == 0)
    find_errors(&f, &e, out->error);
  for (uint32_t i = 0; i < HK_FIT_NUMBERS && status == 0; i++) {
    out->seen[i] = f.seen[i] && out->error[i] <= HK_PIPE_FIT_ERROR;
    out->times[i] = out->seen[i] ? exp(f.log[i]) : 1;
  }
  out->blocks = f.blocks;
  for (uint32_t i = 0; i < 1 + HK_FIT_NUMBERS; i++)
    free(f.nu[i]);
  free(f.sorted);
  free(f.scale);
  hk_model_plan_release(f.plan);
  if (status == -ENOMEM)
    snprintf(error, size, "out of memory");
  if (status != 0)
    hk_fit_close(out);
  return status;
}

void hk_fit_close(struct hk_fit *fit)
{
  free(fit->before);
  free(fit->after);
  fit->before = fit->after = NULL;
}
