/* Kafka (librdkafka). EXPERIMENTAL: it has run against the library's mock brokers only. A partition's log is the partition of
 * that number of the topic NAME.points; those of events and scores are the only partitions of NAME.events and NAME.scores.
 *
 *  - Writing: an idempotent producer, so that a message that the library sends again is in its log once, and in order. A message
 *    is confirmed when all replicas in sync have it (the topic's min.insync.replicas says how many these are at least).
 *  - Reading: from offsets of ours; none are stored at the broker.
 *  - Leases: engine_kafka_group.h. A holder that has lost its lease and does not know writes nothing that matters, as engine.h
 *    wants it; so no transactions are needed to keep it out.
 *  - The library connects and reconnects by itself, and follows partitions whose leader has changed. A connection is lost when it
 *    reaches no broker at all, or when a message has not been confirmed for HK_ENGINE_SILENCE.
 *
 * One engine stands for a connection, but has up to three clients of the library, which have connections of their own. An engine
 * `beside` another is only a lease of it, and a queue of messages from its reader. */
#include "daemon/bridge/engine_kafka_client.h"
#include "daemon/bridge/engine_kafka_group.h"

#include "daemon/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define AHEAD 16u    /* messages that are handed out before the first of them is processed */
#define FIRST_TRY 50 /* ms for the first answer of a broker; doubled */
#define MOMENT 20    /* ms until a new topic is looked at again */
#define NAME_MOST (HK_SECTION_TEXT + 16)
#define SCORES_MS "600000"       /* for which scores are kept, */
#define SCORES_BYTES "268435456" /* and how many bytes of them at most */

enum topic { POINTS, EVENTS, SCORES, TOPICS };
static const char *const topic_ends[TOPICS] = { "points", "events", "scores" };
#define PLACES (HK_PARTITIONS_MAX + TOPICS - 1) /* partitions of the points, and those of other topics */

struct kafka {
  struct hk_broker_engine engine;
  const struct hk_cluster_rule *rule;
  struct kafka *beside; /* whose lease this is; NULL: it stands alone */
  uint32_t broker;
  int wake;                    /* eventfd: events may wait */
  rd_kafka_queue_t *came;      /* messages of the followed partitions; NULL: none is followed */
  rd_kafka_message_t *message; /* the last one handed out */
  uint32_t ahead;              /* messages handed out since `took` */
  uint8_t follows[PLACES];     /* by follow_place */
  uint32_t leased;             /* partition of the lease; with `waits` */
  bool waits;
  struct hk_kafka_lease lease;
  /* of one that stands alone: */
  struct hk_kafka_client writer, reader;
  rd_kafka_topic_t *to[TOPICS], *from[TOPICS];
  bool there[TOPICS];         /* the topic exists */
  uint64_t sent;              /* number of the last message */
  rd_kafka_event_t *confirms; /* of several messages; NULL: none */
  struct hk_kafka_group *group;
};

static struct kafka *kafka_of(struct hk_broker_engine *e)
{
  return (struct kafka *)e;
}

static int kafka_lost(struct kafka *k, const char *what, const char *why)
{
  return hk_kafka_why(k->engine.why, what, why);
}

static enum topic topic_of(uint32_t partition)
{
  return partition == HK_ENGINE_EVENTS ? EVENTS : partition == HK_ENGINE_SCORES ? SCORES : POINTS;
}

/* Its number in its topic. */
static int32_t topic_number(uint32_t partition)
{
  return topic_of(partition) == POINTS ? (int32_t)partition : 0;
}

static uint32_t follow_place(uint32_t partition)
{
  const uint32_t t = topic_of(partition);
  return t == POINTS ? partition : HK_PARTITIONS_MAX + t - 1;
}

static const char *topic_name(const struct kafka *k, enum topic topic, char name[NAME_MOST])
{
  snprintf(name, NAME_MOST, "%s.%s", k->rule->name, topic_ends[topic]);
  return name;
}

static void pause_ms(long ms)
{
  const struct timespec moment = { 0, ms * 1000000 };
  (void)nanosleep(&moment, NULL);
}

static void wake_up(const struct kafka *k)
{
  const uint64_t one = 1;
  const ssize_t n = write(k->wake, &one, sizeof one);
  (void)n; /* it is readable already */
}

/* --- connecting ------------------------------------------------------------------------------------------------------------ */

/* Takes the errors of a client; what else comes is left out. */
static int look_at_errors(struct kafka *k, struct hk_kafka_client *client)
{
  rd_kafka_event_t *e;
  while (client->rk && client->status == 0 && (e = hk_kafka.queue_poll(client->queue, 0)) != NULL) {
    if (hk_kafka.event_type(e) == RD_KAFKA_EVENT_ERROR)
      (void)hk_kafka_client_error(client, hk_kafka.event_error(e), hk_kafka.event_error_string(e));
    hk_kafka.event_destroy(e);
  }
  return client->status == 0 ? 0 : kafka_lost(k, "", client->said);
}

/* Waits until a broker answers: the library would retry for ever, and report it only after a while. */
static int greet(struct kafka *k)
{
  const int64_t until = hk_now() + HK_ENGINE_WAIT * 1000000000ll;
  int wait = FIRST_TRY, status = 0;
  while (status == 0) {
    const struct rd_kafka_metadata *m;
    const rd_kafka_resp_err_t error = hk_kafka.metadata(k->writer.rk, 0, NULL, &m, wait);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      hk_kafka.metadata_destroy(m);
      return 0;
    }
    status = look_at_errors(k, &k->writer);
    if (status == 0 && hk_now() > until)
      status = kafka_lost(k, "", k->writer.said[0] ? k->writer.said : "it does not answer");
    wait = wait < 1000 ? 2 * wait : wait;
  }
  return status;
}

static int open_client(struct kafka *k, struct hk_kafka_client *client, enum hk_kafka_what what)
{
  const struct hk_kafka_setup setup = { .what = what, .rule = k->rule, .broker = k->broker, .wake = k->wake };
  const int status = client->rk ? 0 : hk_kafka_client_open(client, &setup);
  return status == 0 ? 0 : kafka_lost(k, "", client->said);
}

static void stop_following(struct kafka *k)
{
  const struct kafka *main = k->beside ? k->beside : k;
  for (uint32_t i = 0; i < PLACES; i++) {
    const uint32_t t = i < HK_PARTITIONS_MAX ? POINTS : i - HK_PARTITIONS_MAX + 1;
    if (k->follows[i])
      (void)hk_kafka.consume_stop(main->from[t], t == POINTS ? (int32_t)i : 0);
  }
  if (k->message)
    hk_kafka.message_destroy(k->message);
  if (k->came)
    hk_kafka.queue_destroy(k->came);
}

static void kafka_close(struct hk_broker_engine *e)
{
  struct kafka *k = kafka_of(e);
  stop_following(k);
  if (k->beside && k->waits && hk_kafka_group_leave(k->beside->group, topic_number(k->leased)) == 0) {
    hk_kafka_group_close(k->beside->group); /* it waits for nothing: others share the partitions */
    k->beside->group = NULL;
  }
  hk_kafka_group_close(k->group);
  if (k->confirms)
    hk_kafka.event_destroy(k->confirms);
  if (k->writer.rk)
    (void)hk_kafka.purge(k->writer.rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
  for (int i = 0; i < TOPICS; i++) {
    if (k->to[i])
      hk_kafka.topic_destroy(k->to[i]);
    if (k->from[i])
      hk_kafka.topic_destroy(k->from[i]);
  }
  hk_kafka_client_close(&k->writer);
  hk_kafka_client_close(&k->reader);
  if (k->wake >= 0)
    close(k->wake);
  free(k);
}

static int kafka_open(struct hk_broker_engine **out, const struct hk_cluster_rule *rule, uint32_t broker,
                      struct hk_broker_engine *beside, char why[HK_ENGINE_WHY])
{
  struct kafka *k = calloc(1, sizeof *k);
  snprintf(why, HK_ENGINE_WHY, "no memory");
  if (!k)
    return -ENOMEM;
  k->engine.kind = &hk_engine_kafka;
  k->rule = rule;
  k->broker = broker;
  k->beside = beside ? kafka_of(beside) : NULL;
  k->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  int status = k->wake < 0 ? kafka_lost(k, "", strerror(errno)) : 0;
  if (status == 0 && !beside)
    status = open_client(k, &k->writer, HK_KAFKA_WRITER);
  if (status == 0 && !beside)
    status = greet(k);
  if (status == 0) {
    *out = &k->engine;
    return 0;
  }
  snprintf(why, HK_ENGINE_WHY, "%s", k->engine.why);
  kafka_close(&k->engine);
  return status;
}

static int kafka_fd(const struct hk_broker_engine *e)
{
  return ((const struct kafka *)e)->wake;
}

/* --- topics ---------------------------------------------------------------------------------------------------------------- */

/* Waits for the answer to a request for a topic. The answer that it exists already is fine. */
static int wait_for_topic(struct kafka *k, const char *name, rd_kafka_queue_t *queue)
{
  size_t n = 0;
  rd_kafka_event_t *e = hk_kafka.queue_poll(queue, HK_ENGINE_WAIT * 1000);
  if (!e)
    return kafka_lost(k, name, "it is not made in time");
  rd_kafka_resp_err_t error = hk_kafka.event_error(e);
  char text[200];
  snprintf(text, sizeof text, "%s", hk_kafka.event_error_string(e));
  const rd_kafka_CreateTopics_result_t *made = error ? NULL : hk_kafka.event_CreateTopics_result(e);
  const rd_kafka_topic_result_t **each = made ? hk_kafka.CreateTopics_result_topics(made, &n) : NULL;
  if (n > 0) {
    const char *said = hk_kafka.topic_result_error_string(each[0]);
    error = hk_kafka.topic_result_error(each[0]);
    snprintf(text, sizeof text, "%s", said ? said : hk_kafka.err2str(error));
  }
  hk_kafka.event_destroy(e);
  return error && error != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS ? kafka_lost(k, name, text) : 0;
}

/* Makes a topic, with the broker's own number of replicas. */
static int make_topic(struct kafka *k, enum topic t, const char *name, int partitions)
{
  char wrong[200], kept[24], most[16];
  snprintf(kept, sizeof kept, "%" PRId64, k->rule->retention / 1000000);
  snprintf(most, sizeof most, "%u", HK_ENGINE_MESSAGE_MAX + 65536);
  rd_kafka_NewTopic_t *topic = hk_kafka.NewTopic_new(name, partitions, -1, wrong, sizeof wrong);
  if (!topic)
    return kafka_lost(k, name, wrong);
  (void)hk_kafka.NewTopic_set_config(topic, "retention.ms", t == SCORES ? SCORES_MS : kept);
  if (t == SCORES)
    (void)hk_kafka.NewTopic_set_config(topic, "retention.bytes", SCORES_BYTES);
  (void)hk_kafka.NewTopic_set_config(topic, "max.message.bytes", most);
  (void)hk_kafka.NewTopic_set_config(topic, "cleanup.policy", "delete");
  rd_kafka_queue_t *queue = hk_kafka.queue_new(k->writer.rk);
  hk_kafka.CreateTopics(k->writer.rk, &topic, 1, NULL, queue);
  const int status = wait_for_topic(k, name, queue);
  hk_kafka.queue_destroy(queue);
  hk_kafka.NewTopic_destroy(topic);
  return status;
}

/* Asks the broker about a topic: the number of its partitions; 0: it is not ready; -ENOENT: there is none; -EPIPE. */
static int look_at_topic(struct kafka *k, enum topic t, const char *name)
{
  const struct rd_kafka_metadata *m;
  const rd_kafka_resp_err_t error = hk_kafka.metadata(k->writer.rk, 0, k->to[t], &m, HK_ENGINE_WAIT * 1000);
  if (error)
    return kafka_lost(k, name, hk_kafka.err2str(error));
  const rd_kafka_resp_err_t of_it = m->topic_cnt == 1 ? m->topics[0].err : RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
  const int partitions = m->topic_cnt == 1 ? m->topics[0].partition_cnt : 0;
  hk_kafka.metadata_destroy(m);
  if (of_it == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    return -ENOENT;
  if (of_it == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
    return 0;
  return of_it ? kafka_lost(k, name, hk_kafka.err2str(of_it)) : partitions;
}

static int kafka_log(struct hk_broker_engine *e, uint32_t partition)
{
  struct kafka *k = kafka_of(e);
  const enum topic t = topic_of(partition);
  const int wanted = t == POINTS ? (int)k->rule->partitions : 1;
  const int64_t until = hk_now() + HK_ENGINE_WAIT * 1000000000ll;
  char name[NAME_MOST], why[100];
  int partitions = 0;
  if (k->there[t])
    return 0;
  topic_name(k, t, name);
  if (!k->to[t] && !(k->to[t] = hk_kafka.topic_new(k->writer.rk, name, NULL)))
    return kafka_lost(k, name, hk_kafka.err2str(hk_kafka.last_error()));
  for (bool made = false; (partitions = look_at_topic(k, t, name)) <= 0;) {
    if (partitions == -ENOENT && !made && make_topic(k, t, name, wanted) != 0)
      return -EPIPE;
    made |= partitions == -ENOENT;
    if (partitions == -EPIPE || hk_now() > until)
      return partitions == -EPIPE ? -EPIPE : kafka_lost(k, name, "the topic does not become ready");
    pause_ms(MOMENT);
  }
  snprintf(why, sizeof why, "the topic has %d partitions, and there should be %d: choose another `name`, or `partitions`",
           partitions, wanted);
  k->there[t] = partitions == wanted;
  return k->there[t] ? 0 : kafka_lost(k, name, why);
}

/* --- messages -------------------------------------------------------------------------------------------------------------- */

static int kafka_publish(struct hk_broker_engine *e, uint32_t partition, const void *data, size_t size)
{
  struct kafka *k = kafka_of(e);
  void *number = (void *)(uintptr_t)++k->sent, *bytes = (void *)(uintptr_t)data; /* which are copied */
  const enum topic t = topic_of(partition);
  if (hk_kafka.produce(k->to[t], topic_number(partition), RD_KAFKA_MSG_F_COPY, bytes, size, NULL, 0, number) == 0)
    return 0;
  return kafka_lost(k, "a message is not taken", hk_kafka.err2str(hk_kafka.last_error()));
}

static int kafka_follow(struct hk_broker_engine *e, uint32_t partition, uint64_t offset, int64_t since)
{
  (void)since; /* times are not looked up */
  static const uint64_t one = 1;
  struct kafka *k = kafka_of(e), *main = k->beside ? k->beside : k;
  const enum topic t = topic_of(partition);
  char name[NAME_MOST];
  topic_name(k, t, name);
  if (open_client(main, &main->reader, HK_KAFKA_READER) != 0)
    return kafka_lost(k, "", main->engine.why);
  if (!main->from[t] && !(main->from[t] = hk_kafka.topic_new(main->reader.rk, name, NULL)))
    return kafka_lost(k, name, hk_kafka.err2str(hk_kafka.last_error()));
  if (!k->came) {
    k->came = hk_kafka.queue_new(main->reader.rk);
    hk_kafka.queue_io_event_enable(k->came, k->wake, &one, sizeof one);
  }
  const int64_t from = offset == HK_ENGINE_FIRST  ? RD_KAFKA_OFFSET_BEGINNING
                       : offset == HK_ENGINE_NEXT ? RD_KAFKA_OFFSET_END
                                                  : (int64_t)offset;
  if (hk_kafka.consume_start_queue(main->from[t], topic_number(partition), from, k->came) != 0)
    return kafka_lost(k, name, hk_kafka.err2str(hk_kafka.last_error()));
  k->follows[follow_place(partition)] = 1;
  return 0;
}

/* --- leases ---------------------------------------------------------------------------------------------------------------- */

static int kafka_lease(struct hk_broker_engine *e, uint32_t partition)
{
  struct kafka *k = kafka_of(e), *main = k->beside;
  const enum topic t = topic_of(partition);
  char group[NAME_MOST], topic[NAME_MOST];
  snprintf(group, sizeof group, "%s.%s", k->rule->name, t == EVENTS ? "leader" : "scorers");
  if (!main->group && hk_kafka_group_open(&main->group, k->rule, k->broker, main->wake, group, topic_name(k, t, topic),
                                          t == EVENTS ? 1 : k->rule->partitions, k->engine.why) != 0)
    return -EPIPE;
  k->leased = partition;
  k->waits = true;
  k->lease.wake = k->wake;
  hk_kafka_group_wait(main->group, (uint32_t)topic_number(partition), &k->lease);
  return 0;
}

static int kafka_lease_event(struct kafka *k, struct hk_broker_engine_event *out)
{
  if (!k->waits)
    return 0;
  if (k->lease.state == HK_KAFKA_LOST)
    return kafka_lost(k, "", "the broker has given it to another, after we were silent for longer than `session`");
  out->partition = k->leased;
  if (k->lease.state == HK_KAFKA_OFFERED) {
    k->lease.state = HK_KAFKA_HELD;
    out->what = HK_ENGINE_LEASED;
  } else if (k->lease.state == HK_KAFKA_RECALLED) {
    k->lease.state = HK_KAFKA_RETURNS;
    out->what = HK_ENGINE_RECALLED;
  }
  return 0;
}

/* --- events ---------------------------------------------------------------------------------------------------------------- */

/* The next message that is confirmed, of those that came at once. */
static int next_confirmed(struct kafka *k, struct hk_broker_engine_event *out)
{
  const rd_kafka_message_t *m = k->confirms ? hk_kafka.event_message_next(k->confirms) : NULL;
  if (m) {
    out->what = HK_ENGINE_CONFIRMED;
    out->number = (uint64_t)(uintptr_t)m->_private;
    return m->err ? kafka_lost(k, "a message is not taken", hk_kafka.err2str(m->err)) : 0;
  }
  if (k->confirms)
    hk_kafka.event_destroy(k->confirms);
  k->confirms = NULL;
  return 0;
}

static int look_at_writer(struct kafka *k, struct hk_broker_engine_event *out)
{
  int status = next_confirmed(k, out);
  while (status == 0 && out->what == HK_ENGINE_NOTHING) {
    rd_kafka_event_t *e = hk_kafka.queue_poll(k->writer.queue, 0);
    if (!e)
      return 0;
    if (hk_kafka.event_type(e) == RD_KAFKA_EVENT_DR) {
      k->confirms = e;
      status = next_confirmed(k, out);
      continue;
    }
    if (hk_kafka.event_type(e) == RD_KAFKA_EVENT_ERROR &&
        hk_kafka_client_error(&k->writer, hk_kafka.event_error(e), hk_kafka.event_error_string(e)) != 0)
      status = kafka_lost(k, "", k->writer.said);
    hk_kafka.event_destroy(e);
  }
  return status;
}

/* The next message of those followed. */
static int look_at_messages(struct kafka *k, struct hk_broker_engine_event *out)
{
  rd_kafka_topic_t *const *from = (k->beside ? k->beside : k)->from;
  if (!k->came || k->ahead >= AHEAD)
    return 0;
  rd_kafka_message_t *m = hk_kafka.consume_queue(k->came, 0);
  if (!m)
    return 0;
  if (k->message)
    hk_kafka.message_destroy(k->message);
  k->message = m;
  if (m->err)
    return kafka_lost(k, "", hk_kafka.message_errstr(m));
  const int64_t sent = hk_kafka.message_timestamp(m, NULL);
  if (m->offset < 0 || (uint64_t)m->offset > HK_ENGINE_OFFSET_MOST || m->len > HK_ENGINE_MESSAGE_MAX)
    return kafka_lost(k, "", "a message is longer than any of ours, or has no offset");
  k->ahead++;
  *out = (struct hk_broker_engine_event){ .what = HK_ENGINE_MESSAGE,
                                          .partition = m->rkt == from[EVENTS]   ? HK_ENGINE_EVENTS
                                                       : m->rkt == from[SCORES] ? HK_ENGINE_SCORES
                                                                                : (uint32_t)m->partition,
                                          .offset = (uint64_t)m->offset,
                                          .data = m->payload,
                                          .size = m->len,
                                          .sent = sent > 0 && sent < INT64_MAX / 1000000 ? sent * 1000000 : 0 };
  return 0;
}

/* What all clients have, and then this connection. */
static int kafka_look(struct kafka *k, struct hk_broker_engine_event *out)
{
  int status = k->writer.rk ? look_at_writer(k, out) : 0;
  if (status == 0 && out->what == HK_ENGINE_NOTHING)
    status = look_at_errors(k, &k->reader);
  if (status == 0 && k->group)
    status = hk_kafka_group_serve(k->group, k->engine.why);
  if (status == 0 && out->what == HK_ENGINE_NOTHING)
    status = kafka_lease_event(k, out);
  return status == 0 && out->what == HK_ENGINE_NOTHING ? look_at_messages(k, out) : status;
}

static int kafka_next(struct hk_broker_engine *e, struct hk_broker_engine_event *out)
{
  struct kafka *k = kafka_of(e);
  uint64_t woken;
  *out = (struct hk_broker_engine_event){ .what = HK_ENGINE_NOTHING };
  const int status = kafka_look(k, out);
  if (status != 0 || out->what != HK_ENGINE_NOTHING)
    return status;
  if (read(k->wake, &woken, sizeof woken) != (ssize_t)sizeof woken)
    return 0;
  return kafka_look(k, out); /* what has come since */
}

/* The library speaks to the broker by itself; the group wants to hear that this thread is alive. */
static int kafka_alive(struct hk_broker_engine *e)
{
  struct kafka *k = kafka_of(e);
  return k->group ? hk_kafka_group_serve(k->group, k->engine.why) : 0;
}

static int kafka_took(struct hk_broker_engine *e)
{
  struct kafka *k = kafka_of(e);
  if (k->ahead >= AHEAD)
    wake_up(k); /* messages that wait here already do not */
  k->ahead = 0;
  return 0;
}

const struct hk_broker_engine_kind hk_engine_kafka = { .name = "kafka",
                                                       .experimental = true,
                                                       .open = kafka_open,
                                                       .fd = kafka_fd,
                                                       .log = kafka_log,
                                                       .publish = kafka_publish,
                                                       .follow = kafka_follow,
                                                       .lease = kafka_lease,
                                                       .alive = kafka_alive,
                                                       .next = kafka_next,
                                                       .took = kafka_took,
                                                       .close = kafka_close };
