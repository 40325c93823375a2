/* Splits a stream of bytes into lines. See line.h. */
#include "proto/line/split.h"
#include "proto/line/line.h"
#include "proto/line/line_quick.h"

#include <stdlib.h>
#include <string.h>

/* Holds bytes of a line whose end has not arrived; they fit into max_line. False: out of memory. */
static bool split_hold(struct hk_splitter *s, const char *data, size_t size)
{
  if (s->capacity < s->n_held + size) {
    size_t capacity = s->capacity ? s->capacity : 256;
    while (capacity < s->n_held + size)
      capacity *= 2;
    char *held = realloc(s->held, capacity);
    if (!held)
      return false;
    s->held = held;
    s->capacity = capacity;
  }
  memcpy(s->held + s->n_held, data, size);
  s->n_held += size;
  return true;
}

/* Drops the line; `ended`: its LF was found. */
static int split_drop(struct hk_splitter *s, bool ended, int status)
{
  s->n_held = 0;
  s->skipping = !ended;
  s->line++;
  return status;
}

int hk_splitter_next(struct hk_splitter *s, const char *data, size_t size, size_t *used, const char **line, size_t *length)
{
  while (*used < size) {
    const char *begin = data + *used, *lf = memchr(begin, '\n', size - *used);
    const size_t piece = lf ? (size_t)(lf - begin) : size - *used;
    *used += piece + (lf != NULL);
    if (s->skipping) {
      s->skipping = !lf;
      continue;
    }
    if (s->n_held + piece > s->max_line) {
      if (s->n_held > 0 && !split_hold(s, begin, s->max_line - s->n_held))
        return split_drop(s, lf != NULL, HK_LINE_MEMORY);
      *line = s->n_held > 0 ? s->held : begin;
      *length = s->max_line;
      return split_drop(s, lf != NULL, HK_LINE_TOO_LONG);
    }
    if (lf && s->n_held == 0) {
      *line = begin;
      *length = piece;
      s->line++;
      return HK_LINE_WHOLE;
    }
    if (piece > 0 && !split_hold(s, begin, piece))
      return split_drop(s, lf != NULL, HK_LINE_MEMORY);
    if (lf) {
      *line = s->held;
      *length = s->n_held;
      s->n_held = 0;
      s->line++;
      return HK_LINE_WHOLE;
    }
  }
  return HK_LINE_NONE;
}

int hk_splitter_parse(struct hk_splitter *s, struct hk_line *l, char *data, size_t size, size_t *used)
{
  if (*used < size && s->n_held == 0 && !s->skipping) {
    data[size] = '\n';
    const size_t n = hk_line_quick(l, data + *used);
    if (n > 0 && n <= size - *used && n - 1 <= s->max_line) { /* else it ends later, or is too long */
      *used += n;
      s->line++;
      return HK_LINE_WHOLE;
    }
  }
  const char *line;
  size_t length;
  const int status = hk_splitter_next(s, data, size, used, &line, &length);
  if (status == HK_LINE_WHOLE)
    hk_line_parse(l, line, length);
  else if (status == HK_LINE_TOO_LONG)
    l->http = hk_line_http(line, length, false);
  return status;
}

int hk_splitter_end(struct hk_splitter *s, const char **line, size_t *length)
{
  const bool some = s->n_held > 0;
  *line = s->held;
  *length = s->n_held;
  s->n_held = 0;
  s->skipping = false;
  s->line += some;
  return some ? HK_LINE_WHOLE : HK_LINE_NONE;
}

bool hk_splitter_http(const char *line, size_t length, int status)
{
  return (status == HK_LINE_WHOLE || status == HK_LINE_TOO_LONG) && hk_line_http(line, length, status == HK_LINE_WHOLE);
}

void hk_splitter_free(struct hk_splitter *s)
{
  free(s->held);
  *s = (struct hk_splitter){ .max_line = s->max_line };
}
