/* Line buffer: what a connection has read and not cut into lines yet. It lies in memory that is lent for the turn, or, what is
 * left of it, in memory of its own.
 *
 * Thread: the loop's. */
#ifndef HK_LINE_BUFFER_H
#define HK_LINE_BUFFER_H

#include "proto/line/line.h"

#include <stddef.h>

struct hk_line_buffer { /* all zero: nothing was read */
  struct hk_splitter splitter;
  char *data; /* what was read last: in what was lent, or what is left of it, in */
  char *own;
  size_t start, size; /* of what was read and is not taken yet; bytes read */
};

/* Lends `size` bytes, all that was read being taken: where bytes go, and how many. */
char *hk_line_buffer_lend(struct hk_line_buffer *b, void *lent, size_t size, size_t *room);
/* n bytes were put there. */
void hk_line_buffer_wrote(struct hk_line_buffer *b, size_t n);
/* What was lent is for others now: what is left moves to memory of the buffer's own, which is given back when nothing is left. 0,
 * or -ENOMEM: it is gone. */
int hk_line_buffer_settle(struct hk_line_buffer *b);
/* The next line of what was read: as hk_splitter_next. */
int hk_line_buffer_next(struct hk_line_buffer *b, const char **text, size_t *length);
void hk_line_buffer_free(struct hk_line_buffer *b);

#endif
