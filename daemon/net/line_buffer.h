/* Line buffer: bytes that a connection has read and not split into lines yet. They are in memory borrowed for the turn, or, after
 * it, in the buffer's own memory.
 *
 * Thread: the loop's. */
#ifndef HK_LINE_BUFFER_H
#define HK_LINE_BUFFER_H

#include "proto/line/line.h"

#include <stddef.h>

struct hk_line_buffer { /* all zero: nothing was read */
  struct hk_splitter splitter;
  char *data; /* the bytes: in borrowed memory, or the rest of them in */
  char *own;
  size_t start, size; /* offset of the first byte not taken yet; bytes read */
};

/* Lends `size` bytes, all that was read being taken: where bytes go, and how many. */
char *hk_line_buffer_lend(struct hk_line_buffer *b, void *lent, size_t size, size_t *room);
/* n bytes were put there. */
void hk_line_buffer_wrote(struct hk_line_buffer *b, size_t n);
/* Returns the borrowed memory: moves the rest to the buffer's own memory, which is freed when nothing is left. 0, or -ENOMEM: the
 * rest is lost. */
int hk_line_buffer_settle(struct hk_line_buffer *b);
/* The next line: as hk_splitter_next. */
int hk_line_buffer_next(struct hk_line_buffer *b, const char **text, size_t *length);
void hk_line_buffer_free(struct hk_line_buffer *b);

#endif
