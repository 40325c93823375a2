/* See engine_rabbitmq_connection.h. */
#include "daemon/bridge/engine_rabbitmq_connection.h"

#include "daemon/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- errors ---------------------------------------------------------------------------------------------------------------- */

void hk_rabbitmq_say(struct hk_rabbitmq *r, const char *what, const char *why, size_t length)
{
  snprintf(r->engine.why, sizeof r->engine.why, "%s%s%.*s", what, what[0] ? ": " : "", (int)(length < 200 ? length : 200), why);
  for (char *p = r->engine.why; *p; p++)
    if ((unsigned char)*p < ' ' || *p == 0x7f)
      *p = '?'; /* the broker's text may have control characters */
}

static int lost_as(struct hk_rabbitmq *r, const char *what, const char *why, size_t length)
{
  hk_rabbitmq_say(r, what, why, length);
  return -EPIPE;
}

int hk_rabbitmq_lost(struct hk_rabbitmq *r, const char *what, const char *why)
{
  return lost_as(r, what, why, strlen(why));
}

int hk_rabbitmq_status(struct hk_rabbitmq *r, const char *what, int status)
{
  const char *words = status == AMQP_STATUS_SOCKET_ERROR || status == AMQP_STATUS_CONNECTION_CLOSED ? "the connection was closed"
                      : status == AMQP_STATUS_TIMEOUT                                               ? "it does not answer"
                      : status == AMQP_STATUS_HEARTBEAT_TIMEOUT ? "it has been silent for too long"
                                                                : amqp_error_string2(status);
  return status == AMQP_STATUS_OK ? 0 : hk_rabbitmq_lost(r, what, words);
}

int hk_rabbitmq_closed(struct hk_rabbitmq *r, const char *what, const amqp_method_t *method)
{
  if (method->id == AMQP_CONNECTION_CLOSE_METHOD) {
    const amqp_connection_close_t *m = method->decoded;
    return lost_as(r, what, m->reply_text.bytes, m->reply_text.len);
  }
  if (method->id == AMQP_CHANNEL_CLOSE_METHOD) {
    const amqp_channel_close_t *m = method->decoded;
    return lost_as(r, what, m->reply_text.bytes, m->reply_text.len);
  }
  return hk_rabbitmq_lost(r, what, "an answer of another kind");
}

int hk_rabbitmq_reply(struct hk_rabbitmq *r, const char *what, amqp_rpc_reply_t reply)
{
  switch (reply.reply_type) {
  case AMQP_RESPONSE_NORMAL:
    return 0;
  case AMQP_RESPONSE_LIBRARY_EXCEPTION:
    return hk_rabbitmq_status(r, what, reply.library_error);
  case AMQP_RESPONSE_SERVER_EXCEPTION:
    return hk_rabbitmq_closed(r, what, &reply.reply);
  default:
    return hk_rabbitmq_lost(r, what, "no answer");
  }
}

void hk_rabbitmq_note_version(struct hk_rabbitmq *r)
{
  static const char *const tried[] = { "3.10.", "4.0.", "4.3." };
  const amqp_table_t *t = amqp_get_server_properties(r->amqp);
  char *out = r->engine.untried;
  for (int i = 0; t && i < t->num_entries; i++) {
    const amqp_table_entry_t *e = &t->entries[i];
    if (e->key.len == 7 && memcmp(e->key.bytes, "version", 7) == 0 && e->value.kind == AMQP_FIELD_KIND_UTF8)
      snprintf(out, sizeof r->engine.untried, "%.*s", (int)(e->value.value.bytes.len < 23 ? e->value.value.bytes.len : 23),
               (const char *)e->value.value.bytes.bytes);
  }
  for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
    if (strncmp(out, tried[i], strlen(tried[i])) == 0)
      out[0] = 0;
  for (char *p = out; *p; p++)
    if ((unsigned char)*p < ' ' || *p == 0x7f)
      *p = '?';
}

/* --- queues ---------------------------------------------------------------------------------------------------------------- */

const char *hk_rabbitmq_tag(uint32_t partition, char tag[16])
{
  snprintf(tag, 16, "%" PRIu32, partition);
  return partition == HK_ENGINE_EVENTS ? "events" : partition == HK_ENGINE_SCORES ? "scores" : tag;
}

amqp_bytes_t hk_rabbitmq_stream(const struct hk_rabbitmq *r, uint32_t partition, char name[HK_RABBITMQ_NAME])
{
  char tag[16];
  snprintf(name, HK_RABBITMQ_NAME, "%s%s%s", r->rule->name, partition >= HK_ENGINE_SCORES ? "." : ".points.",
           hk_rabbitmq_tag(partition, tag));
  return amqp_cstring_bytes(name);
}

amqp_table_entry_t hk_rabbitmq_word(const char *key, const char *value)
{
  return (amqp_table_entry_t){ amqp_cstring_bytes(key),
                               { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes(value) } };
}

amqp_table_entry_t hk_rabbitmq_number(const char *key, int64_t value)
{
  return (amqp_table_entry_t){ amqp_cstring_bytes(key), { .kind = AMQP_FIELD_KIND_I64, .value.i64 = value } };
}

const amqp_queue_declare_ok_t *hk_rabbitmq_declare(struct hk_rabbitmq *r, amqp_bytes_t queue, amqp_table_entry_t *entries, int n)
{
  amqp_maybe_release_buffers(r->amqp);
  return amqp_queue_declare(r->amqp, HK_RABBITMQ_CHANNEL, queue, 0, 1, 0, 0, (amqp_table_t){ n, entries });
}

int hk_rabbitmq_send(struct hk_rabbitmq *r, amqp_channel_t channel, amqp_bytes_t queue, amqp_bytes_t body)
{
  const amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_TIMESTAMP_FLAG,
                                               .delivery_mode = AMQP_DELIVERY_PERSISTENT,
                                               .timestamp = (uint64_t)(hk_wall() / 1000000000) };
  return hk_rabbitmq_status(r, "", amqp_basic_publish(r->amqp, channel, amqp_empty_bytes, queue, 1, 0, &properties, body));
}
