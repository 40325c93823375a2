/* Text protocol: sends JSON lines, and reads lines that select them. An invalid line is answered with an error and changes
 * nothing. */
#include "daemon/net/protocol_text.h"

#include "daemon/net/admission.h"
#include "daemon/net/connection.h"
#include "daemon/net/loop.h"
#include "proto/line/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1024

/* Returns the next word of a list, up to ',' or the end; moves *at after it. */
static struct hk_string next_word(const char **at, const char *end)
{
  const char *start = *at, *comma = memchr(start, ',', (size_t)(end - start));
  *at = comma ? comma + 1 : end;
  return (struct hk_string){ start, (size_t)((comma ? comma : end) - start) };
}

static bool text_protocol_is(struct hk_string word, const char *name)
{
  return word.length == strlen(name) && memcmp(word.data, name, word.length) == 0;
}

/* "NAME>=SCORE": reads the score and cuts the word to its name. */
static int cut_score(struct hk_string *word, float *score)
{
  const char *sign = memchr(word->data, '>', word->length);
  char number[32], *end;
  if (!sign)
    return 0;
  const size_t before = (size_t)(sign - word->data), behind = word->length - before;
  if (behind < 3 || sign[1] != '=' || behind - 2 >= sizeof number)
    return -1;
  memcpy(number, sign + 2, behind - 2);
  number[behind - 2] = 0;
  *score = strtof(number, &end);
  word->length = before;
  return *end == 0 && *score >= 0 && *score <= 1 ? 0 : -1;
}

/* "since=NUMBER". */
static int read_position(struct hk_string word, uint64_t *position)
{
  *position = 0;
  for (size_t i = 6; i < word.length; i++) {
    const unsigned digit = (unsigned)(word.data[i] - '0');
    if (digit > 9 || __builtin_mul_overflow(*position, 10, position) || __builtin_add_overflow(*position, digit, position))
      return -1;
  }
  return 0;
}

const char *hk_text_parse(const char *line, size_t length, struct hk_wanted *out)
{
  while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\r' || line[length - 1] == '\t'))
    length--;
  const char *end = line + length, *space = memchr(line, ' ', length);
  const char *list_end = space ? space : end, *at = line;
  *out = (struct hk_wanted){ .format = HK_PROTOCOL_TEXT };
  if (at == list_end)
    return "empty; say for example: scores>=0.8,events machine*";
  while (at < list_end) {
    struct hk_string word = next_word(&at, list_end);
    float score = -1;
    if (cut_score(&word, &score) != 0)
      return "after >= comes a score from 0 to 1";
    if (score >= 0 && !text_protocol_is(word, "scores") && !text_protocol_is(word, "results"))
      return "only scores and results have a score";
    if (score >= 0)
      out->min_score = score;
    if (text_protocol_is(word, "scores"))
      out->what |= HANKEL_SCORES;
    else if (text_protocol_is(word, "results"))
      out->what |= HANKEL_SCORES | HANKEL_UNSCORED;
    else if (text_protocol_is(word, "events"))
      out->what |= HANKEL_EVENTS;
    else if (text_protocol_is(word, "notices"))
      out->what |= HANKEL_NOTICES;
    else if (text_protocol_is(word, "incidents"))
      out->what |= HANKEL_INCIDENTS;
    else if (word.length > 6 && memcmp(word.data, "since=", 6) == 0) {
      if (read_position(word, &out->since) != 0)
        return "since= takes the position of an event";
      out->what |= HANKEL_POSITIONS;
    } else
      return "not one of scores, results, events, notices, incidents, since=POSITION; say for example: scores>=0.8,events "
             "machine*";
  }
  if (out->what == HANKEL_POSITIONS)
    return "since= needs something to show from there; say for example: events,since=120 machine*";
  while (space && space < end && *space == ' ')
    space++;
  if (space)
    out->glob = (struct hk_string){ space, (size_t)(end - space) };
  else
    out->glob = (struct hk_string){ line, 0 };
  if (out->glob.length > HK_GLOB_MAX)
    return "the glob is too long";
  return NULL;
}

static void say_error(struct hk_connection *c, const char *message)
{
  struct hk_buffer b = { 0 };
  hk_buffer_put(&b, "{\"error\":", 9);
  hk_json_string(&b, message, strlen(message));
  hk_buffer_put(&b, "}\n", 2);
  if (b.failed)
    hk_connection_close(c);
  else
    hk_connection_reply(c, b.data, b.size);
  hk_buffer_free(&b);
}

static void text_protocol_subscribe(struct hk_connection *c, const struct hk_wanted *wanted)
{
  const int status = hk_loop_subscribe(c->loop, c, wanted);
  if (status == 0)
    hk_loop_tell_events(c->loop);
  if (status == -ENOSPC)
    say_error(c, "too many different subscriptions; max_subscriptions in the configuration limits them");
  else if (status != 0)
    say_error(c, "no memory for this subscription");
}

/* Subscribes a new connection to everything. */
static void text_greet(struct hk_connection *c)
{
  const struct hk_wanted all = { .format = HK_PROTOCOL_TEXT,
                                 .what = HANKEL_SCORES | HANKEL_UNSCORED | HANKEL_EVENTS | HANKEL_NOTICES,
                                 .glob = hk_string("") };
  text_protocol_subscribe(c, &all);
}

static void text_protocol_take(struct hk_connection *c, const char *text, size_t length)
{
  struct hk_wanted wanted;
  const char *fault = hk_text_parse(text, length, &wanted);
  if (!fault) {
    text_protocol_subscribe(c, &wanted);
    return;
  }
  hk_count(&c->loop->counters.bad_lines, 1);
  say_error(c, fault);
}

static enum hk_turn text_protocol_step(struct hk_connection *c)
{
  const char *text;
  size_t length;
  const int status = hk_line_buffer_next(&c->lines.buffer, &text, &length);
  if (status == HK_LINE_NONE)
    return HK_TURN_NEED;
  if (c->lines.buffer.splitter.line == 1 && hk_splitter_http(text, length, status)) {
    hk_count(&c->loop->counters.bad_lines, 1);
    hk_connection_refuse_http(c);
    return HK_TURN_OVER;
  }
  if (status == HK_LINE_WHOLE)
    text_protocol_take(c, text, length);
  else
    say_error(c, "the line is too long");
  return HK_TURN_MORE;
}

static void text_protocol_end(struct hk_connection *c)
{
  const char *text;
  size_t length;
  if (hk_splitter_end(&c->lines.buffer.splitter, &text, &length) == HK_LINE_WHOLE)
    text_protocol_take(c, text, length);
  hk_connection_finish(c);
}

static void text_protocol_tell(struct hk_connection *c, uint16_t code, const char *message)
{
  (void)code;
  say_error(c, message);
}

const struct hk_connection_kind hk_text_kind = {
  .scopes = HK_SCOPE_SUBSCRIBE,
  .late_newcomer = "not authenticated within the handshake deadline",
  .authenticate = hk_admission_first_line,
  .space = hk_line_part_space,
  .wrote = hk_line_part_wrote,
  .settle = hk_line_part_settle,
  .left = hk_line_part_left,
  .free = hk_line_part_free,
  .step = text_protocol_step,
  .end = text_protocol_end,
  .tell = text_protocol_tell,
  .greet = text_greet,
};
