/* [cluster]: values that its keys take, and values that they refuse. */
#include "daemon/config/cluster_rule.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char error[512];

/* Sets keys from lines `key = value`. The message, or "". */
static const char *read_rule(struct hk_cluster_rule *r, const char *lines)
{
  char text[1024], *rest = text;
  memset(r, 0, sizeof *r);
  hk_cluster_rule_begin(r);
  snprintf(text, sizeof text, "%s", lines);
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    char *value = strstr(line, " = ");
    assert_non_null(value);
    *value = 0;
    if (hk_cluster_rule_key(r, line, value + 3, error, sizeof error) != 0)
      return error;
  }
  return hk_cluster_rule_finish(r, error, sizeof error) != 0 ? error : "";
}

static void test_defaults(void **state)
{
  (void)state;
  struct hk_cluster_rule r;
  assert_string_equal(read_rule(&r, "role = gateway\nurl = amqp://b"), "");
  assert_int_equal(r.role, HK_CLUSTER_GATEWAY);
  assert_int_equal(r.partitions, 64);
  assert_int_equal(r.n_brokers, 1);
  assert_int_equal(r.broker[0].port, 5672);
  assert_string_equal(r.name, "hankeld");
  assert_string_equal(r.vhost, "/");
  assert_int_equal(r.retention / 1000000000, 7 * 86400);
  assert_true(hk_cluster_reads(&r, 63));
  assert_false(hk_cluster_reads(&r, 64));
}

static void test_brokers(void **state)
{
  (void)state;
  struct hk_cluster_rule r;
  assert_string_equal(read_rule(&r, "role = scorer\nurl = amqps://a, amqps://[::1]:9,amqps://c:65535"), "");
  assert_int_equal(r.n_brokers, 3);
  assert_string_equal(r.broker[1].host, "::1");
  assert_int_equal(r.broker[0].port, 5671);
  assert_int_equal(r.broker[1].port, 9);
  assert_int_equal(r.broker[2].port, 65535);
  assert_true(r.broker[2].tls);
  static const char *const bad[] = { "http://a",
                                     "amqp://",
                                     "amqp://a:",
                                     "amqp://a:0",
                                     "amqp://a:65536",
                                     "amqp://a:1x",
                                     "amqp://u:p@a",
                                     "amqp://a/vhost",
                                     "amqp://[::1",
                                     "amqp://a, amqps://b",
                                     "amqp://a amqp",
                                     ",",
                                     "amqp://1,amqp://2,amqp://3,amqp://4,amqp://5,amqp://6,amqp://7,amqp://8,amqp://9" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char lines[300];
    snprintf(lines, sizeof lines, "role = gateway\nurl = %s", bad[i]);
    if (read_rule(&r, lines)[0] == 0)
      fail_msg("%s is taken", bad[i]);
  }
}

static void test_partitions_that_are_read(void **state)
{
  (void)state;
  struct hk_cluster_rule r;
  assert_string_equal(read_rule(&r, "role = scorer\nurl = amqp://b\npartitions = 8\nread = 0-2, 5 ,7"), "");
  for (uint32_t i = 0; i < 8; i++)
    assert_int_equal(hk_cluster_reads(&r, i), i <= 2 || i == 5 || i == 7);
  assert_string_equal(read_rule(&r, "role = scorer\nurl = amqp://b\nread = 5\nread = all"), "");
  assert_true(hk_cluster_reads(&r, 9));
  static const char *const bad[] = { "", "-", "1-", "-1", "2-1", "1,,2", "1,", "1024", "99999999999", "8", "1 2", "x" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char lines[300];
    snprintf(lines, sizeof lines, "role = scorer\nurl = amqp://b\npartitions = 8\nread = %s", bad[i]);
    if (read_rule(&r, lines)[0] == 0)
      fail_msg("read = %s is taken", bad[i]);
  }
}

static void test_what_does_not_go_together(void **state)
{
  (void)state;
  static const struct {
    const char *lines, *why;
  } cases[] = {
    { "url = amqp://b", "needs role" },
    { "role = both\nurl = amqp://b", "not all, gateway or scorer" },
    { "role = all\nurl = amqp://b", "needs state = shared:DIR" },
    { "role = all\nurl = amqp://b\nread = 1\nstate = shared:/d", "do not go together" },
    { "role = gateway", "needs url" },
    { "role = gateway\nurl = amqp://b\nread = 1", "are for machines that score" },
    { "role = gateway\nurl = amqp://b\nstate = shared:/d", "are for machines that score" },
    { "role = scorer\nurl = amqp://b\nread = 1\nstate = shared:/d", "do not go together" },
    { "role = scorer\nurl = amqp://b\nstate = /d", "not shared:DIR" },
    { "role = scorer\nurl = amqp://b\nstate = shared:d", "not shared:DIR" },
    { "role = gateway\nurl = amqp://b\nca = /x", "are for url = amqps://" },
    { "role = gateway\nurl = amqps://b\nkey = /x", "are needed together" },
    { "role = gateway\nurl = amqps://b\nuser = u", "user and password_file are needed together" },
    { "role = gateway\nurl = amqp://b\nuser = u\npassword_file = /p", "would go unencrypted" },
    { "role = gateway\nurl = amqp://127.0.0.1, amqp://b\nuser = u\npassword_file = /p", "would go unencrypted" },
    { "role = gateway\nurl = amqp://b\nname = amq.x", "does not begin with" },
    { "role = gateway\nurl = amqp://b\npartitions = 0", "not a number from 1 to 1024" },
    { "role = gateway\nurl = amqp://b\npartitions = 1025", "not a number from 1 to 1024" },
    { "role = gateway\nurl = amqp://b\nretention = 1m", "not a duration from 1h" },
    { "role = gateway\nurl = amqp://b\nengine = nats", "not rabbitmq or kafka" },
    { "role = gateway\nurl = amqp://b\nengine = kafka", "needs url = kafka://HOST" },
    { "role = gateway\nurl = kafka://b", "needs url = amqp://HOST" },
    { "role = gateway\nurl = amqp://b\nsession = 10s", "are for engine = kafka" },
    { "role = gateway\nurl = amqp://b\nsasl = scram-sha-256", "are for engine = kafka" },
    { "role = gateway\nurl = amqp://b\nlease = 1s", "has no key `lease`" },
  };
  struct hk_cluster_rule r;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (!strstr(read_rule(&r, cases[i].lines), cases[i].why))
      fail_msg("%s: %s", cases[i].lines, error);
  assert_string_equal(read_rule(&r, "role = all\nurl = amqp://b\nstate = shared:/d"), "");
  assert_string_equal(read_rule(&r, "role = gateway\nurl = amqp://127.0.0.1\nuser = u\npassword_file = /p"), "");
  assert_string_equal(read_rule(&r, "role = gateway\nurl = amqp://b\nuser = u\npassword_file = /p\ninsecure = yes"), "");
}

static void test_kafka(void **state)
{
  (void)state;
  static const struct {
    const char *lines, *why;
  } cases[] = {
    { "url = kafka://b\nvhost = x", "vhost is for engine = rabbitmq" },
    { "url = kafka://b, kafkas://c", "do not go together" },
    { "url = b:9092,c", "needs url = kafka://HOST" },
    { "url = kafka://b,c:x", "needs url = kafka://HOST" },
    { "url = kafka://b\nca = /x", "are for url = kafkas://" },
    { "url = kafka://b\nuser = u\npassword_file = /p", "take url = kafkas://" },
    { "url = kafka://b\nname = a b", "names of Kafka's topics" },
    { "url = kafka://b\nsasl = gssapi", "not plain, scram-sha-256 or scram-sha-512" },
    { "url = kafka://b\nsession = 0.5s", "not a duration from 1s to 30min" },
  };
  struct hk_cluster_rule r;
  char lines[300];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(lines, sizeof lines, "engine = kafka\nrole = gateway\n%s", cases[i].lines);
    if (!strstr(read_rule(&r, lines), cases[i].why))
      fail_msg("%s: %s", lines, error);
  }
  assert_string_equal(read_rule(&r, "role = gateway\nengine = kafka\nurl = kafkas://a,b:1, kafkas://[::1],c"), "");
  assert_int_equal(r.n_brokers, 4);
  assert_int_equal(r.broker[0].port, 9093);
  assert_int_equal(r.broker[1].port, 1);
  assert_string_equal(r.broker[3].host, "c");
  assert_true(r.broker[1].tls && r.broker[3].tls);
  assert_int_equal(r.session / 1000000000, 10);
  assert_string_equal(read_rule(&r, "role = gateway\nengine = kafka\nurl = kafka://a\nsession = 1min\nsasl = scram-sha-512"), "");
  assert_int_equal(r.broker[0].port, 9092);
  assert_int_equal(r.session / 1000000000, 60);
  assert_int_equal(r.sasl, HK_SASL_SCRAM_512);
  assert_string_equal(read_rule(&r, "role = gateway\nurl = amqp://a"), "");
  assert_int_equal(r.session, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_defaults),
    cmocka_unit_test(test_brokers),
    cmocka_unit_test(test_partitions_that_are_read),
    cmocka_unit_test(test_what_does_not_go_together),
    cmocka_unit_test(test_kafka),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
