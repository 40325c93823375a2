/* RabbitMQ by AMQP 0.9.1 (librabbitmq): a log is a stream, that is a queue with x-queue-type = stream, named
 * CLUSTER.points.PARTITION, those of events and scores CLUSTER.events and CLUSTER.scores; messages published to the default
 * exchange under that name go to it.
 *
 * Found by experiment, with RabbitMQ 3.10:
 *  - A message for a missing queue is confirmed. So messages are published as mandatory: then such a message is returned before
 *    that, and the connection counts as lost: the next one makes the queue again.
 *  - A stream whose arguments differ from the requested ones is refused (406), and the answer names the argument.
 *  - Consumers of a stream need a limit of unacknowledged messages; acknowledging moves no position.
 *  - The lease of a partition is the only message of a queue, NAME.lease.PARTITION, of which one consumer at a time gets messages
 *    (x-single-active-consumer): the holder never acknowledges it, and when the holder's connection is closed it goes to the
 *    consumer that has waited for longest. With several leases on a connection that takes some 20 s, with one some 10 ms. Each
 *    waiting consumer publishes the message, of which the queue keeps one; a holder acknowledges further ones.
 *  - A consumer of a queue that is deleted, or whose broker is lost, is told so only if the client has said that it understands
 *    that (consumer_cancel_notify); else it waits for ever.
 *  - The broker says that a quorum queue has no consumers when its leader is missing, or does not answer within 250 ms.
 *  - A broker without memory or disk stops reading. It reports that to clients that support it (connection.blocked), once
 *    something was sent. */
#include "daemon/bridge/engine.h"
#include "daemon/bridge/engine_rabbitmq_socket.h"

#include "daemon/base/log.h"

#include "proto/wire/secret_file.h"

#include <amqp.h>
#include <amqp_framing.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define CHANNEL 1
#define HEARTBEAT ((int)HK_ENGINE_SILENCE / 2) /* s: a broker that was silent for two of them is lost */
#define FRAME 131072                           /* bytes; the broker's default */
#define AHEAD 16                               /* messages of a partition that are sent before the first of them is processed */
#define SEGMENT (64ll << 20)                   /* bytes of a stream that are removed at a time, when older than the retention */
#define PASSWORD_MOST 4096

struct rabbitmq {
  struct hk_broker_engine engine;
  const struct hk_cluster_rule *rule;
  amqp_connection_state_t amqp;
  uint64_t tag;       /* of the last message */
  uint32_t partition; /* of the last message */
  uint64_t offset;
  int64_t sent;
  uint64_t expected; /* total bytes of the message, */
  size_t size;       /* and the received ones */
  size_t capacity;
  char *body;
  bool delivers; /* a message has begun and not ended */
  bool waits;    /* for a lease, of `partition` */
  bool leased;   /* we hold the lease */
  bool token;    /* the message is the token of a lease */
  bool in[HK_ENGINE_GROUPS];
  uint64_t owed[AHEAD]; /* tags of messages that are not acknowledged, except the token's */
  uint32_t n_owed;
};

static struct rabbitmq *of(struct hk_broker_engine *e)
{
  return (struct rabbitmq *)e;
}

/* --- errors ---------------------------------------------------------------------------------------------------------------- */

static void say_why(struct rabbitmq *r, const char *what, const char *why, size_t length)
{
  snprintf(r->engine.why, sizeof r->engine.why, "%s%s%.*s", what, what[0] ? ": " : "", (int)(length < 200 ? length : 200), why);
  for (char *p = r->engine.why; *p; p++)
    if ((unsigned char)*p < ' ' || *p == 0x7f)
      *p = '?'; /* the broker's text may have control characters */
}

static int lost_as(struct rabbitmq *r, const char *what, const char *why, size_t length)
{
  say_why(r, what, why, length);
  return -EPIPE;
}

static int lost(struct rabbitmq *r, const char *what, const char *why)
{
  return lost_as(r, what, why, strlen(why));
}

static int status_of(struct rabbitmq *r, const char *what, int status)
{
  const char *words = status == AMQP_STATUS_SOCKET_ERROR || status == AMQP_STATUS_CONNECTION_CLOSED ? "the connection was closed"
                      : status == AMQP_STATUS_TIMEOUT                                               ? "it does not answer"
                      : status == AMQP_STATUS_HEARTBEAT_TIMEOUT ? "it has been silent for too long"
                                                                : amqp_error_string2(status);
  return status == AMQP_STATUS_OK ? 0 : lost(r, what, words);
}

static int closed(struct rabbitmq *r, const char *what, const amqp_method_t *method)
{
  if (method->id == AMQP_CONNECTION_CLOSE_METHOD) {
    const amqp_connection_close_t *m = method->decoded;
    return lost_as(r, what, m->reply_text.bytes, m->reply_text.len);
  }
  if (method->id == AMQP_CHANNEL_CLOSE_METHOD) {
    const amqp_channel_close_t *m = method->decoded;
    return lost_as(r, what, m->reply_text.bytes, m->reply_text.len);
  }
  return lost(r, what, "an answer of another kind");
}

static int reply_of(struct rabbitmq *r, const char *what, amqp_rpc_reply_t reply)
{
  switch (reply.reply_type) {
  case AMQP_RESPONSE_NORMAL:
    return 0;
  case AMQP_RESPONSE_LIBRARY_EXCEPTION:
    return status_of(r, what, reply.library_error);
  case AMQP_RESPONSE_SERVER_EXCEPTION:
    return closed(r, what, &reply.reply);
  default:
    return lost(r, what, "no answer");
  }
}

/* --- connecting ------------------------------------------------------------------------------------------------------------ */

static int log_in(struct rabbitmq *r)
{
  const struct hk_cluster_rule *rule = r->rule;
  char *password = NULL, wrong[HK_SECRET_WHY];
  size_t size = 0;
  const amqp_field_value_t yes = { .kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1 };
  amqp_table_entry_t can[] = { { amqp_cstring_bytes("connection.blocked"), yes },
                               { amqp_cstring_bytes("consumer_cancel_notify"), yes } };
  amqp_table_entry_t entries[] = {
    { amqp_cstring_bytes("capabilities"), { .kind = AMQP_FIELD_KIND_TABLE, .value.table = { 2, can } } },
    { amqp_cstring_bytes("connection_name"), { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes("hankeld") } }
  };
  const amqp_table_t properties = { 2, entries };
  if (rule->password[0] && hk_secret_read(rule->password, PASSWORD_MOST, HK_SECRET_FILE, &password, &size, wrong) != 0)
    return lost(r, "password_file", wrong);
  if (password)
    password[strcspn(password, "\r\n")] = 0;
  const amqp_rpc_reply_t reply =
      amqp_login_with_properties(r->amqp, rule->vhost, CHANNEL, FRAME, HEARTBEAT, &properties, AMQP_SASL_METHOD_PLAIN,
                                 password ? rule->user : "guest", password ? password : "guest");
  hk_secret_free(password, size);
  return reply_of(r, "login", reply);
}

static void rabbitmq_close(struct hk_broker_engine *e)
{
  struct rabbitmq *r = of(e);
  if (r->amqp)
    (void)amqp_destroy_connection(r->amqp); /* closes the socket without waiting */
  free(r->body);
  free(r);
}

static int rabbitmq_open(struct hk_broker_engine **out, const struct hk_cluster_rule *rule, uint32_t broker,
                         struct hk_broker_engine *beside, char why[HK_ENGINE_WHY])
{
  (void)beside; /* each has a socket of its own */
  const struct timeval wait = { HK_ENGINE_WAIT, 0 };
  const struct hk_broker_address *b = &rule->broker[broker];
  struct rabbitmq *r = calloc(1, sizeof *r);
  int status = -ENOMEM;
  snprintf(why, HK_ENGINE_WHY, "no memory");
  if (!r)
    return status;
  r->engine.kind = &hk_engine_rabbitmq;
  r->rule = rule;
  r->amqp = amqp_new_connection();
  amqp_socket_t *s = r->amqp ? hk_rabbitmq_socket(r->amqp, rule, b, why) : NULL;
  if (s && amqp_set_handshake_timeout(r->amqp, &wait) == AMQP_STATUS_OK && amqp_set_rpc_timeout(r->amqp, &wait) == AMQP_STATUS_OK)
    status = status_of(r, "", amqp_socket_open_noblock(s, b->host, b->port, &wait));
  if (status == 0)
    status = log_in(r);
  if (status == 0 && amqp_channel_open(r->amqp, CHANNEL) == NULL)
    status = reply_of(r, "channel", amqp_get_rpc_reply(r->amqp));
  if (status == 0 && amqp_confirm_select(r->amqp, CHANNEL) == NULL)
    status = reply_of(r, "confirms", amqp_get_rpc_reply(r->amqp));
  if (status == 0 && amqp_basic_qos(r->amqp, CHANNEL, 0, AHEAD, 0) == NULL)
    status = reply_of(r, "qos", amqp_get_rpc_reply(r->amqp));
  if (status == 0) {
    *out = &r->engine;
    return 0;
  }
  if (r->engine.why[0])
    snprintf(why, HK_ENGINE_WHY, "%s", r->engine.why);
  rabbitmq_close(&r->engine);
  return status;
}

static int rabbitmq_fd(const struct hk_broker_engine *e)
{
  return amqp_get_sockfd(((const struct rabbitmq *)e)->amqp);
}

/* --- logs ------------------------------------------------------------------------------------------------------------------ */

#define NAME_MOST (HK_SECTION_TEXT + 32)

/* End of the name of a stream, and tag of its consumer. */
static const char *tag_of(uint32_t partition, char tag[16])
{
  snprintf(tag, 16, "%" PRIu32, partition);
  return partition == HK_ENGINE_EVENTS ? "events" : partition == HK_ENGINE_SCORES ? "scores" : tag;
}

static amqp_bytes_t name_of(const struct rabbitmq *r, uint32_t partition, char name[NAME_MOST])
{
  snprintf(name, NAME_MOST, "%s%s%s", r->rule->name, partition >= HK_ENGINE_SCORES ? "." : ".points.",
           tag_of(partition, (char[16]){ 0 }));
  return amqp_cstring_bytes(name);
}

static amqp_table_entry_t rabbitmq_word(const char *key, const char *value)
{
  return (amqp_table_entry_t){ amqp_cstring_bytes(key),
                               { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes(value) } };
}

static amqp_table_entry_t number(const char *key, int64_t value)
{
  return (amqp_table_entry_t){ amqp_cstring_bytes(key), { .kind = AMQP_FIELD_KIND_I64, .value.i64 = value } };
}

/* Makes a queue, if there is none; NULL: the connection's error says why not. */
static const amqp_queue_declare_ok_t *declare(struct rabbitmq *r, amqp_bytes_t queue, amqp_table_entry_t *entries, int n)
{
  amqp_maybe_release_buffers(r->amqp);
  return amqp_queue_declare(r->amqp, CHANNEL, queue, 0, 1, 0, 0, (amqp_table_t){ n, entries });
}

static int rabbitmq_log(struct hk_broker_engine *e, uint32_t partition)
{
  struct rabbitmq *r = of(e);
  char name[NAME_MOST], age[32], what[NAME_MOST + 8];
  snprintf(age, sizeof age, "%" PRId64 "s", r->rule->retention / 1000000000);
  const bool scores = partition == HK_ENGINE_SCORES;
  amqp_table_entry_t entries[] = { rabbitmq_word("x-queue-type", "stream"), rabbitmq_word("x-max-age", scores ? "600s" : age),
                                   number("x-stream-max-segment-size-bytes", SEGMENT),
                                   number("x-max-length-bytes", 4 * SEGMENT) };
  if (declare(r, name_of(r, partition, name), entries, scores ? 4 : 3) != NULL)
    return 0;
  snprintf(what, sizeof what, "stream %s", name);
  return reply_of(r, what, amqp_get_rpc_reply(r->amqp));
}

static int send_to(struct rabbitmq *r, amqp_bytes_t queue, amqp_bytes_t body)
{
  const amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_TIMESTAMP_FLAG,
                                               .delivery_mode = AMQP_DELIVERY_PERSISTENT,
                                               .timestamp = (uint64_t)(hk_wall() / 1000000000) };
  return status_of(r, "", amqp_basic_publish(r->amqp, CHANNEL, amqp_empty_bytes, queue, 1, 0, &properties, body));
}

static int rabbitmq_publish(struct hk_broker_engine *e, uint32_t partition, const void *data, size_t size)
{
  char name[NAME_MOST];
  return send_to(of(e), name_of(of(e), partition, name), (amqp_bytes_t){ size, (void *)(uintptr_t)data });
}

static int rabbitmq_follow(struct hk_broker_engine *e, uint32_t partition, uint64_t offset)
{
  struct rabbitmq *r = of(e);
  char name[NAME_MOST], tag[16], what[NAME_MOST + 8];
  amqp_table_entry_t from = offset == HK_ENGINE_FIRST  ? rabbitmq_word("x-stream-offset", "first")
                            : offset == HK_ENGINE_NEXT ? rabbitmq_word("x-stream-offset", "next")
                                                       : number("x-stream-offset", (int64_t)offset);
  const amqp_table_t arguments = { 1, &from };
  const amqp_bytes_t queue = name_of(r, partition, name);
  if (amqp_basic_consume(r->amqp, CHANNEL, queue, amqp_cstring_bytes(tag_of(partition, tag)), 0, 0, 0, arguments) != NULL)
    return 0;
  snprintf(what, sizeof what, "stream %s", name);
  return reply_of(r, what, amqp_get_rpc_reply(r->amqp));
}

/* --- leases ---------------------------------------------------------------------------------------------------------------- */

#define LEASE "lease" /* tag of its consumer; those of streams are numbers */
static int rabbitmq_lease(struct hk_broker_engine *e, uint32_t partition)
{
  struct rabbitmq *r = of(e);
  char name[NAME_MOST], tag[16];
  amqp_table_entry_t entries[] = { rabbitmq_word("x-queue-type", "quorum"),
                                   number("x-max-length", 1),
                                   { amqp_cstring_bytes("x-single-active-consumer"),
                                     { .kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1 } } };
  snprintf(name, sizeof name, "%s.lease.%s", r->rule->name, tag_of(partition, tag));
  const amqp_bytes_t queue = amqp_cstring_bytes(name), lease = amqp_cstring_bytes(LEASE);
  r->waits = true;
  r->partition = partition;
  if (declare(r, queue, entries, 3) == NULL ||
      amqp_basic_consume(r->amqp, CHANNEL, queue, lease, 0, 0, 0, amqp_empty_table) == NULL)
    return reply_of(r, name, amqp_get_rpc_reply(r->amqp));
  return send_to(r, queue, lease);
}

/* The consumers of a queue, which has no messages. */
static int rabbitmq_count(struct hk_broker_engine *e, enum hk_engine_group group, bool in, uint32_t *out)
{
  static const char *const names[] = { "members", "lacking", "listeners" };
  struct rabbitmq *r = of(e);
  char name[NAME_MOST];
  snprintf(name, sizeof name, "%s.%s", r->rule->name, names[group]);
  amqp_table_entry_t entries[] = { rabbitmq_word("x-queue-type", "quorum"), number("x-max-length", 1) };
  const amqp_bytes_t queue = amqp_cstring_bytes(name), tag = amqp_cstring_bytes(names[group]);
  const amqp_queue_declare_ok_t *there = declare(r, queue, entries, 2);
  if (!there)
    return reply_of(r, name, amqp_get_rpc_reply(r->amqp));
  *out = there->consumer_count < r->in[group] ? 0 : there->consumer_count - r->in[group] + in;
  if (in == r->in[group])
    return 0;
  const bool done = in ? amqp_basic_consume(r->amqp, CHANNEL, queue, tag, 0, 0, 0, amqp_empty_table) != NULL
                       : amqp_basic_cancel(r->amqp, CHANNEL, tag) != NULL;
  if (!done)
    return reply_of(r, name, amqp_get_rpc_reply(r->amqp));
  r->in[group] = in;
  return 0;
}

/* --- events ---------------------------------------------------------------------------------------------------------------- */

static int begin_message(struct rabbitmq *r, const amqp_basic_deliver_t *m)
{
  const amqp_bytes_t tag = m->consumer_tag;
  const bool events = tag.len == 6 && memcmp(tag.bytes, "events", 6) == 0;
  const bool scores = tag.len == 6 && memcmp(tag.bytes, "scores", 6) == 0;
  uint64_t partition = 0;
  r->token = r->waits && tag.len == 5 && memcmp(tag.bytes, LEASE, 5) == 0;
  for (size_t i = 0; i < tag.len && partition < HK_PARTITIONS_MAX; i++)
    partition = 10 * partition + (uint64_t)(((const char *)tag.bytes)[i] - '0');
  if (r->token || events || scores)
    partition = events ? HK_ENGINE_EVENTS : scores ? HK_ENGINE_SCORES : r->partition;
  else if (tag.len == 0 || partition >= r->rule->partitions)
    return lost(r, "", "it sends messages of a log that was not asked for");
  r->partition = (uint32_t)partition;
  r->tag = m->delivery_tag;
  r->delivers = true;
  r->expected = UINT64_MAX;
  r->size = 0;
  return 0;
}

/* The offset in the stream, from the message's headers. */
static int begin_body(struct rabbitmq *r, const amqp_frame_t *f)
{
  const amqp_basic_properties_t *p = f->payload.properties.decoded;
  r->offset = r->token ? 0 : UINT64_MAX;
  r->sent =
      p->_flags & AMQP_BASIC_TIMESTAMP_FLAG && p->timestamp < INT64_MAX / 1000000000 ? (int64_t)p->timestamp * 1000000000 : 0;
  for (int i = 0; p->_flags & AMQP_BASIC_HEADERS_FLAG && i < p->headers.num_entries; i++) {
    const amqp_table_entry_t *h = &p->headers.entries[i];
    if (h->key.len == 15 && memcmp(h->key.bytes, "x-stream-offset", 15) == 0 && h->value.kind == AMQP_FIELD_KIND_I64)
      r->offset = (uint64_t)h->value.value.i64;
  }
  r->expected = f->payload.properties.body_size;
  if (r->offset > HK_ENGINE_OFFSET_MOST)
    return lost(r, "", "a queue with the name of a log is no stream: delete it, and it is made anew");
  if (r->expected > HK_ENGINE_MESSAGE_MAX)
    return lost(r, "", "a message is longer than any of ours");
  if (r->expected <= r->capacity)
    return 0;
  char *body = realloc(r->body, r->expected);
  if (!body)
    return lost(r, "", "no memory for a message");
  r->body = body;
  r->capacity = r->expected;
  return 0;
}

static int take_body(struct rabbitmq *r, const amqp_bytes_t *part)
{
  if (!r->delivers || r->expected == UINT64_MAX || part->len > r->expected - r->size)
    return lost(r, "", "it sends more of a message than it said");
  memcpy(r->body + r->size, part->bytes, part->len);
  r->size += part->len;
  return 0;
}

/* The message is complete. If we hold the lease already it is its queue's second one, and is acknowledged. */
static int end_message(struct rabbitmq *r, struct hk_broker_engine_event *out)
{
  r->delivers = false;
  out->partition = r->partition;
  if (r->token && r->leased)
    return status_of(r, "", amqp_basic_ack(r->amqp, CHANNEL, r->tag, 0));
  out->what = r->token ? HK_ENGINE_LEASED : HK_ENGINE_MESSAGE;
  if (!r->token && r->n_owed < AHEAD)
    r->owed[r->n_owed++] = r->tag;
  out->offset = r->offset;
  out->sent = r->sent;
  out->data = r->body;
  out->size = r->size;
  r->leased |= r->token;
  return 0;
}

static int method_came(struct rabbitmq *r, const amqp_method_t *method, struct hk_broker_engine_event *out)
{
  switch (method->id) {
  case AMQP_BASIC_ACK_METHOD: {
    const amqp_basic_ack_t *m = method->decoded;
    out->what = HK_ENGINE_CONFIRMED;
    out->number = m->delivery_tag;
    out->all = m->multiple;
    return 0;
  }
  case AMQP_BASIC_DELIVER_METHOD:
    return begin_message(r, method->decoded);
  case AMQP_CONNECTION_BLOCKED_METHOD: {
    const amqp_connection_blocked_t *m = method->decoded;
    say_why(r, "it takes nothing for now", m->reason.bytes, m->reason.len);
    out->what = HK_ENGINE_BLOCKED;
    return 0;
  }
  case AMQP_CONNECTION_UNBLOCKED_METHOD:
    out->what = HK_ENGINE_UNBLOCKED;
    return 0;
  case AMQP_BASIC_NACK_METHOD:
    return lost(r, "", "it has refused a message");
  case AMQP_BASIC_RETURN_METHOD:
    return lost(r, "", "a stream was deleted, and is created again");
  case AMQP_BASIC_CANCEL_METHOD:
    return lost(r, "", "a stream or lease that it had was deleted, or moves to another broker");
  default:
    return closed(r, "", method);
  }
}

static int rabbitmq_next(struct hk_broker_engine *e, struct hk_broker_engine_event *out)
{
  struct rabbitmq *r = of(e);
  const struct timeval now = { 0, 0 };
  *out = (struct hk_broker_engine_event){ .what = HK_ENGINE_NOTHING };
  for (;;) {
    amqp_frame_t f;
    amqp_maybe_release_buffers(r->amqp);
    int status = amqp_simple_wait_frame_noblock(r->amqp, &f, &now);
    if (status != AMQP_STATUS_OK)
      return status == AMQP_STATUS_TIMEOUT ? 0 : status_of(r, "", status);
    if (f.frame_type == AMQP_FRAME_METHOD)
      status = method_came(r, &f.payload.method, out);
    else if (f.frame_type == AMQP_FRAME_HEADER && r->delivers)
      status = begin_body(r, &f);
    else if (f.frame_type == AMQP_FRAME_BODY)
      status = take_body(r, &f.payload.body_fragment);
    if (status == 0 && r->delivers && r->size == r->expected)
      status = end_message(r, out);
    if (status != 0 || out->what != HK_ENGINE_NOTHING)
      return status;
  }
}

static int rabbitmq_alive(struct hk_broker_engine *e)
{
  const amqp_frame_t heartbeat = { .frame_type = AMQP_FRAME_HEARTBEAT };
  return status_of(of(e), "", amqp_send_frame(of(e)->amqp, &heartbeat));
}

static int rabbitmq_took(struct hk_broker_engine *e)
{
  struct rabbitmq *r = of(e);
  int status = 0; /* each by itself: with `multiple` the token of a lease would be acknowledged, too */
  for (; r->n_owed > 0 && status == 0; r->n_owed--)
    status = status_of(r, "", amqp_basic_ack(r->amqp, CHANNEL, r->owed[r->n_owed - 1], 0));
  return status;
}

const struct hk_broker_engine_kind hk_engine_rabbitmq = { .name = "rabbitmq",
                                                          .open = rabbitmq_open,
                                                          .fd = rabbitmq_fd,
                                                          .log = rabbitmq_log,
                                                          .publish = rabbitmq_publish,
                                                          .follow = rabbitmq_follow,
                                                          .lease = rabbitmq_lease,
                                                          .count = rabbitmq_count,
                                                          .alive = rabbitmq_alive,
                                                          .next = rabbitmq_next,
                                                          .took = rabbitmq_took,
                                                          .close = rabbitmq_close };
