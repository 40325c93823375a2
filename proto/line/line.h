/* InfluxDB line protocol: parses text lines into points. PROTOCOL.md (Line protocol) has the grammar and the naming of
 * sensors.
 *
 *   hk_splitter (split.h) splits a TCP stream into whole lines; hk_line_parse parses a line into points.
 *   hk_splitter_parse does both, fast.
 *
 * A bad line gives an error with its byte and reason, and does not affect the next line. Allocates no memory. Thread: any. */
#ifndef HK_LINE_H
#define HK_LINE_H

#include "proto/wire/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_LINE_MAX 65536      /* longest line by default, bytes without line end */
#define HK_LINE_MAX_LEAST 1024 /* smallest and largest limit that can be configured */
#define HK_LINE_MAX_MOST (1u << 20)
#define HK_LINE_FIELDS 1024u /* most numeric fields in a line */

/* Parses "ns", "us", "ms" or "s" to the ns in this unit; 0: another text. */
int64_t hk_precision_parse(const char *text);

/* A numeric field of a line: a point of its own sensor. Views into the line. */
struct hk_line_point {
  const char *field; /* field key, as sent */
  uint32_t field_length;
  double value;
};

/* A parsed line. Allocate once (about 24 KiB) and use for any number of lines. */
struct hk_line {
  int64_t unit;     /* in: ns per unit of the time; 1 for ns */
  uint32_t n;       /* out: points */
  uint32_t strings; /* out: string fields, skipped */
  bool timed;       /* out: the line has a time; otherwise the time of arrival counts */
  int64_t time;     /* out: ns */
  const char *key;  /* out: measurement and tags, as sent */
  uint32_t key_length;
  uint32_t error_byte;                         /* out: position of the error, from 1 */
  const char *error;                           /* out: NULL, or the reason why the line was dropped; n is then 0 */
  bool http;                                   /* out, if the line was dropped: hk_line_http */
  struct hk_line_point points[HK_LINE_FIELDS]; /* out */
};

/* Parses a line without its LF; ignores a CR at the end. A blank line or a comment gives n = 0 and no error. */
void hk_line_parse(struct hk_line *l, const char *text, size_t length);

/* Whether text[0..length-1] is a boolean; sets its value, 1 or 0. */
bool hk_line_boolean(const char *text, size_t length, double *value);

/* Name of the sensor of a point, valid by name.h, from a line's key and a field's key, both of the same line; sets *length,
 * 1..HK_NAME_MAX. The result points into the line if the name is contiguous there, else into `buffer`. */
const char *hk_line_join(const char *key, uint32_t key_length, const char *field, uint32_t field_length, char buffer[HK_NAME_MAX],
                         uint32_t *length);

/* Whether a line is the first line of an HTTP request, `METHOD TARGET HTTP/1.1`, which no protocol here allows: a web page can
 * make its browser send such a request to any port, followed by lines of the page's choice. Of a line that is not `whole` only
 * the start is there, and checked. */
bool hk_line_http(const char *line, size_t length, bool whole);

#endif
