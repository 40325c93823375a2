/* Bodies in chunks (Transfer-Encoding: chunked, RFC 9112 section 7.1), which libwebsockets hands on as they come. */
#ifndef HK_WEB_CHUNKED_H
#define HK_WEB_CHUNKED_H

#include "daemon/base/buffer.h"

#include <stdint.h>

#define HK_CHUNKED_ASIDE 8192u /* bytes of chunks' extensions and of trailers, which are ignored; all together */

/* Zero-initialise for each body. */
struct hk_chunked {
  enum {
    HK_CHUNK_SIZE,      /* digits */
    HK_CHUNK_EXTENSION, /* up to the end of that line */
    HK_CHUNK_DATA,
    HK_CHUNK_DATA_END, /* CR and LF behind it */
    HK_CHUNK_TRAILER,  /* a line of it has begun */
    HK_CHUNK_TRAILER_LINE,
    HK_CHUNK_OVER,
  } state;
  uint32_t digits; /* that came of a size */
  uint32_t aside;  /* bytes */
  uint64_t left;   /* bytes of the chunk */
};

/* Takes the next bytes, and appends their content to out, at most `size` bytes. 0: more is to come; 1: the body has ended;
 * -EINVAL: invalid chunks, or too many bytes outside the body. */
int hk_chunked_take(struct hk_chunked *c, const char *data, size_t size, struct hk_buffer *out);

#endif
