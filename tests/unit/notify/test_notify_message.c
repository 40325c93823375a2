/* Messages: all names that templates may use, and the form of each type. */
#include "daemon/notify/message.h"

#include "daemon/notify/message_view.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND 1000000000ll
#define NOW (1767225600 * SECOND) /* 2026-01-01 */

static struct hk_notice alert(const char *name, uint32_t number, float severity, bool over)
{
  return (struct hk_notice){ .logged = { .position = 40 + number,
                                         .name = hk_string(name),
                                         .event = { .kind = over ? HK_EVENT_CLEARED : HK_EVENT_RAISED,
                                                    .channel = HANKEL_SHIFT,
                                                    .number = number,
                                                    .time = NOW,
                                                    .from = NOW,
                                                    .instant = NOW - 60 * SECOND,
                                                    .severity = severity,
                                                    .margin = 2.5f,
                                                    .score = 1,
                                                    .before = 71,
                                                    .after = 93 } } };
}

static struct hk_notice incident(uint64_t id, uint8_t kind)
{
  struct hk_notice n = alert("incident 7", (uint32_t)id, 3, kind == HANKEL_INCIDENT_CLOSED);
  static const char about[] = "{\"first\":\"pump/a\",\"time\":1795772400123456789,\"sensors\":[\"pump/a\"]}";
  n.change = (struct hk_logged_incident){ .position = 50,
                                          .id = id,
                                          .time = NOW,
                                          .since = NOW,
                                          .rank = 4,
                                          .severity = 3,
                                          .count = 2,
                                          .kind = kind,
                                          .told = true,
                                          .section = hk_string("hall"),
                                          .text = hk_string("2 sensors of pump"),
                                          .about = { about, sizeof about - 1 } };
  return n;
}

static struct hk_notify_rule rule(uint32_t type, const char *template)
{
  struct hk_notify_rule r = { 0 };
  char error[512];
  hk_notify_rule_begin(&r);
  memcpy(r.name, "x", 2);
  r.type = type;
  memcpy(r.page, "https://p/", 11);
  memcpy(r.mqtt.topic, "plant", 6);
  memcpy(r.from, "a@b", 4);
  memcpy(r.to, "c@d", 4);
  if (template)
    assert_true(hk_notify_template_take(&r.template, template, error, sizeof error));
  return r;
}

static struct hk_told_of told(const struct hk_notice **notices, uint32_t n)
{
  return (struct hk_told_of){ .notice = notices, .n = n, .group = "", .id = 0xabc, .now = NOW };
}

static void has_all(const cJSON *object, const char *const *names, const char *but)
{
  for (; *names; names++)
    if (!strchr(*names, '.') && !strstr(but, *names) && !cJSON_HasObjectItem(object, *names))
      fail_msg("no `%s`", *names);
}

static void test_names_of_templates(void **state)
{
  (void)state;
  struct hk_notice one = alert("pump/a b", 1, 3, false), two = incident(7, HANKEL_INCIDENT_TOLD);
  one.test = true;
  one.logged.event.channel = HANKEL_NOVELTY;
  one.logged.event.novelty.channel = 1;
  const struct hk_notice *a[] = { &one }, *b[] = { &two };
  const struct hk_told_of of_a = told(a, 1), of_b = told(b, 1);
  const struct hk_notify_rule r = rule(HK_NOTIFY_WEBHOOK, NULL);
  cJSON *x = hk_view_message(&r, &of_a, "k"), *y = hk_view_message(&r, &of_b, "k");
  has_all(x, hk_notify_message_names, "");
  has_all(y, hk_notify_message_names, "");
  has_all(cJSON_GetArrayItem(cJSON_GetObjectItem(x, "alerts"), 0), hk_notify_alert_names, "limit");
  has_all(cJSON_GetArrayItem(cJSON_GetObjectItem(y, "alerts"), 0), hk_notify_incident_names, "");
  static const char *const fields[] = { "kind", "expected", "tolerance", "nearest", "oldest",
                                        "low",  "high",     "compared",  "reach",   NULL };
  has_all(cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(x, "alerts"), 0), "novelty"), fields, "");
  assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(x, "link")), "https://p/#sensor/pump%2Fa%20b");
  assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(y, "link")), "https://p/");
  cJSON_Delete(x);
  cJSON_Delete(y);
}

/* The body, with a 0 behind it. */
static char *body(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w)
{
  *m = (struct hk_notify_message){ 0 };
  assert_int_equal(hk_message_make(m, r, w), 0);
  hk_buffer_put(&m->body, "", 1);
  assert_false(m->body.failed);
  return m->body.data;
}

/* Times have more digits than a double. */
static void test_exact_times(void **state)
{
  (void)state;
  struct hk_notify_message m;
  struct hk_notice one = incident(7, HANKEL_INCIDENT_TOLD);
  const struct hk_notice *list[] = { &one };
  const struct hk_told_of w = told(list, 1);
  const struct hk_notify_rule r = rule(HK_NOTIFY_WEBHOOK, NULL);
  assert_non_null(strstr(body(&m, &r, &w), "\"time\":1795772400123456789,"));
  hk_message_free(&m);
}

static void test_templates(void **state)
{
  (void)state;
  const struct hk_notice x = alert("a\"<*", 1, 2.6f, false), y = alert("b", 2, 4, false), z = alert("c", 3, 3, true);
  const struct hk_notice *all[] = { &x, &y, &z };
  const struct hk_told_of what = told(all, 3);
  static const char each[] = "{{headline}}:{{#alerts}} {{sensor}} {{level}}{{/alerts}}";
  static const struct {
    uint32_t type;
    const char *template, *part;
  } cases[] = {
    { HK_NOTIFY_WEBHOOK, each, "2 alerts of 2 sensors, 1 over: a\"<* warning b severe c warning" }, /* plain text, as it is */
    { HK_NOTIFY_WEBHOOK, "{\"t\":\"{{#alerts}}{{sensor}}{{/alerts}}\"}", "{\"t\":\"a\\\"<*bc\"}" },
    { HK_NOTIFY_SLACK, each,
      "\"text\":\"2 alerts of 2 sensors, 1 over: b severe a\\\"&lt;* warning c warning\"" }, /* the gravest first */
    { HK_NOTIFY_TEAMS, "**{{headline}}**{{#alerts}} {{sensor}}{{/alerts}}",
      "\"text\":\"**2 alerts of 2 sensors, 1 over** b a\\\"\\\\<\\\\* c\"" },
    { HK_NOTIFY_EMAIL, "{{headline}}\\n{{#alerts}}\\n{{text}}\\n{{/alerts}}",
      "Subject: [hankeld] 2 alerts of 2 sensors, 1 over\r\n" },
    { HK_NOTIFY_PAGERDUTY, "{{headline}}\\nmore",
      "\"summary\":\"2 alerts of 2 sensors, 1 over\",\"source\":\"b\",\"severity\":\"critical\"" },
    { HK_NOTIFY_SYSLOG, "{{sensor}}\\n{{severity}} of {{firing}}", " a\"<* 2.6 of 2" },
    { HK_NOTIFY_ALERTMANAGER, "{{sensor}} by {{receiver}}", "\"summary\":\"a\\\"<* by x\"" },
    { HK_NOTIFY_MQTT, "{{sensor}} {{before}} {{after}} {{since}}", "plant/b/2\tb 71 93 2025-12-31T23:59:00Z\n" },
    { HK_NOTIFY_MQTT, "{\"s\":\"{{sensor}}\"}", "plant/a\"<*/1\t{\"s\":\"a\\\"<*\"}\n" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct hk_notify_rule r = rule(cases[i].type, cases[i].template);
    struct hk_notify_message m;
    if (!strstr(body(&m, &r, &what), cases[i].part))
      fail_msg("%zu: %s is not in %s", i, cases[i].part, m.body.data);
    hk_message_free(&m);
  }
}

/* A text that would be too long for a message is sent without the template. */
static void test_too_long(void **state)
{
  (void)state;
  enum { N = 4096 };
  struct hk_notice *notices = calloc(N, sizeof *notices);
  const struct hk_notice **all = calloc(N, sizeof *all);
  char name[500];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = 0;
  for (uint32_t i = 0; i < N; i++) {
    notices[i] = alert(name, i + 1, 3, false);
    all[i] = &notices[i];
  }
  const struct hk_told_of what = told(all, N);
  const struct hk_notify_rule r = rule(HK_NOTIFY_WEBHOOK, "{{#alerts}}{{sensor}}{{/alerts}}");
  struct hk_notify_message m;
  assert_string_equal(body(&m, &r, &what), "4096 alerts of 1 sensor\n");
  assert_string_equal(m.content_type, "text/plain; charset=utf-8");
  hk_message_free(&m);
  free(notices);
  free(all);
}

static void test_mqtt(void **state)
{
  (void)state;
  struct hk_notice x = alert("hall/+#%", 1, 3, false), y = alert("b", 2, 3, true), z = incident(7, HANKEL_INCIDENT_CLOSED);
  const struct hk_notice *all[] = { &x, &y, &z };
  const struct hk_told_of what = told(all, 3);
  const struct hk_notify_rule r = rule(HK_NOTIFY_MQTT, NULL);
  struct hk_notify_message m;
  const char *text = body(&m, &r, &what);
  static const struct {
    const char *topic;
    bool empty, retain;
  } wanted[] = { { "plant/hall/%2B%23%25/1", false, true },
                 { "plant/b/2", false, false },
                 { "plant/b/2", true, true },
                 { "plant/incident/7", false, false },
                 { "plant/incident/7", true, true } };
  assert_int_equal(m.n_pieces, 5);
  for (uint32_t i = 0; i < 5; i++) {
    const struct hk_notify_message_piece *p = &m.piece[i];
    assert_int_equal(p->topic_length, strlen(wanted[i].topic));
    assert_memory_equal(text + p->topic, wanted[i].topic, p->topic_length);
    assert_int_equal(p->payload_length == 0, wanted[i].empty);
    assert_int_equal(p->retain, wanted[i].retain);
    if (!wanted[i].empty) {
      cJSON *o = cJSON_ParseWithLength(text + p->payload, p->payload_length);
      assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(o, "status")), i == 0 ? "firing" : "resolved");
      cJSON_Delete(o);
    }
  }
  hk_message_free(&m);
}

static void test_pagerduty(void **state)
{
  (void)state;
  static const struct {
    enum hk_paging paging;
    const char *action, *key;
  } cases[] = { { HK_PAGE_TRIGGER, "trigger", "0000000000000abc-41" },
                { HK_PAGE_ACKNOWLEDGE, "acknowledge", "0000000000000abc-41-acknowledge" },
                { HK_PAGE_RESOLVE, "resolve", "0000000000000abc-41-resolve" } };
  const struct hk_notice one = alert("a", 1, 2, false), two = incident(7, HANKEL_INCIDENT_TOLD);
  const struct hk_notice *a[] = { &one }, *b[] = { &two };
  const struct hk_notify_rule r = rule(HK_NOTIFY_PAGERDUTY, NULL);
  for (size_t i = 0; i < 3; i++) {
    struct hk_told_of what = told(a, 1);
    struct hk_notify_message m;
    what.paging = cases[i].paging;
    cJSON *o = cJSON_Parse(body(&m, &r, &what)), *payload = cJSON_GetObjectItem(o, "payload");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(o, "event_action")), cases[i].action);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(o, "dedup_key")), "hankeld-0000000000000abc");
    assert_string_equal(m.key, cases[i].key);
    assert_int_equal(payload != NULL, cases[i].paging == HK_PAGE_TRIGGER);
    if (payload) {
      assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(payload, "severity")), "info");
      assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(payload, "timestamp")), "2025-12-31T23:59:00Z");
    }
    cJSON_Delete(o);
    hk_message_free(&m);
  }
  struct hk_notify_message m;
  const struct hk_told_of what = told(b, 1);
  assert_non_null(strstr(body(&m, &r, &what), "\"dedup_key\":\"hankeld-0000000000000abc-incident-7\""));
  assert_non_null(strstr(m.body.data, "\"summary\":\"2 sensors of pump\""));
  hk_message_free(&m);
}

/* For a change on a line: place, time, speed and direction. */
static void test_change_that_travels(void **state)
{
  (void)state;
  const struct hk_notify_rule r = rule(HK_NOTIFY_SLACK, NULL);
  for (int over = 0; over < 2; over++) {
    struct hk_notice one = alert("trunk#field", 1, 3, over);
    const struct hk_notice *list[] = { &one };
    struct hk_notify_message m;
    one.logged.event.channel = HANKEL_GROUP;
    one.logged.event.marks = HANKEL_TRAVELS;
    one.logged.event.after = 1450.5;
    one.logged.event.spread_after = -1000;
    one.logged.by = hk_string(over ? "" : "trunk/07/p");
    const struct hk_told_of what = told(list, 1);
    const char *text = body(&m, &r, &what);
    assert_non_null(
        strstr(text, over ? "over: a change began at position 1450.5 at 2025-12-31 23:59:00 UTC and travels at 1000 a second "
                            "towards lower positions"
                          : "a change began at position 1450.5, near trunk/07/p, at 2025-12-31 23:59:00 UTC and travels at "
                            "1000 a second towards lower positions"));
    hk_message_free(&m);
  }
}

/* What each channel reports, in the same words when an alert begins and when it is over: the values of a new shape, say, are no
 * levels. */
static void test_sentences_of_channels(void **state)
{
  (void)state;
  static const char since[] = "; since 2025-12-31 23:59:00 UTC";
  static const struct {
    uint8_t channel, novelty;
    const char *said;
  } channels[] = {
    { HANKEL_SCORE, 0, "x: looks unlike before: level 71 before, 93 after" },
    { HANKEL_CHANGE, 0, "x: behaves differently: level 71 before, 93 after" },
    { HANKEL_SHIFT, 0, "x: level went from 71 to 93" },
    { HANKEL_GROUP, 0, "x: its sensors, taken together, behave differently: the one that differs most went from 71 to 93" },
    { HANKEL_NOVELTY, 0, "x: does what it has not done before: 93, where 71 was expected" },
    { HANKEL_NOVELTY, HANKEL_NOVELTY_VALUE, "x: value 93 is the highest in 400 points" },
    { HANKEL_NOVELTY, HANKEL_NOVELTY_SHAPE, "x: shape not seen in 400 points" },
  };
  const struct hk_notify_rule r = rule(HK_NOTIFY_SLACK, NULL);
  for (size_t i = 0; i < 2 * sizeof channels / sizeof *channels; i++) {
    const bool over = i % 2;
    struct hk_notice one = alert("x", 1, 3, over);
    const struct hk_notice *list[] = { &one };
    struct hk_notify_message m;
    one.logged.event.channel = channels[i / 2].channel;
    one.logged.event.novelty = (struct hk_novelty_note){
      .channel = channels[i / 2].novelty, .compared = 400, .oldest = NOW, .nearest = NOW, .low = 50, .high = 71
    };
    const struct hk_told_of what = told(list, 1);
    const char *text = body(&m, &r, &what), *said = channels[i / 2].said + sizeof "x:";
    assert_non_null(strstr(text, said));
    assert_int_equal(over, strstr(text, "over: ") != NULL);
    assert_non_null(strstr(strstr(text, said), since));
    hk_message_free(&m);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_names_of_templates),
                                      cmocka_unit_test(test_exact_times),
                                      cmocka_unit_test(test_templates),
                                      cmocka_unit_test(test_too_long),
                                      cmocka_unit_test(test_mqtt),
                                      cmocka_unit_test(test_pagerduty),
                                      cmocka_unit_test(test_change_that_travels),
                                      cmocka_unit_test(test_sentences_of_channels) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
