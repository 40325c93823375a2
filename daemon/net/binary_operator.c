#include "daemon/net/binary_operator.h"

#include "daemon/net/admission.h"
#include "daemon/net/binary_replies.h"
#include "daemon/net/loop.h"
#include "daemon/net/net.h"
#include "proto/wire/message.h"

#include <stdlib.h>

#define REPORT_MOST (HK_FRAME_MAX - 4096) /* bytes of the result of a reload */

/* Answers with a JSON object, and frees it. */
static enum hk_turn binary_operator_report(struct hk_connection *c, uint32_t tag, uint8_t type, struct hk_buffer *json)
{
  const size_t size = HK_FRAME_HEADER + json->size;
  uint8_t *bytes = json->failed ? NULL : malloc(size);
  struct hk_writer w = HK_WRITER(bytes, bytes ? size : 0);
  if (bytes && hk_report_write(&w, tag, (struct hk_string){ json->data, json->size }) == 0)
    hk_binary_reply(c, &w);
  else
    hk_binary_error(c, tag, HANKEL_INTERNAL, type, "no memory");
  free(bytes);
  hk_buffer_free(json);
  return HK_TURN_MORE;
}

enum hk_turn hk_binary_status(struct hk_connection *c, const struct hk_frame *f)
{
  if (hk_empty_read(f) != 0)
    return hk_binary_bad_payload(c, f);
  struct hk_buffer json = { 0 };
  c->net->requests.status(c->loop, &json);
  return binary_operator_report(c, f->tag, f->type, &json);
}

/* Sends the list of sensors when the shards have sent their states. */
static enum hk_turn listed(struct hk_connection *c)
{
  struct hk_buffer json = { 0 };
  if (!c->net->requests.list_result(c->binary.listing, &json))
    return HK_TURN_WAIT;
  c->binary.listing = NULL;
  return binary_operator_report(c, c->binary.listing_tag, HK_SENSORS, &json);
}

enum hk_turn hk_binary_sensors(struct hk_connection *c, const struct hk_frame *f)
{
  struct hk_sensors_asked m;
  if (hk_sensors_read(f, &m) != 0)
    return hk_binary_bad_payload(c, f);
  c->binary.listing_tag = f->tag;
  if (!(c->binary.listing = c->net->requests.list(c, &m)))
    return hk_binary_fault(c, f, HANKEL_INTERNAL, "no memory, or the machine where this page begins has gone: begin again");
  return listed(c);
}

/* Sends the result of a reload when it is known. */
static enum hk_turn reloaded(struct hk_connection *c)
{
  struct hk_buffer text = { 0 };
  bool taken;
  if (!c->net->requests.reload_result(c->net->server, c->binary.reload, &text, &taken))
    return HK_TURN_WAIT;
  c->binary.reload = 0;
  const size_t shown = text.size < REPORT_MOST ? text.size : REPORT_MOST, size = HK_FRAME_HEADER + 1 + shown;
  uint8_t *bytes = text.failed ? NULL : malloc(size);
  struct hk_writer w = HK_WRITER(bytes, bytes ? size : 0);
  if (bytes && hk_reloaded_write(&w, HK_RELOADED, c->binary.reload_tag, taken, (struct hk_string){ text.data, shown }) == 0)
    hk_binary_reply(c, &w);
  else
    hk_binary_error(c, c->binary.reload_tag, HANKEL_INTERNAL, HK_RELOAD, "no memory");
  free(bytes);
  hk_buffer_free(&text);
  hk_admission_again(c); /* its own token may have been removed */
  return c->state == HK_OPEN ? HK_TURN_MORE : HK_TURN_OVER;
}

/* Sends the result of an operator's request when it is known. */
static enum hk_turn binary_operator_operated(struct hk_connection *c)
{
  struct hk_buffer text = { 0 };
  bool taken;
  if (!c->net->requests.operate_result(c->binary.operation, &taken, &text))
    return HK_TURN_WAIT;
  c->binary.operation = NULL;
  uint8_t bytes[HK_FRAME_HEADER + 2048];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  if (!text.failed &&
      hk_reloaded_write(&w, HK_OPERATED, c->binary.operate_tag, taken, (struct hk_string){ text.data, text.size }) == 0)
    hk_binary_reply(c, &w);
  else
    hk_binary_error(c, c->binary.operate_tag, HANKEL_INTERNAL, HK_OPERATE, "no memory");
  hk_buffer_free(&text);
  return HK_TURN_MORE;
}

enum hk_turn hk_binary_operate(struct hk_connection *c, const struct hk_frame *f)
{
  struct hk_operate m;
  if (hk_operate_read(f, &m) != 0)
    return hk_binary_bad_payload(c, f);
  c->binary.operate_tag = f->tag;
  if (!(c->binary.operation = c->net->requests.operate(c, &m)))
    return hk_binary_fault(c, f, HANKEL_INTERNAL, "no memory");
  return binary_operator_operated(c);
}

enum hk_turn hk_binary_reload(struct hk_connection *c, const struct hk_frame *f)
{
  if (hk_empty_read(f) != 0)
    return hk_binary_bad_payload(c, f);
  c->binary.reload_tag = f->tag;
  c->binary.reload = c->net->requests.reload(c->net->server);
  return reloaded(c);
}

enum hk_turn hk_binary_answer(struct hk_connection *c)
{
  return c->binary.reload != 0 ? reloaded(c) : c->binary.operation ? binary_operator_operated(c) : listed(c);
}

void hk_binary_abandon(struct hk_connection *c)
{
  c->net->requests.operate_abandon(c->binary.operation);
  c->net->requests.list_abandon(c->binary.listing);
}
