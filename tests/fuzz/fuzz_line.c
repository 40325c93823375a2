/* Fuzz target: line protocol. The first byte of the input selects the pieces in which the rest goes through the splitter, and the
 * lines must not depend on it. The parser must keep its promises for each line, and the quick reader must agree. */
#include "proto/line/line.h"
#include "proto/line/line_quick.h"
#include "proto/line/split.h"
#include "tests/unit/support/line_name.h"
#include "tests/unit/support/line_same.h"

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
  require(line_same(copy, length, 1000000, (char)('0' + length % 16), &l) >= 0);
  if (l.error) {
    require(l.n == 0 && !l.timed && l.error_byte >= 1 && l.error_byte <= length + 1);
  } else {
    require(l.n <= HK_LINE_FIELDS);
    for (uint32_t i = 0; i < l.n; i++) {
      char buffer[HK_NAME_MAX];
      uint32_t n;
      const char *name = line_name(&l, i, buffer, &n);
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

static void mix(uint64_t *hash, const void *data, size_t size)
{
  for (size_t i = 0; i < size; i++)
    *hash = (*hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3;
}

/* Adds the results of a line. */
static void mix_line(uint64_t *hash, const struct hk_line *l)
{
  mix(hash, &l->n, sizeof l->n);
  mix(hash, &l->strings, sizeof l->strings);
  mix(hash, &l->error_byte, sizeof l->error_byte);
  mix(hash, &l->time, l->timed ? sizeof l->time : 0);
  for (uint32_t i = 0; i < l->n; i++) {
    char buffer[HK_NAME_MAX];
    uint32_t n;
    const char *name = line_name(l, i, buffer, &n);
    mix(hash, name, n);
    mix(hash, &l->points[i].value, sizeof l->points[i].value);
  }
}

/* A hash of the results of all lines, split and parsed in one go or in two steps. */
static uint64_t read_all(const uint8_t *data, size_t size, size_t piece, bool one_go)
{
  static struct hk_line l = { .unit = 1 };
  struct hk_splitter s = { .max_line = MAX_LINE };
  const char *line;
  size_t length;
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t at = 0; at < size; at += piece) {
    const size_t here = piece < size - at ? piece : size - at;
    char *copy = malloc(here + 1 + HK_LINE_BEHIND);
    memcpy(copy, data + at, here);
    memset(copy + here, (int)here, 1 + HK_LINE_BEHIND);
    for (size_t used = 0;;) {
      const int status =
          one_go ? hk_splitter_parse(&s, &l, copy, here, &used) : hk_splitter_next(&s, copy, here, &used, &line, &length);
      if (status == HK_LINE_NONE)
        break;
      mix(&hash, &s.line, sizeof s.line);
      mix(&hash, &status, sizeof status);
      if (status == HK_LINE_WHOLE && !one_go)
        hk_line_parse(&l, line, length);
      if (status == HK_LINE_WHOLE)
        mix_line(&hash, &l);
    }
    free(copy);
  }
  hk_splitter_free(&s);
  return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static char pieces[MOST + 8], whole[MOST + 8];
  if (size < 2 || size > MOST)
    return 0;
  const size_t a = split(data + 1, size - 1, 1 + data[0], pieces, true), b = split(data + 1, size - 1, size, whole, false);
  require(a == b && memcmp(pieces, whole, a) == 0);
  const uint64_t parsed = read_all(data + 1, size - 1, size, false);
  require(read_all(data + 1, size - 1, size, true) == parsed);
  require(read_all(data + 1, size - 1, 1 + data[0], true) == parsed);
  return 0;
}
