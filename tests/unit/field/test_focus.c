/* Focus: strengths against plain loops in double, planted changes with place, time and direction, missing sensors, states. */
#include "cpu/field/binding.h"
#include "cpu/field/count.h"
#include "cpu/field/focus.h"
#include "cpu/field/residual.h"
#include "cpu/field/state.h"
#include "tests/unit/support/noise.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

#define SENSORS 24
#define ROWS 700
#define BEGINS 300 /* row in which a change begins */

static double position[SENSORS], value[ROWS][SENSORS]; /* sensors in the order of the line */
/* Sensors 100 apart, more or less, with noise of spreads that differ. */
static void quiet(uint64_t number)
{
  seed = number;
  for (uint32_t j = 0; j < SENSORS; j++)
    position[j] = 100 * j + 30 * uniform();
  for (uint32_t t = 0; t < ROWS; t++)
    for (uint32_t j = 0; j < SENSORS; j++)
      value[t][j] = 1e3 + (1 + j % 3) * noise();
}

/* Adds a step of `size` spreads that arrives at each sensor by its way; direction 0: outward. */
static void plant(double place, double up, double down, int direction, double size)
{
  for (uint32_t j = 0; j < SENSORS; j++) {
    const double way = position[j] - place;
    const int64_t arrives = BEGINS + (int64_t)round(fabs(way) / (way > 0 ? up : down) / 0.1);
    for (int64_t t = arrives; t < ROWS && way * direction >= 0; t++)
      value[t][j] += size * (1 + j % 3);
  }
}

static struct hk_focus_rule rule_of(uint32_t travel)
{
  const struct hk_focus_keys keys = {
    .speed = { 200 }, .speeds = 1, .travel = travel, .reach = 1000, .threshold = 6, .block = 8, .places = 3
  };
  return (struct hk_focus_rule){ .keys = keys, .interval = 0.1, .forget = 0.999f };
}

static struct hk_focus_line *line_of(const struct hk_focus_rule *rule)
{
  struct hk_focus_line *line;
  char error[256];
  assert_int_equal(hk_focus_new(&line, rule, SENSORS, position, error, sizeof error), 0);
  return line;
}

/* The changes found: the last one, and their number. */
struct heard {
  uint32_t changes, settled, values;
  int64_t row;
  struct hk_focus_found last;
};

static struct heard run(struct hk_focus_line *line, uint32_t from, uint32_t to)
{
  struct heard h = { 0 };
  for (uint32_t t = from; t < to; t++) {
    hk_focus_row(line, t, value[t]);
    h.settled += line->found.settled;
    for (uint32_t j = 0; j < SENSORS; j++)
      h.values += !isnan(line->f.now.value[j]);
    if (!line->found.changed)
      continue;
    h.changes++;
    h.row = (int64_t)t - hk_focus_delay(&line->f);
    h.last = line->found;
  }
  return h;
}

/* --- against plain loops --------------------------------------------------------------------------------------------- */

static double d_of[ROWS][SENSORS];

/* d of all rows, by the definition. */
static void define(void)
{
  for (uint32_t j = 0; j < SENSORS; j++) {
    double c = 0;
    uint32_t n = 0;
    for (int t = 0; t < ROWS; t++) {
      double sum[2] = { 0 };
      uint32_t there[2] = { 0 };
      for (int k = 0; k < 16; k++)
        if (t - k >= 0 && !isnan(value[t - k][j])) {
          sum[k / 8] += value[t - k][j];
          there[k / 8]++;
        }
      d_of[t][j] = NAN;
      if (there[0] < 4 || there[1] < 4)
        continue;
      const double e = sum[0] / there[0] - sum[1] / there[1];
      if (n >= HK_FOCUS_SETTLE)
        d_of[t][j] = e / (sqrt(acos(-1) / 2) * c + fabs(e) / 8);
      n++;
      const double size = n > HK_FOCUS_SETTLE ? fmin(fabs(e), 5 * c) : fabs(e);
      c += (size - c) * (n > HK_FOCUS_SETTLE ? fmax(1.0 / n, 0.001) : 1.0 / n);
    }
  }
}

/* The greatest F of a sensor's places in a row. */
static double strongest(const struct hk_focus_line *line, int64_t row, uint32_t j, double most)
{
  double best = NAN;
  for (uint32_t p = 3 * j; p < 3 * j + 3; p++) {
    const double at = hk_focus_position(line, p);
    double sum = 0;
    uint32_t all = 0, n = 0;
    for (uint32_t k = 0; k < SENSORS; k++) {
      if (fabs(position[k] - at) > 1000)
        continue;
      const int64_t when = row - (int64_t)(most - round(fabs(position[k] - at) / 200 / 0.1));
      all++;
      if (when < 0 || isnan(d_of[when][k]))
        continue;
      sum += d_of[when][k];
      n++;
    }
    if (n >= 3 && 2 * n >= all && !(fabs(sum) / sqrt(n) <= best))
      best = fabs(sum) / sqrt(n);
  }
  return best;
}

static void test_against_plain_loops(void **state)
{
  (void)state;
  const struct hk_focus_rule rule = rule_of(HK_FOCUS_OUTWARD);
  uint32_t compared = 0, none = 0;
  quiet(1);
  plant(1234, 200, 200, 0, 2);
  for (uint32_t t = 0; t < ROWS; t++)
    for (uint32_t j = 0; j < SENSORS; j++)
      if (uniform() < 0.1 || (j > 14 && t > 400 && t < 470))
        value[t][j] = NAN;
  define();
  struct hk_focus_line *line = line_of(&rule);
  for (uint32_t t = 0; t < ROWS; t++) {
    hk_focus_row(line, t, value[t]);
    for (uint32_t j = 0; j < SENSORS; j++) {
      const double want = strongest(line, (int64_t)t - line->f.keep, j, line->f.keep), got = (double)line->f.now.value[j];
      assert_int_equal(isnan(want), isnan(got));
      none += isnan(want);
      compared += !isnan(want);
      if (!isnan(want))
        assert_true(fabs(got - want) < 1e-4 * (1 + want));
    }
  }
  assert_true(compared > 5000 && none > 3000);
  hk_focus_free(line);
}

/* --- planted changes --------------------------------------------------------------------------------------------------- */

static void test_outward(void **state)
{
  (void)state;
  struct hk_focus_rule rule = rule_of(HK_FOCUS_OUTWARD);
  for (uint32_t number = 1; number <= 5; number++) {
    const double place = 500 + 300 * number;
    quiet(number);
    struct hk_focus_line *line = line_of(&rule);
    assert_int_equal(run(line, 0, ROWS).changes, 0);
    hk_focus_free(line);
    plant(place, 200, 200, 0, number % 2 ? 2 : -2);
    line = line_of(&rule);
    const struct heard h = run(line, 0, ROWS);
    assert_int_equal(h.changes, 1);
    assert_int_equal(h.settled, 1);
    assert_true(fabs(h.last.position - place) < 60);
    assert_true(llabs(h.row - BEGINS) <= 2);
    assert_true(h.last.strongest > 8 && h.last.speed == 200);
    assert_int_equal(h.last.sensor, hk_focus_nearest(line, h.last.position));
    hk_focus_free(line);
  }
}

static void test_flow_and_speed(void **state)
{
  (void)state;
  struct hk_focus_rule rule = rule_of(HK_FOCUS_OUTWARD);
  quiet(3);
  plant(1000, 260, 140, 0, 2);
  rule.keys.flow = 60;
  rule.keys.speed[1] = 400;
  rule.keys.speeds = 2;
  struct hk_focus_line *line = line_of(&rule);
  const struct heard h = run(line, 0, ROWS);
  assert_int_equal(h.changes, 1);
  assert_true(fabs(h.last.position - 1000) < 60 && h.last.speed == 200);
  hk_focus_free(line);
}

static void test_onward(void **state)
{
  (void)state;
  const struct hk_focus_rule rule = rule_of(HK_FOCUS_ONWARD);
  for (int direction = -1; direction <= 1; direction += 2) {
    quiet(4);
    plant(1000, 200, 200, direction, 2.5);
    struct hk_focus_line *line = line_of(&rule);
    const struct heard h = run(line, 0, ROWS);
    assert_int_equal(h.changes, 1);
    assert_true(fabs(h.last.position - 1000) < 350);
    assert_true(h.last.speed == 200 * direction);
    hk_focus_free(line);
  }
}

/* A change of one sensor, however large, is no travelling change; nor is one that all have at once. */
static void test_what_does_not_travel(void **state)
{
  (void)state;
  const struct hk_focus_rule rule = rule_of(HK_FOCUS_OUTWARD);
  quiet(5);
  for (uint32_t t = 0; t < ROWS; t++)
    value[t][9] += t >= 300 ? 1e6 : 0;
  struct hk_focus_line *line = line_of(&rule);
  assert_int_equal(run(line, 0, ROWS).changes, 0);
  hk_focus_free(line);
  quiet(5);
  for (uint32_t t = 300; t < ROWS; t++)
    for (uint32_t j = 0; j < SENSORS; j++)
      value[t][j] += 2 * (1 + j % 3);
  line = line_of(&rule);
  assert_int_equal(run(line, 0, ROWS).changes, 0);
  hk_focus_free(line);
}

/* Sensors that are silent, rows that are missing. */
static void test_missing(void **state)
{
  (void)state;
  const struct hk_focus_rule rule = rule_of(HK_FOCUS_OUTWARD);
  quiet(6);
  plant(1300, 200, 200, 0, 3);
  for (uint32_t t = 0; t < ROWS; t++)
    for (uint32_t j = 0; j < SENSORS; j += 3)
      value[t][j] = NAN;
  struct hk_focus_line *line = line_of(&rule);
  const struct heard h = run(line, 0, ROWS);
  assert_int_equal(h.changes, 1);
  assert_true(fabs(h.last.position - 1300) < 80);
  for (uint32_t t = ROWS; t < ROWS + 2000; t += 1000) { /* rows without any value: all sensors must start again */
    hk_focus_row(line, t + 1000, value[0]);
    for (uint32_t j = 0; j < SENSORS; j++)
      assert_true(isnan(line->f.now.value[j]));
  }
  hk_focus_free(line);
}

/* --- states ------------------------------------------------------------------------------------------------------------ */

static uint8_t *state_of(const struct hk_focus_line *line)
{
  uint8_t *state = malloc(hk_focus_state_size(line));
  assert_non_null(state);
  hk_focus_write(line, state);
  return state;
}

static void test_state(void **unused)
{
  (void)unused;
  struct hk_focus_rule rule = rule_of(HK_FOCUS_OUTWARD);
  quiet(7);
  plant(1500, 200, 200, 0, 2);
  struct hk_focus_line *one = line_of(&rule);
  for (uint32_t cut = 40; cut < ROWS; cut += 37) {
    struct hk_focus_line *other = line_of(&rule);
    run(one, cut - (cut == 40 ? 40 : 37), cut);
    uint8_t *state = state_of(one);
    const size_t size = hk_focus_state_size(one);
    assert_int_equal(hk_focus_read(other, state, size), 0);
    uint8_t *again = state_of(other);
    assert_memory_equal(state, again, size);
    hk_focus_free(one);
    one = other; /* goes on */
    free(again);
    free(state);
  }
  const struct heard h = run(one, 669 + 15, ROWS); /* behind the last cut */
  assert_true(h.values > 0);
  uint8_t *state = state_of(one);
  struct hk_focus_line *whole = line_of(&rule);
  run(whole, 0, 669);
  run(whole, 669 + 15, ROWS);
  uint8_t *want = state_of(whole);
  assert_memory_equal(state, want, hk_focus_state_size(one));
  rule.keys.threshold = 7;
  struct hk_focus_line *differs = line_of(&rule);
  assert_int_equal(hk_focus_read(differs, state, hk_focus_state_size(one)), -EINVAL);
  hk_focus_free(differs);
  assert_int_equal(hk_focus_read(one, state, hk_focus_state_size(one) - 8), -EBADMSG);
  for (uint32_t i = 0; i < 4; i++)
    state[32 + i] = 0xff; /* the first sample becomes larger than a sensor's values can be, or NaN */
  state[32 + 6] = state[32 + 7] = 0x7e;
  assert_int_equal(hk_focus_read(one, state, hk_focus_state_size(one)), -EBADMSG);
  free(state);
  free(want);
  hk_focus_free(one);
  hk_focus_free(whole);
}

static void test_what_cannot_be(void **state)
{
  (void)state;
  struct hk_focus_rule rule = rule_of(HK_FOCUS_OUTWARD);
  struct hk_focus_line *line;
  char error[256];
  quiet(8);
  assert_int_equal(hk_focus_new(&line, &rule, 2, position, error, sizeof error), -EINVAL);
  assert_non_null(strstr(error, "3 sensors"));
  rule.interval = 1e-4;
  assert_int_equal(hk_focus_new(&line, &rule, SENSORS, position, error, sizeof error), -EINVAL);
  assert_non_null(strstr(error, "4095 rows"));
}

/* --- as a field --------------------------------------------------------------------------------------------------------- */

#define TEXT "speed=200,positions=p,reach=1000,interval=100ms"

static void test_keys(void **state)
{
  (void)state;
  static const struct {
    const char *keys, *error; /* NULL: they are good */
  } tried[] = {
    { "operator=focus," TEXT, NULL },
    { TEXT ",operator=focus,flow=-100,travel=onward,block=4,places=1,threshold=8,forget=0.99", NULL },
    { "operator=focus,positions=p,speed=200", "needs positions" },
    { "operator=focus," TEXT ",flow=200", "slower than the change" },
    { "operator=focus," TEXT ",speed=1 2 3 4 5 6 7 8 9", "speed = " },
    { "operator=focus," TEXT ",speed=100 -1", "speed = " },
    { "operator=focus," TEXT ",travel=sideways", "neither outward nor onward" },
    { "operator=focus," TEXT ",q=4", "operator = focus has none of the keys neighbours, q" },
    { "operator=residual,speed=3", "operator = residual has none of the keys" },
  };
  for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
    struct hk_field_rule rule;
    char error[512] = "";
    const int status = hk_field_parse(tried[i].keys, &rule, error, sizeof error);
    assert_int_equal(status, tried[i].error ? -EINVAL : 0);
    if (tried[i].error && !strstr(error, tried[i].error))
      fail_msg("%s: %s", tried[i].keys, error);
  }
}

/* A field whose members came in another order than that of the line. */
struct fielded {
  struct hk_field *field;
  struct hk_field_rule rule;
  struct hk_field_binding binding;
  struct hk_field_file file;
  struct hk_focus_line *line; /* the same, alone */
  uint32_t rows, changes, secondary;
};

/* The sensor of a member. */
static uint32_t sensor_of(uint32_t member)
{
  return member * 7 % SENSORS;
}

static void open_field(struct fielded *of)
{
  char error[256], text[SENSORS * 32] = "# the line\n";
  const struct hk_focus_rule own = rule_of(HK_FOCUS_OUTWARD);
  *of = (struct fielded){ .line = line_of(&own) };
  for (uint32_t j = 0; j < SENSORS; j++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "s%02u %.17g\n", j, position[j]);
  assert_int_equal(hk_field_graph_parse(&of->file.graph, HK_FIELD_LINE, 8, text, strlen(text), error, sizeof error), 0);
  assert_int_equal(hk_field_parse("operator=focus,places=3," TEXT, &of->rule, error, sizeof error), 0);
  of->rule.mark = hk_field_file_mark(&of->file);
  assert_int_equal(hk_field_new(&of->field, &of->rule), 0);
  assert_int_equal(hk_field_attach_line(of->field, SENSORS, hk_field_graph_positions(of->file.graph), error, sizeof error), 0);
  assert_int_equal(hk_field_binding_of(&of->binding, &of->rule, &of->file, NULL), 0);
  for (uint32_t i = 0; i < SENSORS; i++) {
    uint32_t member;
    char name[16];
    snprintf(name, sizeof name, "s%02u", sensor_of(i));
    assert_int_equal(hk_field_join(of->field, &member), 0);
    hk_field_binding_join(&of->binding, of->field, member, name, 3);
    assert_true(hk_field_binding_has(&of->binding, name, 3));
  }
}

/* A row of the field is that of the line. */
static void look(struct fielded *of, const struct hk_field_row *row)
{
  const bool changed = hk_field_line_of(of->field)->found.changed;
  of->rows++;
  of->changes += changed;
  if (changed)
    assert_true(llabs(row->latest - (int64_t)BEGINS * 100000000) <= 200000000);
  for (uint32_t k = 0; k < SENSORS; k++) {
    const double want = (double)of->line->f.now.value[sensor_of(k)], got = row->value[k];
    assert_true(isnan(want) ? isnan(got) : fabs(got - want) <= 1e-12 * want);
    if (isnan(got) || hk_residual_blamed(got) == 0)
      continue;
    of->secondary++;
    assert_int_equal(sensor_of(hk_field_neighbour(of->field, k, 0)), of->line->f.now.blamed[sensor_of(k)]);
  }
}

/* The field continues from its state. */
static void read_again(struct fielded *of)
{
  const size_t size = hk_field_state_size(of->field);
  uint8_t *saved = malloc(size);
  char error[256];
  struct hk_field *later;
  assert_non_null(saved);
  hk_field_write(of->field, saved);
  assert_int_equal(hk_field_read(&later, &of->rule, saved, size), 0);
  assert_int_equal(hk_field_attach_line(later, SENSORS, hk_field_graph_positions(of->file.graph), error, sizeof error), 0);
  hk_field_free(of->field);
  free(saved);
  of->field = later;
}

static void test_field(void **state)
{
  (void)state;
  struct fielded of;
  struct hk_field_row row;
  quiet(9);
  plant(1100, 200, 200, 0, 2);
  open_field(&of);
  for (uint32_t t = 0; t < ROWS; t++) {
    for (uint32_t i = 0; i < SENSORS; i++) {
      hk_field_put(of.field, i, (int64_t)t * 100000000, value[t][sensor_of(i)]);
      while (hk_field_next(of.field, &row)) {
        hk_focus_row(of.line, t, value[t]); /* all participate from row 4 on, together */
        look(&of, &row);
      }
    }
    if (t % 97 == 50)
      read_again(&of);
  }
  assert_int_equal(of.changes, 1);
  assert_true(of.rows >= ROWS - 6 && of.secondary > 100);
  assert_int_equal(hk_field_count(of.field).settled, SENSORS);
  hk_focus_free(of.line);
  hk_field_binding_close(&of.binding);
  hk_field_file_release(&of.file);
  hk_field_free(of.field);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_against_plain_loops),
    cmocka_unit_test(test_outward),
    cmocka_unit_test(test_flow_and_speed),
    cmocka_unit_test(test_onward),
    cmocka_unit_test(test_what_does_not_travel),
    cmocka_unit_test(test_missing),
    cmocka_unit_test(test_state),
    cmocka_unit_test(test_what_cannot_be),
    cmocka_unit_test(test_keys),
    cmocka_unit_test(test_field),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
