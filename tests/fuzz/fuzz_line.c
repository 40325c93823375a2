/* Fuzz target: line protocol. The first byte of the input says in what pieces the rest goes through the splitter; the lines that
 * come out must not depend on it, and what the parser makes of each must keep its promises. */
#include "proto/line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_LINE = 1024, MOST = 8192 };

static void require(bool good)
{
  if (!good)
    abort();
}

static void parse(const char *line, size_t length)
{
  static struct hk_line l;
  char *copy = malloc(length + (length == 0)); /* its own piece of memory, so that ASan sees one byte too many */
  memcpy(copy, line, length);
  l.unit = 1000000;
  hk_line_parse(&l, copy, length);
  if (l.error) {
    require(l.n == 0 && !l.timed && l.error_byte >= 1 && l.error_byte <= length + 1);
  } else {
    require(l.n <= HK_LINE_FIELDS);
    for (uint32_t i = 0; i < l.n; i++) {
      char buffer[HK_NAME_MAX];
      uint32_t n;
      const char *name = hk_line_name(&l, i, buffer, &n);
      require(hk_name_valid(name, n));
      require(isfinite(l.points[i].value));
    }
    require(!l.timed || l.time % l.unit == 0);
  }
  free(copy);
}

/* Writes down the lines, and '!' for each that was too long; returns how much. */
static size_t split(const uint8_t *data, size_t size, size_t piece, char *out, bool parsed)
{
  struct hk_splitter s = { .max_line = MAX_LINE };
  const char *line;
  size_t length, n = 0;
  for (size_t at = 0; at < size; at += piece) {
    const size_t here = piece < size - at ? piece : size - at;
    size_t used = 0;
    int status;
    while ((status = hk_splitter_next(&s, (const char *)data + at, here, &used, &line, &length)) != HK_LINE_NONE) {
      if (status == HK_LINE_WHOLE) {
        require(length <= MAX_LINE);
        memcpy(out + n, line, length);
        n += length;
        if (parsed)
          parse(line, length);
      }
      out[n++] = status == HK_LINE_WHOLE ? '\n' : '!';
    }
    require(used == here);
  }
  if (hk_splitter_end(&s, &line, &length) == HK_LINE_WHOLE) {
    memcpy(out + n, line, length);
    n += length;
    if (parsed)
      parse(line, length);
  }
  require(s.capacity <= 2 * MAX_LINE);
  hk_splitter_free(&s);
  return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static char pieces[MOST + 8], whole[MOST + 8];
  if (size < 2 || size > MOST)
    return 0;
  const size_t a = split(data + 1, size - 1, 1 + data[0], pieces, true), b = split(data + 1, size - 1, size, whole, false);
  require(a == b && memcmp(pieces, whole, a) == 0);
  return 0;
}
