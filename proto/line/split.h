/* Splits a stream of the line protocol into lines. The splitter holds at most one line of max_line bytes. Thread: that of its
 * owner. */
#ifndef HK_SPLIT_H
#define HK_SPLIT_H

#include "proto/line/line.h"
#include "proto/line/line_quick.h"

/* Splits a stream into lines. Zero-initialise, then set max_line. */
struct hk_splitter {
  uint32_t max_line; /* bytes, without LF */
  bool skipping;     /* inside a line that is too long */
  uint64_t line;     /* number of the last line returned or dropped, from 1 */
  char *held;        /* start of a line whose end has not arrived; NULL: none */
  size_t n_held, capacity;
};

enum hk_splitter_status {
  HK_LINE_NONE = 0,     /* all data is used; more is needed */
  HK_LINE_WHOLE = 1,    /* *line is the next line, without LF; valid until the next call */
  HK_LINE_TOO_LONG = 2, /* a line was too long (reported once; its rest is skipped); *line is its first max_line bytes */
  HK_LINE_MEMORY = 3,   /* no memory to hold a part of a line: treated as too long */
};

/* Returns the next line of the held bytes and data[*used..size-1]; advances *used. Call until HK_LINE_NONE. */
int hk_splitter_next(struct hk_splitter *s, const char *data, size_t size, size_t *used, const char **line, size_t *length);

/* As hk_splitter_next, and parses the line into *l; fast if it is ordinary. For a line that is too long, sets l->http only.
 * Overwrites data[size]; HK_LINE_BEHIND bytes after it must be readable. Pointers in *l are valid until the next call after
 * which *used == size. */
int hk_splitter_parse(struct hk_splitter *s, struct hk_line *l, char *data, size_t size, size_t *used);

/* The stream has ended: returns the last line if it had no LF. Returns HK_LINE_WHOLE or HK_LINE_NONE. */
int hk_splitter_end(struct hk_splitter *s, const char **line, size_t *length);

/* hk_line_http of a line that was returned with this status (enum hk_splitter_status). */
bool hk_splitter_http(const char *line, size_t length, int status);

void hk_splitter_free(struct hk_splitter *s); /* may be used again afterwards */

#endif
