#include "daemon/bridge/engine_kafka_client.h"

#include "cpu/sonames.h"
#include "proto/wire/secret_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PASSWORD_MOST 4096
#define AHEAD "4096"      /* KiB of a partition that the library reads ahead */
#define AT_ONCE "1048576" /* bytes of a partition in one answer, or one message */

struct hk_kafka hk_kafka;
static struct hk_library kafka_library = HK_LIBRARY(HK_SONAME_RDKAFKA, hk_kafka, HK_KAFKA_CALLS);

struct setting {
  const char *name, *value;
};

int hk_kafka_why(char why[HK_ENGINE_WHY], const char *what, const char *text)
{
  const char *after = strstr(text, " (after "); /* how long it took */
  const size_t length = after ? (size_t)(after - text) : strlen(text);
  snprintf(why, HK_ENGINE_WHY, "%s%s%.*s", what, what[0] ? ": " : "", (int)(length < 200 ? length : 200), text);
  for (char *p = why; *p; p++)
    if ((unsigned char)*p < ' ' || *p == 0x7f)
      *p = '?'; /* the broker's text may have control characters */
  return -EPIPE;
}

int hk_kafka_client_error(struct hk_kafka_client *c, rd_kafka_resp_err_t error, const char *text)
{
  switch (error) {
  case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN: /* its text is a number; the error before it says why */
    if (!c->said[0])
      (void)hk_kafka_why(c->said, "", "it has closed the connection, and no broker is left");
    return c->status = -EPIPE;
  case RD_KAFKA_RESP_ERR__FATAL:
  case RD_KAFKA_RESP_ERR__AUTHENTICATION:
  case RD_KAFKA_RESP_ERR__SSL:
  case RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE:
  case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
  case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
  case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
  case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
    return c->status = hk_kafka_why(c->said, "", text);
  default:
    if (c->status == 0)
      (void)hk_kafka_why(c->said, "", text);
    return c->status;
  }
}

static void member_error(rd_kafka_t *rk, int error, const char *text, void *client)
{
  (void)rk;
  (void)hk_kafka_client_error(client, error, text);
}

/* --- settings -------------------------------------------------------------------------------------------------------------- */

static void log_nothing(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
  (void)rk; /* what concerns us comes as an error, too */
  (void)level;
  (void)facility;
  (void)text;
}

/* Sets what has a value. Returns 0, or -EINVAL with why. */
static int set_each(rd_kafka_conf_t *conf, const struct setting *settings, size_t n, char why[HK_ENGINE_WHY])
{
  char wrong[200];
  for (size_t i = 0; i < n; i++)
    if (settings[i].value && settings[i].value[0] &&
        hk_kafka.conf_set(conf, settings[i].name, settings[i].value, wrong, sizeof wrong) != RD_KAFKA_CONF_OK) {
      (void)hk_kafka_why(why, "", wrong);
      return -EINVAL;
    }
  return 0;
}
#define SET(conf, settings, why) set_each(conf, settings, sizeof(settings) / sizeof *(settings), why)

static int set_login(rd_kafka_conf_t *conf, const struct hk_cluster_rule *rule, char why[HK_ENGINE_WHY])
{
  static const char *const mechanisms[] = { "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512" }; /* enum hk_cluster_sasl */
  const bool tls = rule->broker[0].tls, named = rule->password[0];
  char *password = NULL, wrong[HK_SECRET_WHY];
  size_t size = 0;
  if (named && hk_secret_read(rule->password, PASSWORD_MOST, HK_SECRET_FILE, &password, &size, wrong) != 0)
    return hk_kafka_why(why, "password_file", wrong);
  if (password)
    password[strcspn(password, "\r\n")] = 0;
  const struct setting settings[] = { { "security.protocol", tls     ? named ? "sasl_ssl" : "ssl"
                                                             : named ? "sasl_plaintext"
                                                                     : "plaintext" },
                                      { "ssl.ca.location", rule->ca },
                                      { "ssl.certificate.location", rule->certificate },
                                      { "ssl.key.location", rule->key },
                                      { "ssl.endpoint.identification.algorithm", tls ? "https" : "" },
                                      { "sasl.mechanisms", named ? mechanisms[rule->sasl] : "" },
                                      { "sasl.username", rule->user },
                                      { "sasl.password", password } };
  const int status = SET(conf, settings, why);
  hk_secret_free(password, size);
  return status;
}

static int set_common(rd_kafka_conf_t *conf, const struct hk_broker_address *b, char why[HK_ENGINE_WHY])
{
  char address[HK_SECTION_TEXT + 16], silence[16];
  const bool six = strchr(b->host, ':') != NULL;
  snprintf(address, sizeof address, "%s%s%s:%u", six ? "[" : "", b->host, six ? "]" : "", b->port);
  snprintf(silence, sizeof silence, "%u", HK_ENGINE_SILENCE * 1000);
  const struct setting settings[] = { { "bootstrap.servers", address },       { "client.id", "hankeld" },
                                      { "socket.timeout.ms", silence },       { "reconnect.backoff.ms", "100" },
                                      { "reconnect.backoff.max.ms", "1000" }, { "log.connection.close", "false" } };
  return SET(conf, settings, why);
}

/* A message is sent at once, is in its log once, and in order. */
static int set_writer(rd_kafka_conf_t *conf, char why[HK_ENGINE_WHY])
{
  char most[16], patience[16];
  snprintf(most, sizeof most, "%u", HK_ENGINE_MESSAGE_MAX + 65536);
  snprintf(patience, sizeof patience, "%u", HK_ENGINE_SILENCE * 1000);
  const struct setting settings[] = {
    { "enable.idempotence", "true" }, { "linger.ms", "0" }, { "message.max.bytes", most }, { "message.timeout.ms", patience }
  };
  return SET(conf, settings, why);
}

static int set_reader(rd_kafka_conf_t *conf, char why[HK_ENGINE_WHY])
{
  const struct setting settings[] = { { "auto.offset.reset", "earliest" },     { "enable.auto.commit", "false" },
                                      { "enable.auto.offset.store", "false" }, { "check.crcs", "true" },
                                      { "queued.max.messages.kbytes", AHEAD }, { "fetch.message.max.bytes", AT_ONCE },
                                      { "fetch.wait.max.ms", "100" } };
  return SET(conf, settings, why);
}

static int set_member(rd_kafka_conf_t *conf, const struct hk_cluster_rule *rule, const char *group, char why[HK_ENGINE_WHY])
{
  const int64_t session = rule->session / 1000000, thinks = session > 60000 ? session : 60000;
  char silent[24], beat[24], longest[24];
  snprintf(silent, sizeof silent, "%" PRId64, session);
  snprintf(beat, sizeof beat, "%" PRId64, session / 4);
  snprintf(longest, sizeof longest, "%" PRId64, thinks);
  const struct setting settings[] = { { "group.id", group },
                                      { "partition.assignment.strategy", "cooperative-sticky" },
                                      { "session.timeout.ms", silent },
                                      { "heartbeat.interval.ms", beat },
                                      { "max.poll.interval.ms", longest } };
  return SET(conf, settings, why);
}

/* --- clients --------------------------------------------------------------------------------------------------------------- */

static int set_all(rd_kafka_conf_t *conf, const struct hk_kafka_setup *s, char why[HK_ENGINE_WHY])
{
  int status = set_common(conf, &s->rule->broker[s->broker], why);
  if (status == 0)
    status = set_login(conf, s->rule, why);
  if (status == 0)
    status = s->what == HK_KAFKA_WRITER ? set_writer(conf, why) : set_reader(conf, why);
  if (status == 0 && s->what == HK_KAFKA_MEMBER)
    status = set_member(conf, s->rule, s->group, why);
  switch (s->what) {
  case HK_KAFKA_WRITER:
    hk_kafka.conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
    break;
  case HK_KAFKA_READER:
    hk_kafka.conf_set_events(conf, RD_KAFKA_EVENT_ERROR);
    break;
  case HK_KAFKA_MEMBER: /* callbacks: the library counts its polls, and gives up on a member that stops polling */
    hk_kafka.conf_set_rebalance_cb(conf, s->rebalance);
    hk_kafka.conf_set_error_cb(conf, member_error);
    break;
  }
  return status;
}

int hk_kafka_client_open(struct hk_kafka_client *out, const struct hk_kafka_setup *s)
{
  static const uint64_t one = 1;
  char wrong[200];
  *out = (struct hk_kafka_client){ .status = 0 };
  if (hk_library_load(&kafka_library, out->said, sizeof out->said) != 0)
    return -ELIBACC;
  rd_kafka_conf_t *conf = hk_kafka.conf_new();
  hk_kafka.conf_set_log_cb(conf, log_nothing);
  hk_kafka.conf_set_opaque(conf, out);
  int status = set_all(conf, s, out->said);
  if (status == 0) {
    out->rk = hk_kafka.new(s->what == HK_KAFKA_WRITER ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, wrong, sizeof wrong);
    status = out->rk ? 0 : hk_kafka_why(out->said, "", wrong);
  }
  if (status != 0) {
    hk_kafka.conf_destroy(conf); /* rd_kafka_new would own it */
    return status;
  }
  if (s->what == HK_KAFKA_MEMBER)
    (void)hk_kafka.poll_set_consumer(out->rk);
  out->queue = s->what == HK_KAFKA_MEMBER ? hk_kafka.queue_get_consumer(out->rk) : hk_kafka.queue_get_main(out->rk);
  hk_kafka.queue_io_event_enable(out->queue, s->wake, &one, sizeof one);
  return 0;
}

void hk_kafka_client_close(struct hk_kafka_client *c)
{
  if (!c->rk)
    return;
  hk_kafka.queue_io_event_enable(c->queue, -1, NULL, 0);
  hk_kafka.queue_destroy(c->queue);
  hk_kafka.destroy_flags(c->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  c->rk = NULL;
}
