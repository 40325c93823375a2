/* Line buffer: bytes that a connection has read and not split into lines yet. They are in memory borrowed for the turn, or, after
 * it, in the buffer's own memory.
 *
 * Thread: the loop's. */
#ifndef HK_LINE_BUFFER_H
#define HK_LINE_BUFFER_H

#include "proto/line/line.h"
#include "proto/line/split.h"

#include <stddef.h>

struct hk_line_buffer { /* all zero: nothing was read */
  struct hk_splitter splitter;
  char *data; /* unread bytes, in borrowed memory or in `own` */
  char *own;
  size_t start, size; /* offset of the first byte not taken yet; bytes read */
};

/* Lends `size` bytes of memory, when all read bytes were taken. Returns the space for reading, and its size in *room. */
char *hk_line_buffer_lend(struct hk_line_buffer *b, void *lent, size_t size, size_t *room);
/* n bytes were read into that space. */
void hk_line_buffer_wrote(struct hk_line_buffer *b, size_t n);
/* Gives back the borrowed memory: moves the unread bytes to the buffer's own memory, which is freed if there are none. Returns
 * 0, or -ENOMEM: the unread bytes are lost. */
int hk_line_buffer_settle(struct hk_line_buffer *b);
/* Gets the next line, as hk_splitter_next. */
int hk_line_buffer_next(struct hk_line_buffer *b, const char **text, size_t *length);
void hk_line_buffer_free(struct hk_line_buffer *b);

#endif
