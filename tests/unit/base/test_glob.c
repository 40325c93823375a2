/* Globs: compared with a plain recursive matcher on random patterns, and well-known cases. */
#include "daemon/base/glob.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool match(const char *pattern, const char *name)
{
  struct hk_glob *glob;
  assert_int_equal(hk_glob_new(&glob, pattern, strlen(pattern)), 0);
  const bool result = hk_glob_match(glob, name, strlen(name));
  hk_glob_free(glob);
  return result;
}

static void test_cases(void **state)
{
  (void)state;
  static const struct {
    const char *pattern, *name;
    bool result;
  } cases[] = {
    { "", "anything", true },
    { "*", "", true },
    { "*", "anything", true },
    { "a", "a", true },
    { "a", "b", false },
    { "a", "aa", false },
    { "a*", "a", true },
    { "a*", "abc", true },
    { "*c", "abc", true },
    { "*c", "abcd", false },
    { "a*c", "abc", true },
    { "a*c", "ac", true },
    { "a**c", "abbc", true },
    { "?", "a", true },
    { "?", "", false },
    { "?", "ab", false },
    { "a?c", "abc", true },
    { "?", "\xc3\xa9", true },
    { "??", "\xc3\xa9", false },
    { "?x", "\xe2\x82\xacx", true },
    { "?*", "\xe2\x82\xac", true },
    { "\xe2\x82\xac?", "\xe2\x82\xac\xe2\x82\xac", true },
    { "[a]", "a", false },
    { "[a]", "[a]", true },
    { "a\\*", "a*", false },
    { "*a*b*", "xaxbx", true },
    { "*a*b*", "xbxax", false },
    { "pump,site=? temp*", "pump,site=a temperature", true },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (match(cases[i].pattern, cases[i].name) != cases[i].result)
      fail_msg("`%s` on `%s` is not %d", cases[i].pattern, cases[i].name, cases[i].result);
}

/* The definition of a match, for ASCII names, as short as possible. */
static bool plain(const char *pattern, const char *name)
{
  if (*pattern == 0)
    return *name == 0;
  if (*pattern == '*')
    return plain(pattern + 1, name) || (*name && plain(pattern, name + 1));
  return *name && (*pattern == '?' || *pattern == *name) && plain(pattern + 1, name + 1);
}

static void random_text(char *out, const char *letters, size_t most)
{
  const size_t n = (size_t)rand() % (most + 1);
  for (size_t i = 0; i < n; i++)
    out[i] = letters[(size_t)rand() % strlen(letters)];
  out[n] = 0;
}

static void test_random(void **state)
{
  (void)state;
  srand(1);
  unsigned matched = 0;
  for (unsigned i = 0; i < 100000; i++) {
    char pattern[10], name[14];
    random_text(pattern, "ab?*", sizeof pattern - 1);
    random_text(name, "ab", sizeof name - 1);
    if (pattern[0] == 0)
      continue;
    const bool expected = plain(pattern, name);
    matched += expected;
    if (match(pattern, name) != expected)
      fail_msg("`%s` on `%s` is not %d", pattern, name, expected);
  }
  assert_in_range(matched, 5000, 95000);
}

static void test_long(void **state)
{
  (void)state;
  char pattern[HK_GLOB_MAX + 2], name[513];
  struct hk_glob *glob;
  /* states beyond one word, and carries between words */
  memset(name, 'a', sizeof name);
  memset(pattern, 'a', sizeof pattern);
  for (size_t n = 60; n <= HK_GLOB_MAX; n++) {
    assert_int_equal(hk_glob_new(&glob, pattern, n), 0);
    assert_true(hk_glob_match(glob, name, n));
    assert_false(hk_glob_match(glob, name, n - 1));
    assert_false(hk_glob_match(glob, name, n + 1 > 512 ? n - 1 : n + 1));
    hk_glob_free(glob);
  }
  assert_int_equal(hk_glob_new(&glob, pattern, HK_GLOB_MAX + 1), -EINVAL);
  /* a case that takes a backtracking matcher years */
  for (size_t i = 0; i < HK_GLOB_MAX - 1; i += 2)
    memcpy(pattern + i, "*a", 2);
  memcpy(pattern + HK_GLOB_MAX - 2, "*b", 2);
  assert_int_equal(hk_glob_new(&glob, pattern, HK_GLOB_MAX), 0);
  assert_false(hk_glob_match(glob, name, 512));
  name[511] = 'b';
  assert_true(hk_glob_match(glob, name, 512));
  hk_glob_free(glob);
}

static void test_meet(void **state)
{
  (void)state;
  static const struct {
    const char *a, *b;
    bool meet;
  } cases[] = {
    { "a", "a", true },
    { "a", "b", false },
    { "a", "ab", false },
    { "", "b", true },
    { "*", "b", true },
    { "a*", "*b", true },
    { "a*", "b*", false },
    { "a*", "a", true },
    { "*a", "*b", false },
    { "a*c", "a*d", false },
    { "a*b*c", "axc", false },
    { "a*b*c", "abc", true },
    { "plant/*/temp", "plant/7/*", true },
    { "plant/*/temp", "*/power", false },
    { "plant/*/*", "roof/*", false },
    { "x*x", "x", false },
    { "**", "*", true },
    { "*ab*", "*ba*", true },
    { "ab", "a?", true },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (hk_globs_meet(cases[i].a, cases[i].b) != cases[i].meet || hk_globs_meet(cases[i].b, cases[i].a) != cases[i].meet)
      fail_msg("that `%s` and `%s` meet is not %d", cases[i].a, cases[i].b, cases[i].meet);
  char most[HK_GLOB_MAX + 1];
  memset(most, 'a', HK_GLOB_MAX);
  most[HK_GLOB_MAX] = 0;
  assert_true(hk_globs_meet(most, most));
  assert_true(hk_globs_meet(most, "*a"));
  assert_false(hk_globs_meet(most, "*b"));
}

/* Globs meet if a name matches both; they do not if none of the short names does. */
static void test_meet_random(void **state)
{
  (void)state;
  enum { MOST = 6, NAMES = 1 << (MOST + 1) };
  srand(5);
  for (int i = 0; i < 1000; i++) {
    char a[4] = "", b[4] = "";
    bool any = false;
    for (int k = rand() % 3; k >= 0; k--) {
      a[k] = "ab*"[rand() % 3];
      b[k] = "ab*"[rand() % 3];
    }
    for (unsigned n = 1; n < NAMES && !any; n++) { /* the bits of n below its highest one */
      char name[MOST + 1];
      size_t length = 0;
      for (unsigned bit = 1u << (31 - __builtin_clz(n)); bit > 1; bit >>= 1)
        name[length++] = n & bit >> 1 ? 'b' : 'a';
      name[length] = 0;
      any = match(a, name) && match(b, name);
    }
    if (hk_globs_meet(a, b) != any)
      fail_msg("that `%s` and `%s` meet is not %d", a, b, any);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases), cmocka_unit_test(test_random), cmocka_unit_test(test_long),
                                      cmocka_unit_test(test_meet), cmocka_unit_test(test_meet_random) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
