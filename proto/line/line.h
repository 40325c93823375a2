/* InfluxDB line protocol: text lines to points. PROTOCOL.md (Line protocol) has the grammar and how sensors are named.
 *
 *   hk_splitter gives whole lines out of a TCP stream however it is cut; hk_line_parse turns a line into points.
 *   hk_splitter_parse does both, and quickly.
 *
 * A bad line is an error with the byte and the reason, and never stops the next one. Memory: the splitter holds at most
 * one line of max_line bytes, the parser nothing of its own. Thread: whoever owns the object. */
#ifndef HK_LINE_H
#define HK_LINE_H

#include "proto/wire/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_LINE_MAX 65536      /* longest line unless configured otherwise, bytes without its end */
#define HK_LINE_MAX_LEAST 1024 /* what it may be configured to */
#define HK_LINE_MAX_MOST (1u << 20)
#define HK_LINE_FIELDS 1024u /* numeric fields in a line */

/* Reads "ns", "us", "ms" or "s" as the ns in a unit; 0 when it is none of them. */
int64_t hk_precision_parse(const char *text);

/* One numeric field of a line: a point of a sensor of its own. Views into the line. */
struct hk_line_point {
  const char *field; /* its key, as sent */
  uint32_t field_length;
  double value;
};

/* A line, parsed. Allocate once (about 24 KiB), use for any number of lines. */
struct hk_line {
  int64_t unit;     /* in: ns in a unit of the time; 1 for ns */
  uint32_t n;       /* out: points */
  uint32_t strings; /* out: string fields, skipped */
  bool timed;       /* out: the line gives a time; otherwise the time of arrival stands for it */
  int64_t time;     /* out: ns */
  const char *key;  /* out: measurement and tags, as sent */
  uint32_t key_length;
  uint32_t error_byte;                         /* out: where the error lies, counted from 1 */
  const char *error;                           /* out: NULL, or why the line was dropped, in words; n is then 0 */
  bool http;                                   /* out, when it was dropped: hk_line_http */
  struct hk_line_point points[HK_LINE_FIELDS]; /* out */
};

/* Parses a line without its LF; a CR at the end is ignored. A blank line or a comment gives n = 0 and no error. */
void hk_line_parse(struct hk_line *l, const char *text, size_t length);

/* The same for the line that begins at text and ends at the next LF, when it is an ordinary one; it is found on the way. Returns
 * its bytes with the LF, or 0: it is not ordinary, perhaps faulty, and hk_line_parse has to look at it; *l is of no meaning then.
 * An LF has to follow sooner or later, and behind it HK_LINE_BEHIND bytes that can be read, whatever they are. */
#define HK_LINE_BEHIND 64
size_t hk_line_quick(struct hk_line *l, const char *text);

/* Whether text[0..length-1] is a boolean, and which (1 or 0). */
bool hk_line_boolean(const char *text, size_t length, double *value);

/* Name of the sensor of point i, *length (1..HK_NAME_MAX) bytes, valid by the rule of name.h: in the line itself where it stands
 * there in one piece, else put together in buffer. */
const char *hk_line_name(const struct hk_line *l, uint32_t i, char buffer[HK_NAME_MAX], uint32_t *length);

/* The same from the key of a line and that of a field, which stand in one line. */
const char *hk_line_join(const char *key, uint32_t key_length, const char *field, uint32_t field_length, char buffer[HK_NAME_MAX],
                         uint32_t *length);

/* Lines out of a stream. Zero-initialise, then set max_line. */
struct hk_splitter {
  uint32_t max_line; /* bytes, without LF */
  bool skipping;     /* in a line that is too long */
  uint64_t line;     /* number of the last line given out or dropped, from 1 */
  char *held;        /* the start of a line whose end has not come; NULL when there is none */
  size_t n_held, capacity;
};

enum hk_splitter_status {
  HK_LINE_NONE = 0,     /* all of data is used up; give more */
  HK_LINE_WHOLE = 1,    /* *line is the next line, without LF; valid until the next call */
  HK_LINE_TOO_LONG = 2, /* a line was too long (told once; the rest of it is skipped); *line is its first max_line bytes */
  HK_LINE_MEMORY = 3,   /* no memory to hold a part of a line: treated like one too long */
};

/* The next line of what has been held and data[*used..size-1]; moves *used on. Call until HK_LINE_NONE. */
int hk_splitter_next(struct hk_splitter *s, const char *data, size_t size, size_t *used, const char **line, size_t *length);

/* The same, and the line is parsed into *l, quickly where it is an ordinary one; of one that is too long l->http alone is set.
 * data[size] is overwritten, and behind it HK_LINE_BEHIND bytes can be read. What l points to is valid until the next call after
 * which *used == size. */
int hk_splitter_parse(struct hk_splitter *s, struct hk_line *l, char *data, size_t size, size_t *used);

/* Whether a line that came with this status is the first one of an HTTP request, `METHOD TARGET HTTP/1.1`, which is no line of
 * any protocol here: a web page can have its browser send one to any port, with lines of the page's own making behind it. Of a
 * line that was too long the beginning has to do. */
bool hk_line_http(const char *line, size_t length, int status);

/* The stream has ended: the last line when it had no LF. HK_LINE_WHOLE or HK_LINE_NONE. */
int hk_splitter_end(struct hk_splitter *s, const char **line, size_t *length);

void hk_splitter_free(struct hk_splitter *s); /* may be used again afterwards */

#endif
