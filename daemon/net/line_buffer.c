#include "daemon/net/line_buffer.h"
#include "proto/line/line_quick.h"
#include "proto/line/split.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *hk_line_buffer_lend(struct hk_line_buffer *b, void *lent, size_t size, size_t *room)
{
  b->data = lent;
  *room = size - 1 - HK_LINE_BEHIND;
  return b->data;
}

int hk_line_buffer_settle(struct hk_line_buffer *b)
{
  const size_t left = b->size - b->start;
  if (left == 0) {
    free(b->own);
    b->data = b->own = NULL;
    b->start = b->size = 0;
    return 0;
  }
  if (b->data == b->own)
    return 0;
  b->own = malloc(left + 1 + HK_LINE_BEHIND);
  if (b->own)
    memcpy(b->own, b->data + b->start, left + 1 + HK_LINE_BEHIND);
  b->data = b->own;
  b->start = 0;
  b->size = b->own ? left : 0;
  return b->own ? 0 : -ENOMEM;
}

int hk_line_buffer_next(struct hk_line_buffer *b, const char **text, size_t *length)
{
  size_t used = 0;
  if (b->start == b->size)
    return HK_LINE_NONE;
  const int status = hk_splitter_next(&b->splitter, b->data + b->start, b->size - b->start, &used, text, length);
  b->start += used;
  return status;
}

void hk_line_buffer_wrote(struct hk_line_buffer *b, size_t n)
{
  b->size = n;
  memset(b->data + n, 0, 1 + HK_LINE_BEHIND); /* the parser reads these bytes; their values do not matter */
}

void hk_line_buffer_free(struct hk_line_buffer *b)
{
  hk_splitter_free(&b->splitter);
  free(b->own);
}
