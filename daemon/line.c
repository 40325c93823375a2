/* Line protocol over TCP: each line's fields become points. There are no replies. A line that is wrong is counted and logged, and
 * the next one is read as if nothing had happened. */
#include "daemon/lines.h"

#include "daemon/server.h"

static struct hk_lines_from from(struct hk_connection *c)
{
  return (struct hk_lines_from){ c->peer, NULL, &c->quota, c->listener->precision, c->source };
}

static enum hk_turn step(struct hk_connection *c)
{
  const struct hk_lines_from f = from(c);
  /* As much room as a frame needs, though lines need less: else lines would take all of it before a frame fits. */
  if (!hk_intake_open(&c->loop->intake, c->source, hk_server_frame_points(c->server)))
    return HK_TURN_WAIT;
  if (hk_lines_read(c->loop->lines, &f, &c->splitter, c->data, c->size, &c->start))
    return HK_TURN_MORE;
  hk_lines_flush(c->loop->lines, c->source);
  return HK_TURN_NEED;
}

static void end(struct hk_connection *c)
{
  const struct hk_lines_from f = from(c);
  hk_lines_end(c->loop->lines, &f, &c->splitter);
  hk_connection_close(c);
}

static void tell(struct hk_connection *c, uint16_t code, const char *message)
{
  (void)code;
  hk_log_peer(&c->server->log, &c->quota, HK_LOG_INFO, c->peer, "closed: %s", message);
}

const struct hk_connection_kind hk_line_kind = { hk_lines_space, hk_lines_wrote, step, end, tell };
