/* RabbitMQ by AMQP 0.9.1 (librabbitmq): a log is a stream, that is a queue with x-queue-type = stream, named
 * CLUSTER.points.PARTITION, those of events and scores CLUSTER.events and CLUSTER.scores; messages published to the default
 * exchange under that name go to it.
 *
 * Found by experiment, with RabbitMQ 3.10:
 *  - A message for a missing queue is confirmed. So messages are published as mandatory: then such a message is returned before
 *    that, and the connection counts as lost: the next one makes the queue again.
 *  - A stream whose arguments differ from the requested ones is refused (406), and the answer names the argument.
 *  - The lease of a partition is the only message of a queue, NAME.lease.PARTITION, of which one consumer at a time gets messages
 *    (x-single-active-consumer): the holder keeps it unacknowledged, and when the holder's connection is closed it goes to the
 *    consumer that has waited for longest. With several leases on a connection that takes some 20 s, with one some 10 ms. For
 *    each waiting consumer the message is published, of which the queue keeps one.
 *  - A channel with a message that nobody acknowledges for consumer_timeout, by default half an hour, is closed. So the
 *    message of a lease is published again and again, and its holder acknowledges the one that it had when the next one comes.
 *  - A consumer of a queue that is deleted, or whose broker is lost, is notified only if the client has declared support for
 *    that (consumer_cancel_notify); else it waits for ever.
 *  - The broker says that a quorum queue has no consumers when its leader is missing, or does not answer within 250 ms.
 *  - When a stream's leader changes, the broker gives the unconfirmed messages of a channel to the new one again, under the
 *    number that they have on the channel. If a message's number on the stream is not greater, the new leader takes it for one
 *    that it has, and confirms it without keeping it (seen in 3.10.8). So each stream that is published to has a channel of
 *    its own, where the two numbers are one.
 *  - What concerns the reading of streams stands in engine_rabbitmq_follow.h.
 *  - A broker without memory or disk stops reading from a connection that publishes from then on, and does not notice that it is
 *    closed. It reports that to clients that support it (connection.blocked), once something was sent. */
#include "daemon/bridge/engine_rabbitmq_follow.h"
#include "daemon/bridge/engine_rabbitmq_queues.h"
#include "daemon/bridge/engine_rabbitmq_socket.h"

#include "daemon/base/log.h"

#include "proto/wire/secret_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define HEARTBEAT ((int)HK_ENGINE_SILENCE / 2) /* s: a broker that was silent for two of them is lost */
#define FRAME 131072                           /* bytes; the broker's default */
#define SEGMENT (64ll << 20)                   /* bytes of a stream that are removed at a time, when older than the retention */
#define PASSWORD_MOST 4096

/* --- connecting ------------------------------------------------------------------------------------------------------------ */

static int log_in(struct hk_rabbitmq *r)
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
    return hk_rabbitmq_lost(r, "password_file", wrong);
  if (password)
    password[strcspn(password, "\r\n")] = 0;
  const amqp_rpc_reply_t reply =
      amqp_login_with_properties(r->amqp, rule->vhost, 0, FRAME, HEARTBEAT, &properties, AMQP_SASL_METHOD_PLAIN,
                                 password ? rule->user : "guest", password ? password : "guest");
  hk_secret_free(password, size);
  hk_rabbitmq_note_version(r);
  return hk_rabbitmq_reply(r, "login", reply);
}

static void rabbitmq_close(struct hk_broker_engine *e)
{
  struct hk_rabbitmq *r = hk_rabbitmq_of(e);
  if (r->amqp)
    (void)amqp_destroy_connection(r->amqp); /* closes the socket without waiting */
  free(r->message.body);
  free(r->followed);
  free(r->out);
  free(r);
}

/* Opens a channel on which messages are confirmed. */
static int open_channel(struct hk_rabbitmq *r, amqp_channel_t channel)
{
  if (amqp_channel_open(r->amqp, channel) == NULL)
    return hk_rabbitmq_reply(r, "channel", amqp_get_rpc_reply(r->amqp));
  if (amqp_confirm_select(r->amqp, channel) == NULL)
    return hk_rabbitmq_reply(r, "confirms", amqp_get_rpc_reply(r->amqp));
  return 0;
}

static int rabbitmq_open(struct hk_broker_engine **out, const struct hk_cluster_rule *rule, uint32_t broker,
                         struct hk_broker_engine *beside, char why[HK_ENGINE_WHY])
{
  (void)beside; /* each has a socket of its own */
  const struct timeval wait = { HK_ENGINE_WAIT, 0 };
  const struct hk_broker_address *b = &rule->broker[broker];
  struct hk_rabbitmq *r = calloc(1, sizeof *r);
  int status = -ENOMEM;
  snprintf(why, HK_ENGINE_WHY, "no memory");
  if (!r)
    return status;
  r->engine.kind = &hk_engine_rabbitmq;
  r->rule = rule;
  r->amqp = amqp_new_connection();
  amqp_socket_t *s = r->amqp ? hk_rabbitmq_socket(r->amqp, rule, b, why) : NULL;
  if (s && amqp_set_handshake_timeout(r->amqp, &wait) == AMQP_STATUS_OK && amqp_set_rpc_timeout(r->amqp, &wait) == AMQP_STATUS_OK)
    status = hk_rabbitmq_status(r, "", amqp_socket_open_noblock(s, b->host, b->port, &wait));
  if (status == 0)
    status = log_in(r);
  if (status == 0)
    status = open_channel(r, HK_RABBITMQ_CHANNEL);
  if (status == 0 && amqp_basic_qos(r->amqp, HK_RABBITMQ_CHANNEL, 0, HK_RABBITMQ_AHEAD, 0) == NULL)
    status = hk_rabbitmq_reply(r, "qos", amqp_get_rpc_reply(r->amqp));
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
  return amqp_get_sockfd(((const struct hk_rabbitmq *)e)->amqp);
}

/* --- logs ------------------------------------------------------------------------------------------------------------------ */

static int rabbitmq_log(struct hk_broker_engine *e, uint32_t partition)
{
  struct hk_rabbitmq *r = hk_rabbitmq_of(e);
  char name[HK_RABBITMQ_NAME], age[32], what[HK_RABBITMQ_NAME + 8];
  snprintf(age, sizeof age, "%" PRId64 "s", r->rule->retention / 1000000000);
  const bool scores = partition == HK_ENGINE_SCORES;
  amqp_table_entry_t entries[] = { hk_rabbitmq_word("x-queue-type", "stream"),
                                   hk_rabbitmq_word("x-max-age", scores ? "600s" : age),
                                   hk_rabbitmq_number("x-stream-max-segment-size-bytes", SEGMENT),
                                   hk_rabbitmq_number("x-max-length-bytes", 4 * SEGMENT) };
  if (hk_rabbitmq_declare(r, hk_rabbitmq_stream(r, partition, name), entries, scores ? 4 : 3) != NULL)
    return 0;
  snprintf(what, sizeof what, "stream %s", name);
  return hk_rabbitmq_reply(r, what, amqp_get_rpc_reply(r->amqp));
}

/* The channel of a partition to which is published: opened by its first message. */
static int rabbitmq_channel(struct hk_rabbitmq *r, uint32_t partition, amqp_channel_t *channel)
{
  const int most = amqp_get_channel_max(r->amqp); /* 0: no limit */
  *channel = (amqp_channel_t)(HK_RABBITMQ_CHANNEL + 1 + partition);
  if (!r->out && !(r->out = calloc(r->rule->partitions, sizeof *r->out)))
    return hk_rabbitmq_lost(r, "", "no memory");
  if (r->out[partition].open)
    return 0;
  if (most > 0 && *channel > most)
    return hk_rabbitmq_lost(r, "", "it allows too few channels (channel_max): one more than there are partitions is needed");
  const int status = open_channel(r, *channel);
  r->out[partition].open = status == 0;
  return status;
}

static int rabbitmq_publish(struct hk_broker_engine *e, uint32_t partition, const void *data, size_t size)
{
  struct hk_rabbitmq *r = hk_rabbitmq_of(e);
  amqp_channel_t channel = HK_RABBITMQ_CHANNEL;
  char name[HK_RABBITMQ_NAME];
  r->sent++;
  const bool own = partition < r->rule->partitions;
  const int status = own ? rabbitmq_channel(r, partition, &channel) : 0;
  if (own && status == 0)
    r->out[partition].number = r->sent;
  return status == 0 ? hk_rabbitmq_send(r, channel, hk_rabbitmq_stream(r, partition, name),
                                        (amqp_bytes_t){ size, (void *)(uintptr_t)data })
                     : status;
}

/* A confirmation on that channel. */
static void rabbitmq_confirmed(const struct hk_rabbitmq *r, amqp_channel_t channel, const amqp_basic_ack_t *m,
                               struct hk_broker_engine_event *out)
{
  const uint32_t partition = channel - HK_RABBITMQ_CHANNEL - 1u;
  const bool own = channel > HK_RABBITMQ_CHANNEL;
  if (own && (!r->out || partition >= r->rule->partitions))
    return; /* nothing was sent on it */
  out->what = HK_ENGINE_CONFIRMED;
  out->number = own ? r->out[partition].number : m->delivery_tag;
  out->all = !own && m->multiple;
}

/* --- events ---------------------------------------------------------------------------------------------------------------- */

/* The partition of a consumer's tag, a number; HK_PARTITIONS_MAX: it is none. */
static uint32_t partition_of_tag(const char *tag, size_t length)
{
  uint32_t partition = length > 0 ? 0 : HK_PARTITIONS_MAX;
  for (size_t i = 0; i < length && partition < HK_PARTITIONS_MAX; i++)
    partition = tag[i] >= '0' && tag[i] <= '9' ? 10 * partition + (uint32_t)(tag[i] - '0') : HK_PARTITIONS_MAX;
  return partition;
}

static bool is_tag(amqp_bytes_t tag, const char *word)
{
  return tag.len == strlen(word) && memcmp(tag.bytes, word, tag.len) == 0;
}

static int begin_message(struct hk_rabbitmq *r, const amqp_basic_deliver_t *d)
{
  const amqp_bytes_t tag = d->consumer_tag;
  struct hk_rabbitmq_message *m = &r->message;
  const size_t watch = sizeof HK_RABBITMQ_WATCH - 1;
  const bool watched = tag.len > watch && memcmp(tag.bytes, HK_RABBITMQ_WATCH, watch) == 0;
  const size_t from = watched ? watch : 0;
  const amqp_bytes_t log = { tag.len - from, (char *)tag.bytes + from };
  m->kind = watched                                      ? HK_RABBITMQ_WATCHED
            : r->waits && is_tag(tag, HK_RABBITMQ_LEASE) ? HK_RABBITMQ_TOKEN
            : r->mail && is_tag(tag, HK_RABBITMQ_MAIL)   ? HK_RABBITMQ_LETTER
                                                         : HK_RABBITMQ_OF_LOG;
  m->partition = m->kind == HK_RABBITMQ_TOKEN    ? r->lease
                 : m->kind == HK_RABBITMQ_LETTER ? 0
                 : is_tag(log, "events")         ? HK_ENGINE_EVENTS
                 : is_tag(log, "scores")         ? HK_ENGINE_SCORES
                                                 : partition_of_tag(log.bytes, log.len);
  if (m->partition >= r->rule->partitions && m->partition < HK_ENGINE_SCORES)
    return hk_rabbitmq_lost(r, "", "it sends messages of a log that was not asked for");
  m->tag = d->delivery_tag;
  m->delivers = true;
  m->expected = UINT64_MAX;
  m->size = 0;
  return 0;
}

/* A message came back: a letter to a machine that is not there, or one for a stream that is not. */
static int begin_return(struct hk_rabbitmq *r)
{
  if (!r->mail)
    return hk_rabbitmq_lost(r, "", "a queue or stream was deleted, and is created again");
  r->message.kind = HK_RABBITMQ_RETURNED;
  r->message.delivers = true;
  r->message.expected = UINT64_MAX;
  r->message.size = 0;
  return 0;
}

/* The offset in the stream, from the message's headers. */
static int begin_body(struct hk_rabbitmq *r, const amqp_frame_t *f)
{
  const amqp_basic_properties_t *p = f->payload.properties.decoded;
  struct hk_rabbitmq_message *m = &r->message;
  m->offset = m->kind <= HK_RABBITMQ_WATCHED ? UINT64_MAX : 0;
  m->sent =
      p->_flags & AMQP_BASIC_TIMESTAMP_FLAG && p->timestamp < INT64_MAX / 1000000000 ? (int64_t)p->timestamp * 1000000000 : 0;
  for (int i = 0; p->_flags & AMQP_BASIC_HEADERS_FLAG && i < p->headers.num_entries; i++) {
    const amqp_table_entry_t *h = &p->headers.entries[i];
    if (h->key.len == 15 && memcmp(h->key.bytes, "x-stream-offset", 15) == 0 && h->value.kind == AMQP_FIELD_KIND_I64)
      m->offset = (uint64_t)h->value.value.i64;
  }
  m->expected = f->payload.properties.body_size;
  if (m->offset > HK_ENGINE_OFFSET_MOST)
    return hk_rabbitmq_lost(r, "", "a queue with the name of a log is no stream: delete it, and it is made anew");
  if (m->expected > HK_ENGINE_MESSAGE_MAX)
    return hk_rabbitmq_lost(r, "", "a message is longer than any of ours");
  if (m->expected <= m->capacity)
    return 0;
  char *body = realloc(m->body, m->expected);
  if (!body)
    return hk_rabbitmq_lost(r, "", "no memory for a message");
  m->body = body;
  m->capacity = m->expected;
  return 0;
}

static int take_body(struct hk_rabbitmq *r, const amqp_bytes_t *part)
{
  struct hk_rabbitmq_message *m = &r->message;
  if (!m->delivers || m->expected == UINT64_MAX || part->len > m->expected - m->size)
    return hk_rabbitmq_lost(r, "", "it sends more of a message than it said");
  memcpy(m->body + m->size, part->bytes, part->len);
  m->size += part->len;
  return 0;
}

/* The message is complete. */
static int end_message(struct hk_rabbitmq *r, struct hk_broker_engine_event *out)
{
  static const enum hk_engine_what what[] = { [HK_RABBITMQ_OF_LOG] = HK_ENGINE_MESSAGE,
                                              [HK_RABBITMQ_TOKEN] = HK_ENGINE_LEASED,
                                              [HK_RABBITMQ_LETTER] = HK_ENGINE_LETTER,
                                              [HK_RABBITMQ_RETURNED] = HK_ENGINE_RETURNED };
  struct hk_rabbitmq_message *m = &r->message;
  int status = 0;
  m->delivers = false;
  out->partition = m->partition;
  if (m->kind == HK_RABBITMQ_WATCHED)
    return hk_rabbitmq_watched(r, m);
  if (m->kind == HK_RABBITMQ_TOKEN && (status = hk_rabbitmq_lease_came(r, m->tag)) != 0)
    return status > 0 ? 0 : status;
  if (m->kind == HK_RABBITMQ_OF_LOG && hk_rabbitmq_repeats(r, m))
    return hk_rabbitmq_status(r, "", amqp_basic_ack(r->amqp, HK_RABBITMQ_CHANNEL, m->tag, 0));
  out->what = what[m->kind];
  if (m->kind == HK_RABBITMQ_OF_LOG) {
    status = hk_rabbitmq_heard(r, m);
    if (r->n_owed < HK_RABBITMQ_AHEAD)
      r->owed[r->n_owed++] = m->tag;
  }
  out->offset = m->offset;
  out->sent = m->sent;
  out->data = m->body;
  out->size = m->size;
  return status;
}

static int method_came(struct hk_rabbitmq *r, amqp_channel_t channel, const amqp_method_t *method,
                       struct hk_broker_engine_event *out)
{
  switch (method->id) {
  case AMQP_BASIC_ACK_METHOD:
    rabbitmq_confirmed(r, channel, method->decoded, out);
    return 0;
  case AMQP_BASIC_DELIVER_METHOD:
    return begin_message(r, method->decoded);
  case AMQP_CONNECTION_BLOCKED_METHOD: {
    const amqp_connection_blocked_t *m = method->decoded;
    hk_rabbitmq_say(r, "it takes nothing for now", m->reason.bytes, m->reason.len);
    out->what = HK_ENGINE_BLOCKED;
    return 0;
  }
  case AMQP_CONNECTION_UNBLOCKED_METHOD:
    out->what = HK_ENGINE_UNBLOCKED;
    return 0;
  case AMQP_BASIC_NACK_METHOD:
    return hk_rabbitmq_lost(r, "", "it has refused a message");
  case AMQP_BASIC_RETURN_METHOD:
    return begin_return(r);
  case AMQP_BASIC_CANCEL_METHOD:
    return hk_rabbitmq_lost(r, "", "a stream or lease that it had was deleted, or moves to another broker");
  default:
    return hk_rabbitmq_closed(r, "", method);
  }
}

static int rabbitmq_next(struct hk_broker_engine *e, struct hk_broker_engine_event *out)
{
  struct hk_rabbitmq *r = hk_rabbitmq_of(e);
  const struct timeval now = { 0, 0 };
  *out = (struct hk_broker_engine_event){ .what = HK_ENGINE_NOTHING };
  for (;;) {
    amqp_frame_t f;
    amqp_maybe_release_buffers(r->amqp);
    int status = amqp_simple_wait_frame_noblock(r->amqp, &f, &now);
    if (status == AMQP_STATUS_TIMEOUT)
      return (status = hk_rabbitmq_lease_renew(r)) == 0 ? hk_rabbitmq_ask_again(r) : status;
    if (status != AMQP_STATUS_OK)
      return hk_rabbitmq_status(r, "", status);
    if (f.frame_type == AMQP_FRAME_METHOD)
      status = method_came(r, f.channel, &f.payload.method, out);
    else if (f.frame_type == AMQP_FRAME_HEADER && r->message.delivers)
      status = begin_body(r, &f);
    else if (f.frame_type == AMQP_FRAME_BODY)
      status = take_body(r, &f.payload.body_fragment);
    if (status == 0 && r->message.delivers && r->message.size == r->message.expected)
      status = end_message(r, out);
    if (status != 0 || out->what != HK_ENGINE_NOTHING)
      return status;
  }
}

static int rabbitmq_alive(struct hk_broker_engine *e)
{
  const amqp_frame_t heartbeat = { .frame_type = AMQP_FRAME_HEARTBEAT };
  return hk_rabbitmq_status(hk_rabbitmq_of(e), "", amqp_send_frame(hk_rabbitmq_of(e)->amqp, &heartbeat));
}

static int rabbitmq_took(struct hk_broker_engine *e)
{
  struct hk_rabbitmq *r = hk_rabbitmq_of(e);
  int status = 0; /* each by itself: with `multiple` the token of a lease would be acknowledged, too */
  for (; r->n_owed > 0 && status == 0; r->n_owed--)
    status = hk_rabbitmq_status(r, "", amqp_basic_ack(r->amqp, HK_RABBITMQ_CHANNEL, r->owed[r->n_owed - 1], 0));
  return status;
}

const struct hk_broker_engine_kind hk_engine_rabbitmq = { .name = "rabbitmq",
                                                          .open = rabbitmq_open,
                                                          .fd = rabbitmq_fd,
                                                          .log = rabbitmq_log,
                                                          .publish = rabbitmq_publish,
                                                          .follow = hk_rabbitmq_follow,
                                                          .lease = hk_rabbitmq_lease,
                                                          .renew = hk_rabbitmq_renew,
                                                          .count = hk_rabbitmq_count,
                                                          .mailbox = hk_rabbitmq_mailbox,
                                                          .post = hk_rabbitmq_post,
                                                          .alive = rabbitmq_alive,
                                                          .next = rabbitmq_next,
                                                          .took = rabbitmq_took,
                                                          .close = rabbitmq_close };
