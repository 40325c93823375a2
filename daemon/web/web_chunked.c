/* See web_chunked.h. */
#include "daemon/web/web_chunked.h"

#include <errno.h>

#define DIGITS_MOST 8u /* 4 GiB: far more than a body may have */

static int digit_of(char c)
{
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int aside(struct hk_chunked *c)
{
  return ++c->aside > HK_CHUNKED_ASIDE ? -EINVAL : 0;
}

/* The line with a chunk's size has ended. */
static int sized(struct hk_chunked *c)
{
  if (c->digits == 0)
    return -EINVAL;
  c->digits = 0;
  c->state = c->left > 0 ? HK_CHUNK_DATA : HK_CHUNK_TRAILER;
  return 0;
}

static int size_byte(struct hk_chunked *c, char byte)
{
  const int digit = digit_of(byte);
  if (byte == '\n')
    return sized(c);
  if (digit < 0) {
    c->state = HK_CHUNK_EXTENSION;
    return byte == '\r' || byte == ';' || byte == ' ' || byte == '\t' ? aside(c) : -EINVAL;
  }
  c->left = c->left * 16 + (unsigned)digit;
  return ++c->digits > DIGITS_MOST ? -EINVAL : 0;
}

/* A byte outside the body. */
static int other_byte(struct hk_chunked *c, char byte)
{
  switch (c->state) {
  case HK_CHUNK_SIZE:
    return size_byte(c, byte);
  case HK_CHUNK_EXTENSION:
    return byte == '\n' ? sized(c) : aside(c);
  case HK_CHUNK_DATA_END:
    if (byte == '\n')
      c->state = HK_CHUNK_SIZE;
    return byte == '\n' || byte == '\r' ? aside(c) : -EINVAL;
  case HK_CHUNK_TRAILER:
    if (byte == '\n')
      c->state = HK_CHUNK_OVER;
    else if (byte != '\r')
      c->state = HK_CHUNK_TRAILER_LINE;
    return aside(c);
  default: /* in a line of the trailer */
    if (byte == '\n')
      c->state = HK_CHUNK_TRAILER;
    return aside(c);
  }
}

int hk_chunked_take(struct hk_chunked *c, const char *data, size_t size, struct hk_buffer *out)
{
  for (size_t i = 0; i < size && c->state != HK_CHUNK_OVER;) {
    if (c->state != HK_CHUNK_DATA) {
      const int status = other_byte(c, data[i++]);
      if (status != 0)
        return status;
      continue;
    }
    const size_t n = c->left < size - i ? (size_t)c->left : size - i;
    hk_buffer_put(out, data + i, n);
    i += n;
    c->left -= n;
    if (c->left == 0)
      c->state = HK_CHUNK_DATA_END;
  }
  return c->state == HK_CHUNK_OVER;
}
