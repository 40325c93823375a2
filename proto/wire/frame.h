/* Frames of the binary protocol: the envelope of every message. PROTOCOL.md describes it; message.h has the payloads.
 *
 * Reading: bytes go into an inbox (its space is the caller's recv buffer), whole frames come out as views into it.
 *   for (;;) { space = hk_inbox_space(&in, &size); n = recv(fd, space, size); hk_inbox_wrote(&in, n);
 *              while ((status = hk_inbox_next(&in, &frame)) == HK_FRAME_WHOLE) ... }
 * Writing: a writer over a caller's buffer; hk_frame_begin, put the payload, hk_frame_end.
 *
 * Nothing here trusts a peer: a length is checked before anything is kept for it, and an inbox grows only with bytes that
 * have really come. Thread: whoever owns the object; no globals. */
#ifndef HK_FRAME_H
#define HK_FRAME_H

#include "proto/hankel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HK_PROTOCOL_VERSION 1
#define HK_FRAME_HEADER 16
#define HK_FRAME_MAX (1u << 20)         /* longest payload unless configured otherwise; no server sends longer ones */
#define HK_FRAME_MAX_LEAST (128u << 10) /* a server must not be configured to take less */
#define HK_FRAME_MAX_MOST (64u << 20)   /* nor more */
#define HK_GLOB_MAX 512                 /* bytes */
#define HK_FEED_NAME_MAX 255            /* bytes */
#define HK_CLIENT_MAX 128               /* bytes of the name of a client or server program */
#define HK_TOKEN_BYTES 256              /* of a token, or a key */
#define HK_REGISTER_MAX 8192u           /* names in a REGISTER */
#define HK_SENSORS_MAX 1000u            /* sensors in the answer to SENSORS */
#define HK_NO_HANDLE UINT32_MAX

enum hk_frame_type {
  HK_HELLO = 0x01,
  HK_REGISTER = 0x02,
  HK_POINTS = 0x03,
  HK_SUBSCRIBE = 0x04,
  HK_UNSUBSCRIBE = 0x05,
  HK_PING = 0x06,
  HK_STATUS = 0x07,
  HK_BYE = 0x08,
  HK_FEED = 0x09,
  HK_RELOAD = 0x0a,
  HK_OPERATE = 0x0b,
  HK_SENSORS = 0x0c,
  HK_WELCOME = 0x81,
  HK_REGISTERED = 0x82,
  HK_DONE = 0x84,
  HK_PONG = 0x86,
  HK_REPORT = 0x87,
  HK_FAREWELL = 0x88,
  HK_FEED_AT = 0x89,
  HK_RELOADED = 0x8a,
  HK_OPERATED = 0x8b,
  HK_NAMES = 0x91,
  HK_SCORES = 0x92,
  HK_EVENTS = 0x93,
  HK_GAP = 0x94,
  HK_ACK = 0x95,
  HK_INCIDENT = 0x96,
  HK_ERROR = 0xff,
};

/* "HELLO"...; "unknown" when there is no such type. */
const char *hk_frame_name(uint8_t type);

/* One whole frame; payload points into the buffer it was read from. */
struct hk_frame {
  uint8_t type; /* as sent: may be no member of hk_frame_type */
  uint32_t tag;
  uint32_t length; /* of the payload, bytes */
  const uint8_t *payload;
};

/* What reading gives; every other value is an enum hankel_error_code (BAD_MAGIC, BAD_VERSION, TOO_LONG, BAD_CHECKSUM): the
 * stream cannot be read any further. */
enum { HK_FRAME_WHOLE = 0, HK_FRAME_PART = -1 };

/* The type that a header of HK_FRAME_HEADER bytes gives, unchecked. */
uint8_t hk_frame_type(const uint8_t *header);

/* Reads the frame at the start of data. WHOLE: *out is set and hk_frame_size(out) bytes are used up. PART: more bytes are
 * needed. An error code: out has type and tag where they could be read, else 0. */
int hk_frame_read(const uint8_t *data, size_t size, uint32_t max_length, struct hk_frame *out);

static inline size_t hk_frame_size(const struct hk_frame *f)
{
  return HK_FRAME_HEADER + (size_t)f->length;
}

/* Bytes that wait to become frames. Zero-initialise, then set max_length. */
struct hk_inbox {
  uint8_t *data; /* its own memory, or lent to it */
  size_t start, end, capacity;
  uint32_t max_length; /* longest payload taken */
  bool lent;
  uint8_t *own; /* while data is lent */
  size_t own_capacity;
};

/* Where many inboxes take turns, one large buffer serves them all, stays in the cache, and each inbox has memory for the rest of
 * a frame at most: hk_inbox_lend, hk_inbox_space, recv, hk_inbox_wrote, hk_inbox_next..., hk_inbox_settle hk_inbox_lend: what
 * waits is moved to the front of `buffer`, which the inbox reads into; nothing is done, and it reads into its own memory, when
 * what waits would fill half of the buffer. hk_inbox_settle: what is left is moved to its own memory, and the buffer is free for
 * others; no memory is kept when nothing is left. 0, or -ENOMEM: what was left is gone, and the stream with it. */
void hk_inbox_lend(struct hk_inbox *in, uint8_t *buffer, size_t size);
int hk_inbox_settle(struct hk_inbox *in);

/* Room for *size bytes at the end, valid until the next call on the inbox. Views of frames end here. NULL: no memory. *size 0:
 * full of whole frames that were not taken (never when hk_inbox_next was called until HK_FRAME_PART). An inbox grows to twice the
 * longest frame. */
uint8_t *hk_inbox_space(struct hk_inbox *in, size_t *size);
void hk_inbox_wrote(struct hk_inbox *in, size_t n); /* n bytes were put into the space */
/* The next frame, as hk_frame_read. */
int hk_inbox_next(struct hk_inbox *in, struct hk_frame *out);
void hk_inbox_free(struct hk_inbox *in); /* the inbox may be used again afterwards */

/* A caller's buffer being written to. What does not fit sets `full` and is left out; hk_frame_end then takes the whole
 * frame back. */
struct hk_writer {
  uint8_t *data;
  size_t size, capacity;
  bool full;
};
#define HK_WRITER(buffer, bytes)                                                                                                 \
  {                                                                                                                              \
    (buffer), 0, (bytes), false                                                                                                  \
  }

/* Begins a frame; returns its place, to be given to hk_frame_end. */
size_t hk_frame_begin(struct hk_writer *w, uint8_t type, uint32_t tag);
/* Sets length and checksum. 0, or -ENOSPC when it did not fit (the writer is as it was before hk_frame_begin). */
int hk_frame_end(struct hk_writer *w, size_t place);

/* Room for n bytes at the end, or NULL (and `full` is set). */
static inline uint8_t *hk_room(struct hk_writer *w, size_t n)
{
  if (w->full || n > w->capacity - w->size) {
    w->full = true;
    return NULL;
  }
  uint8_t *room = w->data + w->size;
  w->size += n;
  return room;
}

static inline void hk_put(struct hk_writer *w, const void *bytes, size_t n)
{
  uint8_t *room = hk_room(w, n);
  if (room && n > 0)
    memcpy(room, bytes, n);
}
static inline void hk_put_u8(struct hk_writer *w, uint8_t x)
{
  hk_put(w, &x, sizeof x);
}
static inline void hk_put_u16(struct hk_writer *w, uint16_t x)
{
  hk_put(w, &x, sizeof x);
}
static inline void hk_put_u32(struct hk_writer *w, uint32_t x)
{
  hk_put(w, &x, sizeof x);
}
static inline void hk_put_u64(struct hk_writer *w, uint64_t x)
{
  hk_put(w, &x, sizeof x);
}
static inline void hk_put_i64(struct hk_writer *w, int64_t x)
{
  hk_put(w, &x, sizeof x);
}
static inline void hk_put_f32(struct hk_writer *w, float x)
{
  hk_put(w, &x, sizeof x);
}
static inline void hk_put_f64(struct hk_writer *w, double x)
{
  hk_put(w, &x, sizeof x);
}

/* A payload being read. What reaches beyond the end sets `bad` and gives zeros. */
struct hk_reader {
  const uint8_t *data;
  size_t size;
  bool bad;
};

static inline struct hk_reader hk_reader(const struct hk_frame *f)
{
  return (struct hk_reader){ f->payload, f->length, false };
}

/* The next n bytes, or NULL (and `bad` is set). */
static inline const uint8_t *hk_take(struct hk_reader *r, size_t n)
{
  if (r->bad || n > r->size) {
    r->bad = true;
    return NULL;
  }
  const uint8_t *taken = r->data;
  r->data += n;
  r->size -= n;
  return taken;
}

static inline void hk_get(struct hk_reader *r, void *out, size_t n)
{
  const uint8_t *bytes = hk_take(r, n);
  if (bytes)
    memcpy(out, bytes, n);
  else
    memset(out, 0, n);
}
static inline uint8_t hk_get_u8(struct hk_reader *r)
{
  uint8_t x;
  hk_get(r, &x, sizeof x);
  return x;
}
static inline uint16_t hk_get_u16(struct hk_reader *r)
{
  uint16_t x;
  hk_get(r, &x, sizeof x);
  return x;
}
static inline uint32_t hk_get_u32(struct hk_reader *r)
{
  uint32_t x;
  hk_get(r, &x, sizeof x);
  return x;
}
static inline uint64_t hk_get_u64(struct hk_reader *r)
{
  uint64_t x;
  hk_get(r, &x, sizeof x);
  return x;
}
static inline int64_t hk_get_i64(struct hk_reader *r)
{
  int64_t x;
  hk_get(r, &x, sizeof x);
  return x;
}
static inline float hk_get_f32(struct hk_reader *r)
{
  float x;
  hk_get(r, &x, sizeof x);
  return x;
}
static inline double hk_get_f64(struct hk_reader *r)
{
  double x;
  hk_get(r, &x, sizeof x);
  return x;
}

/* True when the payload was read to its end and nothing was missing. */
static inline bool hk_reader_done(const struct hk_reader *r)
{
  return !r->bad && r->size == 0;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian, and so must be the machine");

#endif
