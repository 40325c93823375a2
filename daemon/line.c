/* Line protocol over TCP: each line's fields become points. There are no replies. A line that is wrong is counted and logged, and
 * the next one is read as if nothing had happened. */
#include "daemon/lines.h"

#include "daemon/server.h"

#include <stdlib.h>

const char *hk_lines_peer(const struct hk_lines_from *from, char *room)
{
  if (!from->address)
    return from->peer;
  hk_address_format(from->address, room);
  return room;
}

void hk_lines_take(struct hk_loop *loop, const struct hk_lines_from *from, const char *text, size_t length)
{
  struct hk_line *line = &loop->line;
  char buffer[HK_NAME_MAX];
  line->unit = from->unit;
  hk_line_parse(line, text, length);
  if (line->error) {
    char address[HK_ADDRESS_MAX];
    hk_count(&loop->counters.bad_lines, 1);
    hk_log_peer(&loop->server->log, from->quota, HK_LOG_WARNING, hk_lines_peer(from, address), "line %llu dropped, byte %u: %s",
                (unsigned long long)from->number, line->error_byte, line->error);
    return;
  }
  hk_count(&loop->counters.lines, 1);
  hk_count(&loop->counters.strings, line->strings);
  /* Lines without a time that were read together would all have the same one, and all but the first of a sensor be late. */
  const int64_t time = line->timed ? line->time : loop->intake.wall++;
  for (uint32_t i = 0; i < line->n; i++) {
    uint32_t name_length;
    const char *name = hk_line_name(line, i, buffer, &name_length);
    hk_intake_named(&loop->intake, from->source, name, name_length, time, line->points[i].value);
  }
}

static enum hk_turn step(struct hk_connection *c)
{
  struct hk_server *server = c->server;
  const struct hk_lines_from from = { c->peer, NULL, &c->quota, c->listener->precision, c->source, c->splitter.line + 1 };
  const char *text;
  size_t length;
  /* As much room as a frame needs, though a line needs less: else lines would take all of it before a frame fits. */
  if (!hk_intake_open(&c->loop->intake, c->source, hk_server_frame_points(server)))
    return HK_TURN_WAIT;
  const int status = hk_lines_next(c, &text, &length);
  if (status == HK_LINE_NONE)
    return HK_TURN_NEED;
  if (status == HK_LINE_WHOLE) {
    hk_lines_take(c->loop, &from, text, length);
  } else {
    hk_count(&c->loop->counters.bad_lines, 1);
    hk_log_peer(&server->log, &c->quota, HK_LOG_WARNING, c->peer, "line %llu dropped: %s", (unsigned long long)c->splitter.line,
                status == HK_LINE_TOO_LONG ? "longer than max_line" : "no memory to hold it");
  }
  return HK_TURN_MORE;
}

static void end(struct hk_connection *c)
{
  const struct hk_lines_from from = { c->peer, NULL, &c->quota, c->listener->precision, c->source, c->splitter.line + 1 };
  const char *text;
  size_t length;
  if (hk_splitter_end(&c->splitter, &text, &length) == HK_LINE_WHOLE)
    hk_lines_take(c->loop, &from, text, length);
  hk_connection_close(c);
}

static void tell(struct hk_connection *c, uint16_t code, const char *message)
{
  (void)code;
  hk_log_peer(&c->server->log, &c->quota, HK_LOG_INFO, c->peer, "closed: %s", message);
}

const struct hk_connection_kind hk_line_kind = { hk_lines_space, hk_lines_wrote, step, end, tell };
