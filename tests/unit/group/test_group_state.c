/* States of groups: a group continues from its state without a difference, and invalid states are refused. */
#include "cpu/group/state.h"
#include "tests/unit/support/group.h"

#include <errno.h>
#include <string.h>

/* With holes, silence, members that come and go, before 1970: a group that is written and read between any two points gives the
 * same bits. */
static void goes_on_from_its_state(void **state)
{
  (void)state;
  enum { N = 900, M = 5 };
  static struct heard other;
  struct hk_group_rule rule;
  char error[256];
  assert_int_equal(hk_group_parse("wait=6,resident=100", &rule, error, sizeof error), 0);
  seed = 11;
  white(N, M);
  for (uint32_t i = 0; i < N; i++)
    for (uint32_t j = 0; j < M; j++) {
      value[i][j] += i / 200 % 2 ? 2 : 0;
      if (uniform() < 0.1 || (j == 2 && i > 300 && i < 330) || (j == 4 && i < 100))
        value[i][j] = NAN;
    }
  struct heard *h = NULL;
  for (int turn = 0; turn < 2; turn++) { /* the second group is written and read all the time */
    uint32_t number[M];
    struct hk_group *g = group_of("wait=6,resident=100", M, number);
    memset(&other, 0, sizeof other);
    for (uint32_t i = 0; i < N; i++) {
      if (i == 500)
        hk_group_leave(g, number[1]);
      if (i == 600)
        assert_int_equal(hk_group_join(g, &number[1]), 0);
      for (uint32_t j = 0; j < M; j++) {
        if (isnan(value[i][j]) || (j == 1 && i >= 500 && i < 600))
          continue;
        if (turn == 1 && (i < 20 || i % 37 == j))
          g = over(g, i % 2 ? &rule : NULL);
        hk_group_put(g, number[j], ((int64_t)i - 300) * SECOND - (int64_t)(j % 2), value[i][j]);
        listen(&other, g);
      }
    }
    hk_group_free(g);
    if (turn == 0) {
      h = malloc(sizeof *h);
      assert_non_null(h);
      *h = other;
    }
  }
  assert_true(h->changes >= 2 && h->n > N - 20);
  assert_int_equal(other.n, h->n);
  for (uint32_t i = 0; i < h->n; i++) {
    assert_memory_equal(&other.tick[i].statistic, &h->tick[i].statistic, sizeof(double));
    assert_memory_equal(&other.tick[i].before, &h->tick[i].before, sizeof(double));
    assert_int_equal(other.tick[i].time, h->tick[i].time);
    assert_int_equal(other.tick[i].instant, h->tick[i].instant);
    assert_int_equal(other.tick[i].change, h->tick[i].change);
  }
  free(h);
}

static void odd_states(void **state)
{
  (void)state;
  uint32_t number[3];
  struct hk_group_rule rule;
  char error[256];
  assert_int_equal(hk_group_parse("wait=3,resident=20", &rule, error, sizeof error), 0);
  struct hk_group *g = group_of("wait=3,resident=20", 3, number), *read;
  g = over(g, &rule); /* with no point */
  for (int64_t i = 0; i < 40; i++)
    for (uint32_t j = 0; j < 3; j++) {
      struct hk_group_tick t;
      hk_group_put(g, number[j], i * SECOND, (double)(i % 3));
      while (hk_group_next(g, &t)) {
      }
    }
  const size_t size = hk_group_state_size(g);
  uint64_t *words = malloc(size + 8), *good = malloc(size);
  assert_true(words && good);
  hk_group_write(g, good);
  memcpy(words, good, size);
  struct hk_group_rule changed = rule;
  changed.hop = 1;
  changed.threshold = 50;
  changed.members = 3;
  assert_int_equal(hk_group_read(&read, &changed, words, size), 0); /* these may be others, */
  hk_group_free(read);
  changed.members = 2;
  assert_int_equal(hk_group_read(&read, &changed, words, size), -EINVAL);
  const char *const others[] = { "wait=4,resident=20", "wait=3,resident=21", "wait=3,resident=20,interval=2s" }; /* these not */
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(hk_group_parse(others[i], &changed, error, sizeof error), 0);
    assert_int_equal(hk_group_read(&read, &changed, words, size), -EINVAL);
  }
  for (size_t cut = 0; cut < size; cut += 8)
    assert_int_equal(hk_group_read(&read, NULL, words, cut), -EBADMSG);
  assert_int_equal(hk_group_read(&read, NULL, words, size + 8), -EBADMSG);
  for (size_t i = 0; i < size / 8; i++) /* extreme words are refused, or the group can continue */
    for (uint32_t k = 0; k < 6; k++) {
      static const uint64_t odd[] = { 0, UINT64_MAX, (uint64_t)1 << 63, 0x7ff0000000000000, 0x7fffffffffffffff, 1 };
      memcpy(words, good, size);
      words[i] = odd[k];
      if (hk_group_read(&read, NULL, words, size) != 0)
        continue;
      for (uint32_t j = 0; j < 3; j++) {
        struct hk_group_tick t;
        if (hk_group_has(read, j))
          hk_group_put(read, j, 41 * SECOND, 1);
        for (uint32_t n = 0; hk_group_next(read, &t); n++)
          assert_true(n <= HK_GROUP_WAIT_MAX + 1);
      }
      hk_group_free(read);
    }
  hk_group_free(g);
  free(words);
  free(good);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(goes_on_from_its_state), cmocka_unit_test(odd_states) };
  return cmocka_run_group_tests_name("states of groups", tests, NULL, NULL);
}
