/* A recording of some members, and the results of a group for it: for tests of groups. */
#ifndef HK_TESTS_GROUP_H
#define HK_TESTS_GROUP_H

#include "cpu/group/group.h"
#include "cpu/group/state.h"
#include "tests/unit/support/noise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND ((int64_t)1000000000)
#define MEMBERS 8
#define ROWS 3000

/* A recording: value[row][member], NaN where there is none. */
static double value[ROWS][MEMBERS];

static inline void white(uint32_t rows, uint32_t members)
{
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t j = 0; j < members; j++)
      value[i][j] = noise();
}

/* The results. */
struct heard {
  struct hk_group_tick tick[ROWS];
  uint32_t n, changes;
  int64_t instant[64];
};

static inline void listen(struct heard *h, struct hk_group *g)
{
  while (h->n < ROWS && hk_group_next(g, &h->tick[h->n])) {
    if (h->tick[h->n].change == HK_GROUP_CHANGED && h->changes < 64)
      h->instant[h->changes++] = h->tick[h->n].instant;
    h->n++;
  }
}

static inline struct hk_group *group_of(const char *keys, uint32_t members, uint32_t *number)
{
  struct hk_group_rule rule;
  struct hk_group *g;
  char error[256];
  assert_int_equal(hk_group_parse(keys, &rule, error, sizeof error), 0);
  assert_int_equal(hk_group_new(&g, &rule), 0);
  for (uint32_t j = 0; j < members; j++)
    assert_int_equal(hk_group_join(g, &number[j]), 0);
  return g;
}

/* Row by row, the members in turn. */
static inline struct heard *run(const char *keys, uint32_t rows, uint32_t members)
{
  uint32_t number[MEMBERS];
  struct hk_group *g = group_of(keys, members, number);
  struct heard *h = calloc(1, sizeof *h);
  assert_non_null(h);
  for (uint32_t i = 0; i < rows; i++) {
    for (uint32_t j = 0; j < members; j++) {
      if (isnan(value[i][j]))
        continue;
      hk_group_put(g, number[j], (int64_t)i * SECOND, value[i][j]);
      listen(h, g);
    }
  }
  hk_group_free(g);
  return h;
}

/* Reads the state that a group writes, and checks that the copy writes the same. rule: NULL is allowed. */
static inline struct hk_group *over(struct hk_group *g, const struct hk_group_rule *rule)
{
  const size_t size = hk_group_state_size(g);
  struct hk_group *again = NULL;
  void *state = malloc(size), *second = malloc(size);
  assert_true(state && second && size % 8 == 0);
  hk_group_write(g, state);
  assert_int_equal(hk_group_read(&again, rule, state, size), 0);
  assert_int_equal(hk_group_state_size(again), size);
  hk_group_write(again, second);
  assert_memory_equal(state, second, size);
  assert_int_equal(hk_group_members(again), hk_group_members(g));
  hk_group_free(g);
  free(state);
  free(second);
  return again;
}

#endif
