/* Fields: rows of points (order, silence, holes, joining and leaving), neighbours that are found, states, keys. */
#include "cpu/field/count.h"
#include "cpu/field/field.h"
#include "cpu/field/state.h"
#include "tests/unit/support/noise.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

#define SECOND ((int64_t)1000000000)
#define ROWS 1200
#define MEMBERS 20

static double value[ROWS][MEMBERS];
/* Two common signals, one of the even and one of the odd members. */
static void weathers(void)
{
  double front[2] = { 0 };
  seed = 3;
  for (uint32_t t = 0; t < ROWS; t++) {
    front[0] = 0.97 * front[0] + noise();
    front[1] = 0.97 * front[1] + noise();
    for (uint32_t i = 0; i < MEMBERS; i++)
      value[t][i] = 1e4 + front[i % 2] * (1 + i) + (1 + i) * 0.2 * noise();
  }
}

static struct hk_field_rule rule_of(uint32_t neighbours)
{
  struct hk_field_rule rule = hk_field_default();
  rule.neighbours = neighbours;
  snprintf(rule.file, sizeof rule.file, "%s", neighbours == HK_FIELD_AUTO ? "" : "graph");
  rule.q = 4;
  rule.members = 64;
  return rule;
}

static struct hk_field *field_of(uint32_t neighbours, uint32_t members)
{
  const struct hk_field_rule rule = rule_of(neighbours);
  struct hk_field *f;
  assert_int_equal(hk_field_new(&f, &rule), 0);
  for (uint32_t i = 0; i < members; i++) {
    uint32_t number;
    assert_int_equal(hk_field_join(f, &number), 0);
    assert_int_equal(number, i);
  }
  for (uint32_t i = 0; i < members && neighbours == HK_FIELD_GRAPH; i++)
    for (uint32_t k = 0; k < 4; k++)
      hk_field_bind(f, i, k, (i + 2 * (k + 1)) % members);
  return f;
}

/* The output: a hash of the bits, and the number of values. */
struct heard {
  uint64_t hash;
  uint32_t rows, values;
  int64_t latest;
};

static void listen(struct heard *h, struct hk_field *f)
{
  struct hk_field_row row = { .n = UINT32_MAX };
  for (; hk_field_next(f, &row); row.n = UINT32_MAX) {
    assert_true(row.latest > h->latest);
    h->latest = row.latest;
    h->rows++;
    for (uint32_t i = 0; i < row.n; i++) {
      uint64_t bits;
      if (isnan(row.value[i]))
        continue;
      memcpy(&bits, &row.value[i], sizeof bits);
      h->hash = (h->hash ^ bits ^ (uint64_t)row.time[i] * 31 ^ i) * 1099511628211u;
      h->values++;
    }
  }
  assert_int_equal(row.n, UINT32_MAX); /* no row is written if there is none */
}

static struct hk_field *over(struct hk_field *f)
{
  const size_t size = hk_field_state_size(f);
  struct hk_field *again;
  void *state = malloc(size), *second = malloc(size);
  assert_true(state && second && size % 8 == 0);
  hk_field_write(f, state);
  assert_int_equal(hk_field_read(&again, NULL, state, size), 0);
  assert_int_equal(hk_field_state_size(again), size);
  hk_field_write(again, second);
  assert_memory_equal(state, second, size);
  assert_int_equal(hk_field_members(again), hk_field_members(f));
  hk_field_free(f);
  free(state);
  free(second);
  return again;
}

/* Points of members may come in any order within `wait` rows: the output is the same. */
static void order_of_points(void **state)
{
  (void)state;
  struct heard heard[3] = { { 0 } };
  weathers();
  for (uint32_t turn = 0; turn < 3; turn++) {
    struct hk_field *f = field_of(HK_FIELD_GRAPH, MEMBERS);
    heard[turn].latest = INT64_MIN;
    for (uint32_t t = 0; t < ROWS + 3; t++)
      for (uint32_t n = 0; n < MEMBERS; n++) {
        const uint32_t i = turn == 1 ? MEMBERS - 1 - n : (n * 7 + turn * t) % MEMBERS, late = turn == 2 ? i % 4 : 0;
        if (t < late || t - late >= ROWS)
          continue;
        hk_field_put(f, i, ((int64_t)(t - late) - 100) * SECOND + i, value[t - late][i]);
        listen(&heard[turn], f);
      }
    hk_field_free(f);
    assert_int_equal(heard[turn].rows, ROWS - 4); /* members take part from `wait` rows after their first point on */
    assert_int_equal(heard[turn].values, MEMBERS * (ROWS - 4 - 192));
    assert_true(heard[turn].hash == heard[0].hash);
  }
}

/* A silent member delays rows by `wait` of them; a hole makes no row; late values and those that are not finite are ignored. */
static void silence(void **state)
{
  (void)state;
  struct hk_field *f = field_of(HK_FIELD_GRAPH, 5);
  struct heard h = { .latest = INT64_MIN };
  weathers();
  for (uint32_t t = 0; t < 300; t++)
    for (uint32_t i = 0; i < 5; i++) {
      hk_field_put(f, i, t * SECOND, value[t][i]);
      listen(&h, f);
    }
  assert_int_equal(h.rows, 296);
  for (uint32_t t = 300; t < 310; t++)
    for (uint32_t i = 0; i < 4; i++) {
      hk_field_put(f, i, t * SECOND, value[t][i]);
      listen(&h, f);
    }
  assert_int_equal(h.rows, 306); /* none waits any more for the fifth */
  hk_field_put(f, 4, 305 * SECOND, 1);
  hk_field_put(f, 0, 309 * SECOND, 1);
  hk_field_put(f, 0, 400 * SECOND, NAN);
  hk_field_put(f, 0, 400 * SECOND, 2e30);
  listen(&h, f);
  assert_int_equal(h.rows, 306);
  hk_field_put(f, 0, 1000 * SECOND, 1);
  hk_field_put(f, 0, 2000 * SECOND, 1);
  hk_field_put(f, 0, 2004 * SECOND, 1);
  listen(&h, f);
  assert_int_equal(h.rows, 307); /* it takes part again from `wait` rows after its first point on */
  hk_field_put(f, 0, 2005 * SECOND, 1);
  listen(&h, f);
  assert_int_equal(h.rows, 308);
  hk_field_free(f);
}

/* The neighbours that a field finds are members with the same common signal. */
static void finds_neighbours(void **state)
{
  (void)state;
  struct hk_field *f = field_of(HK_FIELD_AUTO, MEMBERS);
  struct heard h = { .latest = INT64_MIN };
  weathers();
  for (uint32_t t = 0; t < ROWS; t++)
    for (uint32_t i = 0; i < MEMBERS; i++) {
      hk_field_put(f, i, t * SECOND, value[t][i]);
      listen(&h, f);
    }
  for (uint32_t i = 0; i < MEMBERS; i++)
    for (uint32_t k = 0; k < 4; k++) {
      const uint32_t j = hk_field_neighbour(f, i, k);
      assert_true(j < MEMBERS && j != i && j % 2 == i % 2);
    }
  assert_int_equal(h.values, MEMBERS * (ROWS - 4 - 192));
  const struct hk_field_count count = hk_field_count(f);
  assert_true(count.settled == MEMBERS && count.explained == MEMBERS && count.refused == 0);
  hk_field_leave(f, 2); /* belongs to no sensor any more, before another one gets its number */
  uint32_t number;
  assert_int_equal(hk_field_join(f, &number), 0);
  assert_int_equal(number, 2);
  for (uint32_t i = 0; i < MEMBERS; i++)
    for (uint32_t k = 0; k < 4; k++)
      assert_true(hk_field_neighbour(f, i, k) != 2);
  hk_field_free(f);
}

/* Rules with another structure of the field refuse a state. */
static void other_rules(const struct hk_field_rule *rule, const uint64_t *words, size_t size)
{
  struct hk_field *read;
  struct hk_field_rule others[] = { *rule, *rule, *rule, *rule, *rule };
  others[0].members = 4;
  others[0].q = 3;
  others[1].wait++;
  others[2].interval++;
  others[3].neighbours = HK_FIELD_GRAPH;
  others[3].file[0] = 'g';
  others[4].q = 16;
  for (uint32_t i = 0; i < 5; i++)
    assert_int_equal(hk_field_read(&read, &others[i], words, size), -EINVAL);
}

/* Feeds a field that was read from a changed state. */
static void go_on(struct hk_field *read)
{
  struct hk_field_row row;
  for (uint32_t t = 61; t < 200; t++)
    for (uint32_t m = 0; m < 3; m++)
      if (hk_field_has(read, m)) {
        hk_field_put(read, m, t * SECOND, value[t][m]);
        while (hk_field_next(read, &row)) {
        }
      }
}

/* With holes, silence, members that come and go, before 1970: a field that is written and read between any two points gives the
 * same bits. */
static void goes_on_from_its_state(void **state)
{
  (void)state;
  for (uint32_t neighbours = HK_FIELD_AUTO; neighbours <= HK_FIELD_GRAPH; neighbours++) {
    struct heard heard[2] = { { 0 } };
    weathers();
    seed = 5;
    for (uint32_t t = 0; t < ROWS; t++)
      for (uint32_t i = 0; i < MEMBERS; i++)
        if (uniform() < 0.1 || (i == 2 && t > 300 && t < 330) || (i == 4 && t < 100))
          value[t][i] = NAN;
    for (uint32_t turn = 0; turn < 2; turn++) {
      struct hk_field *f = field_of(neighbours, MEMBERS);
      heard[turn].latest = INT64_MIN;
      uint32_t number;
      for (uint32_t t = 0; t < ROWS; t++) {
        if (t == 500)
          hk_field_leave(f, 1);
        if (t == 501 && turn == 1)
          f = over(f); /* one has left */
        if (t == 600)
          assert_int_equal(hk_field_join(f, &number), 0);
        for (uint32_t i = 0; i < MEMBERS; i++) {
          if (isnan(value[t][i]) || (i == 1 && t >= 500 && t < 600))
            continue;
          if (turn == 1 && (t < 8 || t % 61 == i))
            f = over(f);
          hk_field_put(f, i, ((int64_t)t - 300) * SECOND - (int64_t)(i % 2), value[t][i]);
          listen(&heard[turn], f);
        }
      }
      hk_field_free(f);
    }
    assert_true(heard[0].values > MEMBERS * ROWS / 2 && heard[1].values == heard[0].values);
    assert_true(heard[0].hash == heard[1].hash && heard[0].rows == heard[1].rows);
  }
}

static void odd_states(void **state)
{
  (void)state;
  struct hk_field_rule rule = rule_of(HK_FIELD_AUTO);
  struct hk_field *f = over(field_of(HK_FIELD_AUTO, 0)), *read;
  hk_field_free(f);
  f = field_of(HK_FIELD_AUTO, 3);
  struct heard h = { .latest = INT64_MIN };
  weathers();
  for (uint32_t t = 0; t < 60; t++)
    for (uint32_t i = 0; i < 3; i++) {
      hk_field_put(f, i, t * SECOND, value[t][i]);
      listen(&h, f);
    }
  hk_field_put(f, 0, 60 * SECOND, 1);
  listen(&h, f);
  const size_t size = hk_field_state_size(f);
  uint64_t *words = malloc(size + 8), *good = malloc(size);
  assert_true(words && good);
  hk_field_write(f, good);
  memcpy(words, good, size);
  hk_field_free(f);
  rule.clip = 5;
  rule.refit = 1;
  rule.members = 3;
  assert_int_equal(hk_field_read(&read, &rule, words, size), 0); /* these may differ */
  hk_field_free(read);
  other_rules(&rule, words, size);
  for (size_t cut = 0; cut < size; cut += 8)
    assert_int_equal(hk_field_read(&read, NULL, words, cut), -EBADMSG);
  assert_int_equal(hk_field_read(&read, NULL, words, size + 8), -EBADMSG);
  words[0] |= 0x10000;
  assert_int_equal(hk_field_read(&read, NULL, words, size), -EINVAL); /* another layout, whatever else is in it */
  assert_int_equal(hk_field_read(&read, NULL, words, 80), -EINVAL);
  words[0] = good[0];
  for (size_t i = 0; i < size / 8; i++) /* extreme words are refused, or the field can continue */
    for (uint32_t k = 0; k < 7; k++) {
      static const uint64_t odd[] = { 0, UINT64_MAX, (uint64_t)1 << 63, 0x7ff0000000000000, 0x7fffffffffffffff, 1, 0x100000001 };
      words[i] = odd[k];
      const int status = hk_field_read(&read, NULL, words, size);
      words[i] = good[i];
      assert_true(status == 0 || status == -EBADMSG || status == -EINVAL || status == -ENOMEM);
      if (status != 0)
        continue;
      go_on(read);
      hk_field_free(read);
    }
  free(words);
  free(good);
}

static void keys(void **state)
{
  (void)state;
  struct hk_field_rule rule = hk_field_default();
  char error[256];
  static const struct {
    const char *key, *value;
    int status;
  } all[] = {
    { "q", "2", 0 },
    { "q", "16", 0 },
    { "q", "17", -EINVAL },
    { "q", "1", -EINVAL },
    { "q", "8x", -EINVAL },
    { "refit", "1", 0 },
    { "refit", "0", -EINVAL },
    { "blame", "96", 0 },
    { "blame", "3", -EINVAL },
    { "wait", "64", 0 },
    { "wait", "65", -EINVAL },
    { "members", "3", 0 },
    { "members", "", -EINVAL },
    { "forget", "0.99", 0 },
    { "forget", "1", -EINVAL },
    { "clip", "2.5", 0 },
    { "clip", "nan", -EINVAL },
    { "interval", "1h", 0 },
    { "interval", "1ns", -EINVAL },
    { "hop", "3", -EINVAL },
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    assert_int_equal(hk_field_set(&rule, all[i].key, all[i].value, error, sizeof error), all[i].status);
  assert_int_equal(hk_field_check(&rule, error, sizeof error), 0);
  assert_true(rule.interval == 3600 * SECOND && rule.clip == 2.5 && rule.wait == 64 && rule.q == 16);
  rule.members = HK_FIELD_AUTO_MAX + 1;
  assert_int_equal(hk_field_check(&rule, error, sizeof error), -EINVAL);
  rule.neighbours = HK_FIELD_GRAPH;
  assert_int_equal(hk_field_check(&rule, error, sizeof error), -EINVAL); /* of no file */
  assert_int_equal(hk_field_set(&rule, "neighbours", "roads.txt", error, sizeof error), 0);
  assert_int_equal(hk_field_check(&rule, error, sizeof error), 0);
  assert_int_equal(hk_field_set(&rule, "neighbours", "nearest", error, sizeof error), 0);
  assert_int_equal(hk_field_check(&rule, error, sizeof error), -EINVAL); /* of edges */
  assert_int_equal(hk_field_parse("neighbours=nearest,positions=places.txt,q=3", &rule, error, sizeof error), 0);
  assert_true(rule.neighbours == HK_FIELD_NEAREST && rule.q == 3 && strcmp(rule.file, "places.txt") == 0);
  assert_int_equal(hk_field_parse("neighbours=auto,positions=places.txt", &rule, error, sizeof error), -EINVAL);
  assert_int_equal(hk_field_parse("q", &rule, error, sizeof error), -EINVAL);
  rule = hk_field_default();
  rule.q = 0;
  assert_int_equal(hk_field_check(&rule, error, sizeof error), -EINVAL);
  struct hk_field *f;
  assert_int_equal(hk_field_new(&f, &rule), -EINVAL);
}

/* The most members that are allowed, and the memory that they need. */
static void members(void **state)
{
  (void)state;
  struct hk_field_rule rule = rule_of(HK_FIELD_GRAPH);
  struct hk_field *f;
  uint32_t number;
  rule.members = 100;
  assert_int_equal(hk_field_new(&f, &rule), 0);
  for (uint32_t i = 0; i < 100; i++)
    assert_int_equal(hk_field_join(f, &number), 0);
  assert_int_equal(hk_field_join(f, &number), -ENOSPC);
  hk_field_leave(f, 40);
  assert_false(hk_field_has(f, 40));
  assert_int_equal(hk_field_join(f, &number), 0);
  assert_true(number == 40 && hk_field_members(f) == 100);
  hk_field_free(f);
  assert_true(hk_field_need(&rule, 1000) > 300000 && hk_field_need(&rule, 1000) < 500000);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(order_of_points),  cmocka_unit_test(silence),
    cmocka_unit_test(finds_neighbours), cmocka_unit_test(goes_on_from_its_state),
    cmocka_unit_test(odd_states),       cmocka_unit_test(keys),
    cmocka_unit_test(members),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
