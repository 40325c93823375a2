#include "daemon/net/binary_replies.h"

#include "daemon/net/loop.h"
#include "daemon/net/net.h"
#include "proto/wire/message.h"

void hk_binary_reply(struct hk_connection *c, const struct hk_writer *w)
{
  hk_connection_reply(c, w->data, w->size);
}

void hk_binary_error(struct hk_connection *c, uint32_t tag, uint16_t code, uint8_t type, const char *message)
{
  uint8_t bytes[2048];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  if (hk_error_write(&w, tag, code, type, hk_string(message)) == 0)
    hk_binary_reply(c, &w);
}

enum hk_turn hk_binary_fault(struct hk_connection *c, const struct hk_frame *f, uint16_t code, const char *message)
{
  hk_binary_error(c, f->tag, code, f->type, message);
  if (!hk_error_closes(code))
    return HK_TURN_MORE;
  hk_count(&c->loop->counters.bad_frames, 1);
  hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, c->peer, "closed: %s frame: %s", hk_frame_name(f->type), message);
  hk_connection_finish(c);
  return HK_TURN_OVER;
}

enum hk_turn hk_binary_bad_payload(struct hk_connection *c, const struct hk_frame *f)
{
  return hk_binary_fault(c, f, HANKEL_BAD_PAYLOAD, "the payload does not have the layout of its type");
}
