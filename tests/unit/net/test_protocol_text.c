/* The text protocol: lines in, and JSON that is valid whatever strings contain. */
#include "daemon/net/protocol_text.h"

#include "daemon/base/buffer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

static const char *parse(const char *line, struct hk_wanted *out)
{
  return hk_text_parse(line, strlen(line), out);
}

static void expect_wanted(const char *line, uint32_t what, float score, const char *glob)
{
  struct hk_wanted w;
  const char *fault = parse(line, &w);
  if (fault)
    fail_msg("`%s`: %s", line, fault);
  assert_int_equal(w.what, what);
  assert_true(w.min_score == score);
  assert_int_equal(w.glob.length, strlen(glob));
  assert_memory_equal(w.glob.data, glob, w.glob.length);
}

static void test_lines(void **state)
{
  (void)state;
  expect_wanted("scores", HANKEL_SCORES, 0, "");
  expect_wanted("scores machine*", HANKEL_SCORES, 0, "machine*");
  expect_wanted("scores>=0.8 machine one", HANKEL_SCORES, 0.8f, "machine one");
  expect_wanted("events   *\r", HANKEL_EVENTS, 0, "*");
  expect_wanted("events,notices,results>=1 ", HANKEL_EVENTS | HANKEL_NOTICES | HANKEL_SCORES | HANKEL_UNSCORED, 1, "");
  expect_wanted("events,since=0 m*", HANKEL_EVENTS | HANKEL_POSITIONS, 0, "m*");
  struct hk_wanted w;
  assert_null(parse("scores>=0.5,events,since=18446744073709551615", &w));
  assert_true(w.since == UINT64_MAX && w.min_score == 0.5f);
  static const char *const far[] = { "events,since=",   "events,since=x",  "since=5",         "events,since=18446744073709551616",
                                     "events,since=-1", "events,since=5x", "events,since=>=1" };
  for (size_t i = 0; i < sizeof far / sizeof *far; i++)
    assert_non_null(parse(far[i], &w));
  static const char *const bad[] = { "",          " ",           " scores",     "score",        "scores>0.5",   "scores>=",
                                     "scores>=2", "scores>=nan", "events>=0.5", "scores>=0.5x", "scores>=-0.1", "help" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_non_null(parse(bad[i], &w));
}

static void test_json_strings(void **state)
{
  (void)state;
  srand(1);
  for (int round = 0; round < 20000; round++) {
    char text[24];
    const size_t n = (size_t)rand() % sizeof text;
    for (size_t i = 0; i < n; i++)
      text[i] = (char)(rand() % 256);
    struct hk_buffer b = { 0 };
    hk_json_string(&b, text, n);
    hk_buffer_put(&b, "", 1);
    assert_false(b.failed);
    cJSON *json = cJSON_Parse(b.data);
    if (!json)
      fail_msg("no JSON: %s", b.data);
    assert_true(cJSON_IsString(json));
    cJSON_Delete(json);
    hk_buffer_free(&b);
  }
  struct hk_buffer b = { 0 };
  hk_json_string(&b, "a\"\\\n\xc3\xa9\xff", 7);
  hk_buffer_put(&b, "", 1);
  assert_string_equal(b.data, "\"a\\\"\\\\\\u000a\xc3\xa9\\ufffd\"");
  hk_buffer_free(&b);
  hk_json_string(&b, "a\xe2\x80\xae\x7f\xd8\x9c\xc2\x85\xe2\x81\xa9\xf0\x9f\x98\x80\xe2\x80\xaf", 19);
  hk_buffer_put(&b, "", 1);
  assert_string_equal(b.data, "\"a\\u202e\\u007f\\u061c\\u0085\\u2069\xf0\x9f\x98\x80\xe2\x80\xaf\"");
  hk_buffer_free(&b);
}

static void test_json_numbers(void **state)
{
  (void)state;
  static const double numbers[] = { 0.1, 21.5, 1.0 / 3, 1e300, 5e-324, -0.0 };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    struct hk_buffer b = { 0 };
    hk_json_number(&b, numbers[i], 17);
    hk_buffer_put(&b, "", 1);
    assert_true(strtod(b.data, NULL) == numbers[i]);
    hk_buffer_free(&b);
  }
  struct hk_buffer b = { 0 };
  hk_json_number(&b, 0.1, 17);
  hk_json_number(&b, NAN, 9);
  hk_json_number(&b, -INFINITY, 17);
  hk_buffer_put(&b, "", 1);
  assert_string_equal(b.data, "0.1nullnull");
  hk_buffer_free(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines), cmocka_unit_test(test_json_strings),
                                      cmocka_unit_test(test_json_numbers) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
