/* Payloads and topics of MQTT: values by their paths, times, names; and invalid payloads. */
#include "daemon/bridge/mqtt_names.h"
#include "daemon/bridge/mqtt_payload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void note(void *arg, const char *path, double value)
{
  char *text = arg;
  snprintf(text + strlen(text), 1024 - strlen(text), "%s=%g ", path, value);
}

/* Reads a payload: values, or `!` and the error; its time, or -1. */
static const char *of(const char *payload, const char *values, const char *time, bool only_timed, int64_t *at)
{
  static char text[1024];
  const struct hk_mqtt_wanted wanted = { values, time, only_timed };
  bool timed;
  int64_t read = 0;
  text[0] = 0;
  const size_t size = strlen(payload);
  char *copy = malloc(size + 1); /* memory of its own without a 0 after it, so that a sanitizer notices reads beyond its end */
  memcpy(copy, payload, size);
  const char *wrong = hk_mqtt_payload_read(&wanted, copy, size, &timed, &read, note, text);
  free(copy);
  *at = timed ? read : -1;
  if (wrong)
    snprintf(text, sizeof text, "!%s", wrong);
  return text;
}

static void test_values(void **state)
{
  (void)state;
  int64_t at;
  assert_string_equal(of(" -1.5e1\r\n", "", "", false, &at), "=-15 ");
  assert_string_equal(of("TRUE", "", "", false, &at), "=1 ");
  assert_string_equal(of("off", "", "", false, &at), "=0 ");
  assert_string_equal(of("{\"a\":1,\"b\":{\"c\":[2,{\"d\":true}],\"e\":\"3\",\"f\":null}}", "", "", false, &at),
                      "a=1 b.c.0=2 b.c.1.d=1 ");
  assert_string_equal(of("[4,5]", "1", "", false, &at), "1=5 ");
  assert_string_equal(of("{\"a\":{\"x\":1},\"b\":{\"x\":2,\"y\":3},\"x\":4}", "*.x, c", "", false, &at), "a.x=1 b.x=2 ");
  assert_string_equal(of("{\"\":5,\"a\":{\"\":6,\"b\":[[7]]}}", "", "", false, &at), "=5 a.=6 a.b.0.0=7 ");
  /* text is read as a number only where a number is requested */
  assert_string_equal(of("{\"a\":\"-2.5\",\"b\":\"ON\",\"c\":\"4 bar\",\"d\":\"5\"}", "a, b, c", "", false, &at), "a=-2.5 b=1 ");
  assert_string_equal(of("{\"a\":\"-2.5\",\"d\":5}", "", "", false, &at), "d=5 ");
  assert_string_equal(of("{\"a\":1e999,\"b\":2}", "", "", false, &at), "b=2 ");
  assert_int_equal(at, -1);
}

static void test_times(void **state)
{
  (void)state;
  int64_t at;
  of("{\"t\":1700000000.25,\"v\":1}", "v", "t", false, &at);
  assert_int_equal(at, 1700000000250000000);
  of("{\"t\":1700000000250,\"v\":1}", "v", "t", false, &at);
  assert_int_equal(at, 1700000000250000000);
  of("{\"t\":\"1700000000250000001\",\"v\":1}", "v", "t", false, &at);
  assert_int_equal(at, 1700000000250000001);
  of("{\"m\":[{\"t\":\"2023-11-14T22:13:20.5+00:00\"}],\"v\":1}", "v", "m.0.t", false, &at);
  assert_int_equal(at, 1700000000500000000);
  assert_string_equal(of("7", "", "t", false, &at), "=7 "); /* which has no keys */
  assert_int_equal(at, -1);
  assert_string_equal(of("7", "", "t", true, &at), "");
  assert_string_equal(of("{\"v\":1}", "", "", true, &at), "");
  assert_string_equal(of("{\"t\":1,\"v\":1}", "v", "t", true, &at), "v=1 ");
}

static void test_wrong(void **state)
{
  (void)state;
  int64_t at;
  char deep[128] = "";
  for (int i = 0; i < 20; i++)
    strcat(deep, "[");
  strcat(deep, "1");
  for (int i = 0; i < 20; i++)
    strcat(deep, "]");
  static const struct {
    const char *payload, *values, *time, *told;
  } wrong[] = {
    { "", "", "", "!it is empty" },
    { "21.5 C", "", "", "!it is not a number" },
    { "NaN", "", "", "!it is not a number" },
    { "{\"v\":1", "", "", "!it is not complete and valid JSON" },
    { "{\"v\":1}}", "", "", "!it is not complete and valid JSON" },
    { "{\"v\":\"1\"}", "", "", "!it contains no number" },
    { "{\"w\":1}", "v", "", "!none of the keys in `values` has a number" },
    { "{\"v\":1}", "v", "t", "!it does not have the key that `time` names" },
    { "{\"v\":1,\"t\":\"noon\"}", "v", "t", "!the value of the key `time` is not a time" },
    { "{\"v\":1,\"t\":-5}", "v", "t", "!the value of the key `time` is not a time" },
    { "{\"v\":1,\"t\":9300000000}", "v", "t",
      "!the value of the key `time` is not a time" }, /* beyond what int64_t holds: of seconds, */
    { "{\"v\":1,\"t\":9300000000000}", "v", "t", "!the value of the key `time` is not a time" },       /* of ms, */
    { "{\"v\":1,\"t\":9300000000000000}", "v", "t", "!the value of the key `time` is not a time" },    /* of us, */
    { "{\"v\":1,\"t\":9300000000000000000}", "v", "t", "!the value of the key `time` is not a time" }, /* and of ns */
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const char *got = of(wrong[i].payload, wrong[i].values, wrong[i].time, false, &at);
    assert_memory_equal(got, wrong[i].told, strlen(wrong[i].told));
  }
  assert_memory_equal(of(deep, "", "", false, &at), "!it has too many", 16);
}

static const char *name(const char *topics, const char *template, const char *topic)
{
  static char text[1024];
  char error[512];
  struct hk_mqtt_topics t;
  struct hk_buffer key = { 0 }, field = { 0 };
  assert_int_equal(hk_mqtt_topics_parse(topics, &t, error, sizeof error), 0);
  assert_int_equal(hk_mqtt_template_check(template, &t, error, sizeof error), 0);
  const struct hk_mqtt_topic *of = hk_mqtt_topics_find(&t, topic);
  if (!of)
    return "none";
  const char *wrong = hk_mqtt_template_expand(template, of, topic, topic, &key, &field);
  snprintf(text, sizeof text, "%.*s|%.*s", (int)key.size, key.data ? key.data : "", (int)field.size,
           field.data ? field.data : "");
  hk_buffer_free(&key);
  hk_buffer_free(&field);
  return wrong ? wrong : text;
}

static void test_names(void **state)
{
  (void)state;
  assert_string_equal(name("a/{x}/+", "{topic}", "a/b/c"), "a/b/c|");
  assert_string_equal(name("a/{x}/{y}", "{y},line={x} {3}", "a/b=c/d e"), "d\\ e,line=b\\=c|d\\ e");
  assert_string_equal(name("c, a/{x}/#", "{1}", "a/b"), "a|");
  assert_string_equal(name("$share/g/a/{x}", "{x}", "a/b"), "b|");
  assert_string_equal(name("a/+", "{3}", "a/b"), "the topic has fewer levels than `sensor` names");
  assert_string_equal(name("a/{x}", "{x}", "a/"), "a level of the topic that `sensor` names is empty");
  assert_string_equal(name("a/+", "{1}", "a/b/c"), "none");
  assert_string_equal(name("a/#", "{1}", "a"), "a|");
  assert_string_equal(name("#", "{1}", "$SYS/x"), "none");
  assert_string_equal(name("+/b, a/b/c", "{1}", "a/b/c"), "a|");
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_values), cmocka_unit_test(test_times), cmocka_unit_test(test_wrong),
                                      cmocka_unit_test(test_names) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
