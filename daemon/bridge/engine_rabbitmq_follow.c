/* See engine_rabbitmq_follow.h. Requests other than the first one of a log are sent without waiting for answers. */
#include "daemon/bridge/engine_rabbitmq_follow.h"

#include "daemon/base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SECOND 1000000000ll
#define SKEW (2 * SECOND)   /* times have seconds only */
#define AT_ONCE SECOND      /* the first messages from the end of a stream come within this time */
#define SILENT (3 * SECOND) /* before a stream is asked for again */

static struct hk_rabbitmq_followed *followed_of(const struct hk_rabbitmq *r, uint32_t partition)
{
  const uint32_t n = r->rule->partitions;
  return &r->followed[partition < n ? partition : partition == HK_ENGINE_SCORES ? n : n + 1];
}

static bool is_offset(uint64_t offset)
{
  return offset <= HK_ENGINE_OFFSET_MOST;
}

/* --- requests -------------------------------------------------------------------------------------------------------------- */

static int follow_cancel(struct hk_rabbitmq *r, const char *tag)
{
  amqp_basic_cancel_t m = { .consumer_tag = amqp_cstring_bytes(tag), .nowait = 1 };
  return hk_rabbitmq_status(r, "", amqp_send_method(r->amqp, HK_RABBITMQ_CHANNEL, AMQP_BASIC_CANCEL_METHOD, &m));
}

static int follow_consume(struct hk_rabbitmq *r, uint32_t partition, const char *tag, amqp_table_entry_t from)
{
  char name[HK_RABBITMQ_NAME];
  amqp_basic_consume_t m = { .queue = hk_rabbitmq_stream(r, partition, name),
                             .consumer_tag = amqp_cstring_bytes(tag),
                             .nowait = 1,
                             .arguments = { 1, &from } };
  return hk_rabbitmq_status(r, "", amqp_send_method(r->amqp, HK_RABBITMQ_CHANNEL, AMQP_BASIC_CONSUME_METHOD, &m));
}

static amqp_table_entry_t follow_from(uint64_t offset, int64_t since)
{
  if (offset == HK_ENGINE_NEXT && since > 0)
    return (amqp_table_entry_t){ amqp_cstring_bytes("x-stream-offset"),
                                 { .kind = AMQP_FIELD_KIND_TIMESTAMP, .value.u64 = (uint64_t)((since - SKEW) / SECOND) } };
  return offset == HK_ENGINE_FIRST  ? hk_rabbitmq_word("x-stream-offset", "first")
         : offset == HK_ENGINE_NEXT ? hk_rabbitmq_word("x-stream-offset", "next")
                                    : hk_rabbitmq_number("x-stream-offset", (int64_t)offset);
}

/* --- watches --------------------------------------------------------------------------------------------------------------- */

static const char *watch_tag(uint32_t partition, char tag[32])
{
  char log[16];
  snprintf(tag, 32, HK_RABBITMQ_WATCH "%s", hk_rabbitmq_tag(partition, log));
  return tag;
}

static int watch_begin(struct hk_rabbitmq *r, uint32_t partition, uint64_t wanted)
{
  char tag[32];
  struct hk_rabbitmq_followed *f = followed_of(r, partition);
  f->watches = true;
  f->begun = 0;
  f->wanted = wanted;
  f->since = hk_wall();
  return follow_consume(r, partition, watch_tag(partition, tag), hk_rabbitmq_word("x-stream-offset", "last"));
}

/* A message of the log has come, or the log is known to be another one. */
static int watch_end(struct hk_rabbitmq *r, uint32_t partition)
{
  char tag[32];
  struct hk_rabbitmq_followed *f = followed_of(r, partition);
  if (!f->watches)
    return 0;
  f->watches = false;
  return follow_cancel(r, watch_tag(partition, tag));
}

int hk_rabbitmq_watched(struct hk_rabbitmq *r, const struct hk_rabbitmq_message *m)
{
  char number[16];
  const char *tag = hk_rabbitmq_tag(m->partition, number);
  struct hk_rabbitmq_followed *f = r->followed ? followed_of(r, m->partition) : NULL;
  int status = hk_rabbitmq_status(r, "", amqp_basic_ack(r->amqp, HK_RABBITMQ_CHANNEL, m->tag, 0));
  if (status != 0 || !f || !f->watches)
    return status;
  if (f->begun == 0)
    f->begun = hk_now();
  if (hk_now() - f->begun <= AT_ONCE && m->sent > f->since)
    f->since = m->sent;
  if (m->offset >= f->wanted || m->sent <= f->since + SKEW)
    return 0;
  status = watch_end(r, m->partition);
  if (status == 0)
    status = follow_cancel(r, tag);
  f->next = HK_ENGINE_FIRST;
  f->again = UINT64_MAX;
  return status == 0 ? follow_consume(r, m->partition, tag, follow_from(f->next, 0)) : status;
}

/* --- logs ------------------------------------------------------------------------------------------------------------------ */

int hk_rabbitmq_follow(struct hk_broker_engine *e, uint32_t partition, uint64_t offset, int64_t since)
{
  struct hk_rabbitmq *r = hk_rabbitmq_of(e);
  char name[HK_RABBITMQ_NAME], tag[16], what[HK_RABBITMQ_NAME + 8];
  amqp_table_entry_t from = follow_from(offset, since);
  const amqp_table_t arguments = { 1, &from };
  const amqp_bytes_t queue = hk_rabbitmq_stream(r, partition, name);
  if (!r->followed && !(r->followed = calloc(r->rule->partitions + 2u, sizeof *r->followed)))
    return hk_rabbitmq_lost(r, "", "no memory");
  *followed_of(r, partition) = (struct hk_rabbitmq_followed){
    .follows = true, .next = offset, .asked = since > 0 ? since : hk_wall(), .heard = hk_now(), .again = UINT64_MAX
  };
  if (amqp_basic_consume(r->amqp, HK_RABBITMQ_CHANNEL, queue, amqp_cstring_bytes(hk_rabbitmq_tag(partition, tag)), 0, 0, 0,
                         arguments) != NULL)
    return offset > 0 && is_offset(offset) && partition != HK_ENGINE_EVENTS ? watch_begin(r, partition, offset) : 0;
  snprintf(what, sizeof what, "stream %s", name);
  return hk_rabbitmq_reply(r, what, amqp_get_rpc_reply(r->amqp));
}

bool hk_rabbitmq_repeats(const struct hk_rabbitmq *r, const struct hk_rabbitmq_message *m)
{
  const struct hk_rabbitmq_followed *f = r->followed ? followed_of(r, m->partition) : NULL;
  return f && is_offset(f->next) && m->offset >= f->again && m->offset < f->next;
}

int hk_rabbitmq_heard(struct hk_rabbitmq *r, const struct hk_rabbitmq_message *m)
{
  struct hk_rabbitmq_followed *f = r->followed ? followed_of(r, m->partition) : NULL;
  if (!f || !f->follows)
    return hk_rabbitmq_lost(r, "", "it sends messages of a log that was not asked for");
  f->heard = hk_now();
  f->next = m->offset + 1;
  return watch_end(r, m->partition);
}

static int ask_again(struct hk_rabbitmq *r, uint32_t partition)
{
  char number[16];
  const char *tag = hk_rabbitmq_tag(partition, number); /* a word for the logs of events and scores */
  struct hk_rabbitmq_followed *f = followed_of(r, partition);
  const amqp_table_entry_t from = follow_from(f->next, f->asked);
  f->heard = hk_now();
  f->again = is_offset(f->next) ? f->next : 0;
  const int status = follow_cancel(r, tag);
  return status == 0 ? follow_consume(r, partition, tag, from) : status;
}

int hk_rabbitmq_ask_again(struct hk_rabbitmq *r)
{
  const int64_t now = hk_now();
  int status = 0;
  if (!r->followed || now - r->looked < SECOND)
    return 0;
  r->looked = now;
  for (uint32_t i = 0; i < r->rule->partitions + 2u && status == 0; i++) {
    struct hk_rabbitmq_followed *f = &r->followed[i];
    if (r->n_owed > 0)
      f->heard = now; /* it waits for us */
    else if (f->follows && now - f->heard > SILENT)
      status = ask_again(r, i < r->rule->partitions ? i : i == r->rule->partitions ? HK_ENGINE_SCORES : HK_ENGINE_EVENTS);
  }
  return status;
}
