/* Decodes lines of the line protocol, from TCP or UDP. Lines are parsed, their points are gathered, and some 128 at a time are
 * looked up and handed to the intake, so that memory for some is fetched while others are parsed.
 *
 *   hk_lines_read until all bytes are used up, then hk_lines_flush, before the bytes are gone.
 *
 * Thread: the loop's; there is one object for each loop. */
#ifndef HK_DECODE_LINES_H
#define HK_DECODE_LINES_H

#include "daemon/intake/intake.h"
#include "proto/line/line.h"
#include "proto/line/split.h"

#include <sys/socket.h>

struct hk_lines;

#define HK_LINES_FAULTS 8u /* maximum number of reported ones */

/* Results of lines, for a sender that waits for an answer. */
struct hk_lines_told {
  uint64_t points;   /* points that were handed to the intake */
  uint64_t ahead;    /* of these, rejected for a time too far in the future */
  uint64_t refused;  /* invalid lines, */
  uint64_t nameless; /* and points whose sensor was refused */
  uint32_t n;        /* the first of these */
  struct hk_lines_fault {
    uint64_t line;   /* from 1 */
    uint32_t byte;   /* from 1; 0: it has no place in its line */
    const char *why; /* constant */
  } fault[HK_LINES_FAULTS];
};

/* Where lines come from. */
struct hk_lines_from {
  const char *peer;
  const struct sockaddr *address; /* if not NULL, the peer's address; formatted only when it is needed */
  uint64_t owner;                 /* owner of new names */
  struct hk_log_quota *quota;
  int64_t unit; /* ns of a unit of its times */
  struct hk_source *source;
  struct hk_lines_told *told; /* collects the results; a first line of HTTP is like any other then. NULL: not needed */
};

/* 0 and *out, or a negative errno. intake must outlive it. evict: ns of silence after which a sensor may be forgotten; 0 = never.
 */
int hk_lines_new(struct hk_lines **out, struct hk_intake *intake, int64_t evict);
/* Before sensors are evicted: clears the cache, so all handles are looked up again. */
void hk_lines_adopt(struct hk_lines *lines, int64_t evict);
void hk_lines_free(struct hk_lines *lines); /* NULL is allowed */

enum hk_lines_turn {
  HK_LINES_USED, /* all is used up */
  HK_LINES_MORE, /* call it again, if there is room */
  HK_LINES_HTTP, /* the first line is that of an HTTP request, and counted as bad: no later line may be read */
};

/* Reads lines of data[*used..size-1] and moves *used on; 128 points or one line's, whichever is more, for which there must be
 * room. data[size] is overwritten, and behind it HK_LINE_BEHIND bytes can be read. Faults are counted and logged, HTTP is only
 * counted. */
enum hk_lines_turn hk_lines_read(struct hk_lines *lines, const struct hk_lines_from *from, struct hk_splitter *splitter,
                                 char *data, size_t size, size_t *used);
/* The stream has ended: its last line, when it had no LF. */
void hk_lines_end(struct hk_lines *lines, const struct hk_lines_from *from, struct hk_splitter *splitter);
/* Hands over the points of all lines that were read. source: where they all come from. */
void hk_lines_flush(struct hk_lines *lines, struct hk_source *source);

#endif
