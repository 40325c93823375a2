/* Whether the quick reader of lines and the full parser agree, for the tests of both. */
#ifndef HK_TESTS_LINE_SAME_H
#define HK_TESTS_LINE_SAME_H

#include "proto/line/line.h"
#include "proto/line/line_quick.h"

#include <stdlib.h>
#include <string.h>

/* Reads text[0..length-1], which has no LF, with both; `behind` fills the bytes after the LF. -1: they differ; 1: both accepted
 * it; 0: the quick reader left it to the parser. *plain is the parser's result, which points into text. */
static int line_same(const char *text, size_t length, int64_t unit, char behind, struct hk_line *plain)
{
  static struct hk_line quick;
  plain->unit = quick.unit = unit;
  hk_line_parse(plain, text, length);
  char *copy = malloc(length + 1 + HK_LINE_BEHIND); /* memory of its own, so that ASan notices reads beyond its end */
  if (!copy)
    abort();
  memcpy(copy, text, length);
  copy[length] = '\n';
  memset(copy + length + 1, behind, HK_LINE_BEHIND);
  const size_t used = hk_line_quick(&quick, copy);
  bool same = used == length + 1 && !plain->error && quick.n == plain->n && quick.strings == plain->strings &&
              quick.timed == plain->timed && quick.time == plain->time && quick.key_length == plain->key_length &&
              quick.key - copy == plain->key - text && !quick.error;
  for (uint32_t i = 0; same && i < quick.n; i++) {
    const struct hk_line_point *a = &quick.points[i], *b = &plain->points[i];
    same = a->field - copy == b->field - text && a->field_length == b->field_length &&
           memcmp(&a->value, &b->value, sizeof a->value) == 0;
  }
  free(copy);
  return used == 0 ? 0 : same ? 1 : -1;
}

#endif
