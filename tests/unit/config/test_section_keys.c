/* Keys of sections by their table: values that each kind takes, values that it refuses, and the errors; addresses of brokers. */
#include "daemon/config/broker_address.h"
#include "daemon/config/section_keys.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct rule {
  char text[HK_SECTION_TEXT];
  char glob[HK_SECTION_GLOB];
  uint32_t word, words, whole;
  bool flag;
  double number;
  int64_t time;
  int other;
};

static const char *const colours[] = { "", "red", "green", NULL };

static const char *take_even(void *field, const char *value)
{
  *(int *)field = value[0];
  return value[0] % 2 ? "not even" : NULL;
}

static const struct hk_section_key keys[] = {
#define TAKES(what, field) HK_TAKES(what, struct rule, field)
  { "text", TAKES(TEXT, text) },
  { "glob", TAKES(GLOB, glob) },
  { "word", TAKES(WORD, word), .wrong = "not red or green", .words = colours },
  { "words", TAKES(WORDS, words), .wrong = "not some of red, green", .words = colours },
  { "flag", TAKES(FLAG, flag), .wrong = "not yes or no", .words = hk_yes_words },
  { "number", TAKES(NUMBER, number), .wrong = "not from 0 to 1", .max = 1 },
  { "whole", TAKES(WHOLE, whole), .wrong = "not 1 to 9", .min = 1, .max = 9 },
  { "time", TAKES(DURATION, time), .wrong = "not 1s to 1m", .min = 1e9, .max = 6e10 },
  { "often", TAKES(DURATION, time), .wrong = "not up to 1m, nor off", .max = 6e10, .off = true },
  { "other", TAKES(OTHER, other), .take = take_even },
#undef TAKES
};

static int set(struct rule *r, const char *name, const char *value, char error[256])
{
  error[0] = 0;
  return hk_section_key_set("rule", keys, COUNT(keys), r, name, value, error, 256);
}

static void test_taken(void **state)
{
  (void)state;
  struct rule r, same;
  char error[256];
  memset(&r, 0xff, sizeof r);
  memset(&same, 0, sizeof same);
  assert_int_equal(set(&r, "text", "a text", error), 0);
  memcpy(same.text, "a text", 6);
  assert_memory_equal(r.text, same.text, sizeof r.text); /* equal rules are equal bytes */
  assert_int_equal(set(&r, "glob", "plant/*", error), 0);
  assert_string_equal(r.glob, "plant/*");
  assert_int_equal(set(&r, "word", "green", error), 0);
  assert_int_equal(r.word, 2);
  assert_int_equal(set(&r, "words", "green, red", error), 0);
  assert_int_equal(r.words, 1 << 1 | 1 << 2);
  assert_int_equal(set(&r, "flag", "no", error), 0);
  assert_false(r.flag);
  assert_int_equal(set(&r, "flag", "yes", error), 0);
  assert_true(r.flag);
  assert_int_equal(set(&r, "number", "0.25", error), 0);
  assert_true(r.number == 0.25);
  assert_int_equal(set(&r, "whole", "9", error), 0);
  assert_int_equal(r.whole, 9);
  assert_int_equal(set(&r, "time", "1m", error), 0);
  assert_int_equal(r.time, 60000000000);
  assert_int_equal(set(&r, "often", "off", error), 0);
  assert_int_equal(r.time, 0);
  assert_int_equal(set(&r, "other", "b", error), 0);
  assert_int_equal(r.other, 'b');
}

static void test_refused(void **state)
{
  (void)state;
  static const struct {
    const char *name, *value, *says;
  } cases[] = {
    { "text", "", "text = : 1 to 255 bytes" },
    { "text", "a\tb", "control character" },
    { "glob", "", "a glob of 1 to 512 bytes" },
    { "word", "blue", "word = blue: not red or green" },
    { "word", "", "not red or green" },
    { "words", ", ,", "not some of" },
    { "words", "red blue", "not some of" },
    { "flag", "maybe", "not yes or no" },
    { "number", "1.5", "not from 0 to 1" },
    { "number", "nan", "not from 0 to 1" },
    { "number", "0.5x", "not from 0 to 1" },
    { "number", "", "not from 0 to 1" },
    { "whole", "2.5", "not 1 to 9" },
    { "whole", "0", "not 1 to 9" },
    { "time", "off", "not 1s to 1m" },
    { "time", "1ms", "not 1s to 1m" },
    { "time", "2m", "not 1s to 1m" },
    { "often", "never", "nor off" },
    { "other", "a", "not even" },
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    struct rule r = { .word = 7, .words = 7, .whole = 7, .number = 7, .time = 7 };
    char error[256];
    assert_int_equal(set(&r, cases[i].name, cases[i].value, error), -EINVAL);
    assert_non_null(strstr(error, cases[i].says));
    assert_true(r.word == 7 && r.words == 7 && r.whole == 7 && r.number == 7 && r.time == 7); /* nothing is half taken */
  }
}

static void test_long(void **state)
{
  (void)state;
  struct rule r = { 0 };
  char error[256], value[HK_SECTION_GLOB + 1] = { 0 };
  memset(value, 'x', HK_SECTION_TEXT - 1);
  assert_int_equal(set(&r, "text", value, error), 0);
  assert_string_equal(r.text, value);
  value[HK_SECTION_TEXT - 1] = 'x';
  assert_int_equal(set(&r, "text", value, error), -EINVAL);
  assert_int_equal(set(&r, "words", value, error), -EINVAL);
  memset(value, 'x', HK_SECTION_GLOB - 1);
  assert_int_equal(set(&r, "glob", value, error), 0);
  value[HK_SECTION_GLOB - 1] = 'x';
  assert_int_equal(set(&r, "glob", value, error), -EINVAL);
  assert_int_equal(set(&r, "colour", "red", error), -EINVAL);
  assert_string_equal(error, "[rule] has no key `colour`; hankeld.conf(5) lists them");
  assert_int_equal(set(&r, "nubmer", "1", error), -EINVAL);
  assert_string_equal(error, "[rule] has no key `nubmer`; did you mean number? hankeld.conf(5) lists them");
}

static void test_addresses(void **state)
{
  (void)state;
  static const struct {
    const char *url, *host;
    uint16_t port;
    bool tls, here;
  } good[] = {
    { "mqtt://broker", "broker", 1883, false, false },           { "mqtts://broker", "broker", 8883, true, false },
    { "mqtt://localhost:99", "localhost", 99, false, true },     { "mqtts://[::1]:65535", "::1", 65535, true, true },
    { "mqtt://[fe80::1]", "fe80::1", 1883, false, false },       { "mqtt://127.0.0.1:1", "127.0.0.1", 1, false, true },
    { "mqtt://127.example", "127.example", 1883, false, false },
  };
  static const char *const bad[] = { "",
                                     "http://broker",
                                     "mqtt://",
                                     "mqtt://:1883",
                                     "mqtt://broker:",
                                     "mqtt://broker:0",
                                     "mqtt://broker:65536",
                                     "mqtt://broker:1x",
                                     "mqtt://broker:-1",
                                     "mqtt://broker:99999999999999999999",
                                     "mqtt://broker/topic",
                                     "mqtt://who@broker",
                                     "mqtt://[::1",
                                     "mqtt://[]",
                                     "mqtt://[::1]x",
                                     "mqtt://::1" };
  for (size_t i = 0; i < COUNT(good); i++) {
    struct hk_broker_address a;
    assert_true(hk_broker_address_parse(&hk_scheme_mqtt, good[i].url, &a));
    assert_string_equal(a.host, good[i].host);
    assert_int_equal(a.port, good[i].port);
    assert_int_equal(a.tls, good[i].tls);
    assert_int_equal(hk_broker_address_is_here(&a), good[i].here);
  }
  for (size_t i = 0; i < COUNT(bad); i++) {
    struct hk_broker_address a;
    assert_false(hk_broker_address_parse(&hk_scheme_mqtt, bad[i], &a));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_taken), cmocka_unit_test(test_refused), cmocka_unit_test(test_long),
                                      cmocka_unit_test(test_addresses) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
