/* Decodes chunked bodies (Transfer-Encoding: chunked, RFC 9112 section 7.1), which libwebsockets does not decode. */
#ifndef HK_WEB_CHUNKED_H
#define HK_WEB_CHUNKED_H

#include "daemon/base/buffer.h"

#include <stdint.h>

#define HK_CHUNKED_ASIDE 8192u /* most bytes of chunk extensions and trailers, all together, which are ignored */

/* Zero-initialise for each body. */
struct hk_chunked {
  enum {
    HK_CHUNK_SIZE,      /* digits */
    HK_CHUNK_EXTENSION, /* up to the end of the line of the size */
    HK_CHUNK_DATA,
    HK_CHUNK_DATA_END, /* CR and LF after the data */
    HK_CHUNK_TRAILER,  /* inside a line of the trailer */
    HK_CHUNK_TRAILER_LINE,
    HK_CHUNK_OVER,
  } state;
  uint32_t digits; /* digits of the size so far */
  uint32_t aside;  /* bytes of extensions and trailers so far */
  uint64_t left;   /* remaining bytes of the chunk */
};

/* Takes the next bytes, and appends their content to out, at most `size` bytes. Returns 0: more is to come; 1: the body has
 * ended; -EINVAL: invalid chunks, or too many bytes outside of chunks. */
int hk_chunked_take(struct hk_chunked *c, const char *data, size_t size, struct hk_buffer *out);

#endif
