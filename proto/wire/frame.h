/* Frames of the binary protocol: the envelope of every message. PROTOCOL.md describes it; message.h has the payloads.
 *
 * Reading: received bytes go into an inbox (its space is the buffer for recv), which returns whole frames as views.
 *   for (;;) { space = hk_inbox_space(&in, &size); n = recv(fd, space, size); hk_inbox_wrote(&in, n);
 *              while ((status = hk_inbox_next(&in, &frame)) == HK_FRAME_WHOLE) ... }
 * Writing: a writer fills a caller's buffer: hk_frame_begin, put the payload, hk_frame_end.
 *
 * A peer is not trusted: lengths are checked before memory is allocated for them, and an inbox only grows with bytes that were
 * received. Thread: that of the object's owner; no globals. */
#ifndef HK_FRAME_H
#define HK_FRAME_H

#include "proto/hankel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HK_PROTOCOL_VERSION 1
#define HK_FRAME_HEADER 16
#define HK_FRAME_MAX (1u << 20)         /* longest payload by default; servers never send a longer one */
#define HK_FRAME_MAX_LEAST (128u << 10) /* smallest limit that a server may be configured to, */
#define HK_FRAME_MAX_MOST (64u << 20)   /* and largest */
#define HK_GLOB_MAX 512                 /* bytes */
#define HK_FEED_NAME_MAX 255            /* bytes */
#define HK_CLIENT_MAX 128               /* bytes of a client's or server's program name */
#define HK_TOKEN_BYTES 256              /* longest token or key, bytes */
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
  HK_PICTURE = 0x0d,
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

/* Name of a type, such as "HELLO"; "unknown" for an unknown type. */
const char *hk_frame_name(uint8_t type);

/* A whole frame; payload points into the buffer that it was read from. */
struct hk_frame {
  uint8_t type; /* as sent: may be no member of hk_frame_type */
  uint32_t tag;
  uint32_t length; /* of the payload, bytes */
  const uint8_t *payload;
};

/* Result of reading; all other values are of enum hankel_error_code (BAD_MAGIC, BAD_VERSION, TOO_LONG, BAD_CHECKSUM), after
 * which the stream cannot be read further. */
enum { HK_FRAME_WHOLE = 0, HK_FRAME_PART = -1 };

/* Type in a header of HK_FRAME_HEADER bytes, unchecked. */
uint8_t hk_frame_type(const uint8_t *header);
/* Version of the whole frame at the start of data, of any version: all have this header. 0: there is none, or it is damaged. */
uint8_t hk_frame_version(const void *data, size_t size);

/* Reads the frame at the start of data. WHOLE: sets *out, and the frame takes hk_frame_size(out) bytes. PART: more bytes are
 * needed. An error code: out has type and tag if they could be read, else 0. */
int hk_frame_read(const uint8_t *data, size_t size, uint32_t max_length, struct hk_frame *out);

static inline size_t hk_frame_size(const struct hk_frame *f)
{
  return HK_FRAME_HEADER + (size_t)f->length;
}

/* Received bytes that are not read as frames yet. Zero-initialise, then set max_length. */
struct hk_inbox {
  uint8_t *data; /* own memory, or a lent buffer */
  size_t start, end, capacity;
  uint32_t max_length; /* longest payload accepted */
  bool lent;
  uint8_t *own; /* own memory, while data is lent */
  size_t own_capacity;
};

/* Many inboxes that take turns can share one large buffer, which stays in the cache; each inbox then needs own memory only for
 * the rest of a frame. Order of calls: hk_inbox_lend, hk_inbox_space, recv, hk_inbox_wrote, hk_inbox_next..., hk_inbox_settle.
 * hk_inbox_lend: moves the unread bytes to the start of `buffer`, which the inbox then reads into. If they would fill half of
 * the buffer, does nothing, and the inbox keeps reading into its own memory.
 * hk_inbox_settle: moves the unread bytes to own memory, so that the buffer is free for others; frees the own memory if there
 * are none. Returns 0, or -ENOMEM: the unread bytes are lost, so the stream cannot be read further. */
void hk_inbox_lend(struct hk_inbox *in, uint8_t *buffer, size_t size);
int hk_inbox_settle(struct hk_inbox *in);

/* Returns room for *size bytes at the end, valid until the next call on the inbox; invalidates all frames read from the inbox.
 * NULL: out of memory. *size 0: full of whole frames that were not read (never after hk_inbox_next returned HK_FRAME_PART). An
 * inbox grows to at most twice the longest frame. */
uint8_t *hk_inbox_space(struct hk_inbox *in, size_t *size);
void hk_inbox_wrote(struct hk_inbox *in, size_t n); /* n bytes were written into the space */
/* Reads the next frame, as hk_frame_read. */
int hk_inbox_next(struct hk_inbox *in, struct hk_frame *out);
void hk_inbox_free(struct hk_inbox *in); /* the inbox may be used again afterwards */

/* Writes into a caller's buffer. Data that does not fit is omitted and sets `full`; hk_frame_end then removes the whole frame. */
struct hk_writer {
  uint8_t *data;
  size_t size, capacity;
  bool full;
};
#define HK_WRITER(buffer, bytes)                                                                                                 \
  {                                                                                                                              \
    (buffer), 0, (bytes), false                                                                                                  \
  }

/* Begins a frame; returns its position, for hk_frame_end. */
size_t hk_frame_begin(struct hk_writer *w, uint8_t type, uint32_t tag);
/* Sets length and checksum. Returns 0, or -ENOSPC if the frame did not fit (the writer is as before hk_frame_begin). */
int hk_frame_end(struct hk_writer *w, size_t place);

/* Reserves n bytes at the end; returns NULL and sets `full` if they do not fit. */
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

/* Reads a payload. Reading beyond the end sets `bad` and returns zeros. */
struct hk_reader {
  const uint8_t *data;
  size_t size;
  bool bad;
};

static inline struct hk_reader hk_reader(const struct hk_frame *f)
{
  return (struct hk_reader){ f->payload, f->length, false };
}

/* Returns the next n bytes, or NULL and sets `bad`. */
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

/* Whether the payload was read exactly to its end. */
static inline bool hk_reader_done(const struct hk_reader *r)
{
  return !r->bad && r->size == 0;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian, and so must be the machine");

#endif
