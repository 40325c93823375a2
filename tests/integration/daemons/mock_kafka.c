/* Kafka's brokers as librdkafka mocks them, in memory, for other programs: prints their addresses, then does what its standard
 * input says, a line at a time, and answers each with a line, `ok` or what was wrong. It ends with its input.
 *
 *     topic NAME PARTITIONS          makes one: these brokers cannot be asked to
 *     put NAME PARTITION TEXT        a message
 *     down [BROKER] | up             all brokers, or one: connections are closed, and none is taken; they keep what they have
 *     delay MS                       of all answers
 *     fail REQUEST ERROR TIMES       the next requests of that kind, by Kafka's numbers for both */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 1024
#define PATIENCE 10000 /* ms */

struct mock {
  int brokers;
  rd_kafka_t *rk;
  rd_kafka_mock_cluster_t *cluster;
};

static rd_kafka_resp_err_t put(const struct mock *m, const char *name, int partition, char *text)
{
  rd_kafka_resp_err_t error =
      rd_kafka_producev(m->rk, RD_KAFKA_V_TOPIC(name), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_VALUE(text, strlen(text)),
                        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
  return error ? error : rd_kafka_flush(m->rk, PATIENCE);
}

/* Orders a broker, or with 0 all, to be up, or down, or to take so many ms for its answers. */
static rd_kafka_resp_err_t order(const struct mock *m, const char *what, int broker, int ms)
{
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  for (int i = broker > 0 ? broker : 1; i <= (broker > 0 ? broker : m->brokers) && !error; i++)
    error = strcmp(what, "up") == 0     ? rd_kafka_mock_broker_set_up(m->cluster, i)
            : strcmp(what, "down") == 0 ? rd_kafka_mock_broker_set_down(m->cluster, i)
                                        : rd_kafka_mock_broker_set_rtt(m->cluster, i, ms);
  return error;
}

/* Does what a line says. Returns NULL, or what is wrong. */
static const char *obey(const struct mock *m, const char *line)
{
  char name[LINE], text[LINE];
  int a, b, c;
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  if (sscanf(line, "topic %1023s %d", name, &a) == 2)
    error = rd_kafka_mock_topic_create(m->cluster, name, a, m->brokers);
  else if (sscanf(line, "put %1023s %d %1023[^\n]", name, &a, text) == 3)
    error = put(m, name, a, text);
  else if (sscanf(line, "delay %d", &a) == 1)
    error = order(m, "delay", 0, a);
  else if (sscanf(line, "down %d", &a) == 1)
    error = order(m, "down", a, 0);
  else if (strcmp(line, "down") == 0 || strcmp(line, "up") == 0)
    error = order(m, line, 0, 0);
  else if (sscanf(line, "fail %d %d %d", &a, &b, &c) == 3)
    for (; c > 0; c--)
      rd_kafka_mock_push_request_errors(m->cluster, (int16_t)a, 1, (rd_kafka_resp_err_t)b);
  else
    return "not understood";
  return error ? rd_kafka_err2str(error) : NULL;
}

int main(int argc, char **argv)
{
  char line[LINE], wrong[200];
  struct mock m = { .brokers = argc > 1 ? atoi(argv[1]) : 1 };
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  char brokers[16];
  snprintf(brokers, sizeof brokers, "%d", m.brokers);
  if (rd_kafka_conf_set(conf, "test.mock.num.brokers", brokers, wrong, sizeof wrong) != RD_KAFKA_CONF_OK ||
      !(m.rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, wrong, sizeof wrong))) {
    fprintf(stderr, "mock_kafka: %s\n", wrong);
    return 1;
  }
  m.cluster = rd_kafka_handle_mock_cluster(m.rk);
  printf("%s\n", rd_kafka_mock_cluster_bootstraps(m.cluster));
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    const char *why = obey(&m, line);
    printf("%s\n", why ? why : "ok");
    fflush(stdout);
  }
  rd_kafka_destroy(m.rk);
  return 0;
}
