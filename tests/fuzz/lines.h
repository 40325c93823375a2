/* Shared by fuzz targets whose subject makes lines of samples. */
#ifndef HK_FUZZ_LINES_H
#define HK_FUZZ_LINES_H

#include "daemon/intake/sample_lines.h"
#include "proto/line/line.h"

#include <stdlib.h>
#include <string.h>

static inline void require(bool good)
{
  if (!good)
    abort();
}

/* Checks that they keep the promises of sample_lines.h. */
static inline void fuzz_lines(const struct hk_buffer *lines, const struct hk_sample_faults *faults)
{
  static struct hk_line l = { .unit = 1000000 };
  uint64_t n = 0, comments = 0;
  for (size_t at = 0; at < lines->size;) {
    const char *end = memchr(lines->data + at, '\n', lines->size - at);
    require(end != NULL);
    const size_t length = (size_t)(end - (lines->data + at));
    hk_line_parse(&l, lines->data + at, length);
    const bool comment = length == 1 && lines->data[at] == '#';
    require(l.error || (comment ? l.n == 0 : l.n == 1 || l.n == 2));
    require(l.error || comment || l.timed);
    comments += comment;
    n++;
    at += length + 1;
  }
  require(faults->refused <= comments && faults->n <= faults->refused && faults->n <= HK_SAMPLE_FAULTS);
  for (uint32_t i = 0; i < faults->n; i++)
    require(faults->fault[i].line >= 1 && faults->fault[i].line <= n && faults->fault[i].why);
}

#endif
