/* Line protocol over TCP: each line's fields become points. There are no replies. An invalid line is counted and logged, and the
 * next one is read. Only a first line of HTTP is answered, and closes the connection. An inner connection gets the result of its
 * lines at its end (net/inner.h). */
#include "daemon/intake/decode_lines.h"
#include "daemon/net/admission.h"
#include "daemon/net/connection.h"
#include "daemon/net/loop.h"
#include "daemon/net/net.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct hk_lines_from line_protocol_from(struct hk_connection *c)
{
  return (struct hk_lines_from){ c->peer, NULL, hk_admission_owner(c), &c->quota, c->lines.unit, c->source, c->lines.told };
}

/* At the end of an inner connection, sends the result of its lines when all their points are finished. */
static enum hk_turn sum_up(struct hk_connection *c)
{
  const struct hk_lines_told *told = c->lines.told;
  const struct hk_lines_from f = line_protocol_from(c);
  struct hk_buffer out = { 0 };
  hk_lines_end(c->loop->lines, &f, &c->lines.buffer.splitter);
  if (hk_source_pending(c->source) > 0)
    return HK_TURN_WAIT;
  const uint64_t late = atomic_load_explicit(&c->source->late, memory_order_relaxed); /* none is pending: they are final */
  const uint64_t rejected = atomic_load_explicit(&c->source->rejected, memory_order_relaxed) - told->ahead;
  hk_buffer_print(&out,
                  "{\"taken\":%" PRIu64 ",\"late\":%" PRIu64 ",\"rejected\":%" PRIu64 ",\"refused\":%" PRIu64
                  ",\"dropped\":%" PRIu64 ",\"faults\":[",
                  told->points - told->ahead, late, rejected, told->refused, told->nameless + told->ahead);
  for (uint32_t i = 0; i < told->n; i++) {
    const struct hk_lines_fault *fault = &told->fault[i];
    hk_buffer_print(&out, "%s{\"line\":%" PRIu64 ",\"byte\":%" PRIu32 ",\"why\":", i > 0 ? "," : "", fault->line, fault->byte);
    hk_json_string(&out, fault->why, strlen(fault->why));
    hk_buffer_put(&out, "}", 1);
  }
  hk_buffer_put(&out, "]}\n", 3);
  if (out.failed)
    hk_connection_close(c);
  else
    hk_connection_reply(c, out.data, out.size);
  hk_buffer_free(&out);
  hk_connection_finish(c);
  return HK_TURN_OVER;
}

static enum hk_turn line_protocol_step(struct hk_connection *c)
{
  const struct hk_lines_from f = line_protocol_from(c);
  /* Waits for as much room as a frame needs, although lines need less: otherwise lines would use all room before a frame fits. */
  if (!hk_intake_open(hk_connection_intake(c), c->source, c->net->capacity.frame_points))
    return HK_TURN_WAIT;
  switch (hk_lines_read(c->loop->lines, &f, &c->lines.buffer.splitter, c->lines.buffer.data, c->lines.buffer.size,
                        &c->lines.buffer.start)) {
  case HK_LINES_HTTP:
    hk_connection_refuse_http(c);
    return HK_TURN_OVER;
  case HK_LINES_MORE:
    return HK_TURN_MORE;
  default:
    hk_lines_flush(c->loop->lines, c->source);
    return c->lines.told && c->flow.ended ? sum_up(c) : HK_TURN_NEED;
  }
}

static void line_protocol_end(struct hk_connection *c)
{
  const struct hk_lines_from f = line_protocol_from(c);
  hk_lines_end(c->loop->lines, &f, &c->lines.buffer.splitter);
  hk_connection_close(c);
}

static void line_protocol_tell(struct hk_connection *c, uint16_t code, const char *message)
{
  static const char http[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
                             "this port takes the line protocol over plain TCP or TLS, not over HTTP: nothing was taken\n";
  (void)code;
  if (c->flow.http) /* which has been logged */
    hk_connection_reply(c, http, sizeof http - 1);
  else
    hk_log_peer(c->net->log, &c->quota, HK_LOG_INFO, c->peer, "closed: %s", message);
}

static void line_protocol_admitted(struct hk_connection *c)
{
  c->lines.buffer.splitter.max_line = (uint32_t)c->loop->config->max_line;
}

static int line_protocol_become_inner(struct hk_connection *c)
{
  c->lines.told = calloc(1, sizeof *c->lines.told);
  return c->lines.told ? 0 : -ENOMEM;
}

const struct hk_connection_kind hk_line_kind = {
  .scopes = HK_SCOPE_FEED,
  .late_newcomer = "not authenticated within the handshake deadline",
  .silent = true,
  .lingers = true,
  .authenticate = hk_admission_first_line,
  .admitted = line_protocol_admitted,
  .become_inner = line_protocol_become_inner,
  .space = hk_line_part_space,
  .wrote = hk_line_part_wrote,
  .settle = hk_line_part_settle,
  .left = hk_line_part_left,
  .free = hk_line_part_free,
  .step = line_protocol_step,
  .end = line_protocol_end,
  .tell = line_protocol_tell,
};
