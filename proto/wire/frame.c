/* Frames: header, checksum, inbox. See frame.h. */
#include "proto/wire/frame.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>

static const uint8_t magic[2] = { 'H', 'K' };

enum { AT_VERSION = 2, AT_TYPE = 3, AT_LENGTH = 4, AT_TAG = 8, AT_CHECKSUM = 12 };

const char *hk_frame_name(uint8_t type)
{
  static const char *const names[UINT8_MAX + 1] = {
    [HK_HELLO] = "HELLO",
    [HK_REGISTER] = "REGISTER",
    [HK_POINTS] = "POINTS",
    [HK_SUBSCRIBE] = "SUBSCRIBE",
    [HK_UNSUBSCRIBE] = "UNSUBSCRIBE",
    [HK_PING] = "PING",
    [HK_STATUS] = "STATUS",
    [HK_BYE] = "BYE",
    [HK_FEED] = "FEED",
    [HK_RELOAD] = "RELOAD",
    [HK_WELCOME] = "WELCOME",
    [HK_REGISTERED] = "REGISTERED",
    [HK_DONE] = "DONE",
    [HK_PONG] = "PONG",
    [HK_REPORT] = "REPORT",
    [HK_FAREWELL] = "FAREWELL",
    [HK_FEED_AT] = "FEED_AT",
    [HK_OPERATE] = "OPERATE",
    [HK_SENSORS] = "SENSORS",
    [HK_PICTURE] = "PICTURE",
    [HK_OPERATED] = "OPERATED",
    [HK_RELOADED] = "RELOADED",
    [HK_NAMES] = "NAMES",
    [HK_SCORES] = "SCORES",
    [HK_EVENTS] = "EVENTS",
    [HK_GAP] = "GAP",
    [HK_ACK] = "ACK",
    [HK_INCIDENT] = "INCIDENT",
    [HK_ERROR] = "ERROR",
  };
  return names[type] ? names[type] : "unknown";
}

uint8_t hk_frame_type(const uint8_t *header)
{
  return header[AT_TYPE];
}

/* Checksum of the header up to the checksum field, and of the payload. */
static uint32_t checksum(const uint8_t *frame, size_t length)
{
  const uint32_t head = libdeflate_crc32(0, frame, AT_CHECKSUM);
  return libdeflate_crc32(head, frame + HK_FRAME_HEADER, length);
}

uint8_t hk_frame_version(const void *data, size_t size)
{
  uint32_t length, sum;
  const uint8_t *frame = data;
  if (size < HK_FRAME_HEADER || memcmp(frame, magic, sizeof magic) != 0)
    return 0;
  memcpy(&length, frame + AT_LENGTH, sizeof length);
  memcpy(&sum, frame + AT_CHECKSUM, sizeof sum);
  return length <= size - HK_FRAME_HEADER && sum == checksum(frame, length) ? frame[AT_VERSION] : 0;
}

int hk_frame_read(const uint8_t *data, size_t size, uint32_t max_length, struct hk_frame *out)
{
  *out = (struct hk_frame){ 0 };
  if (memcmp(data, magic, size < sizeof magic ? size : sizeof magic) != 0)
    return HANKEL_BAD_MAGIC;
  if (size > AT_VERSION && data[AT_VERSION] != HK_PROTOCOL_VERSION)
    return HANKEL_BAD_VERSION;
  if (size < HK_FRAME_HEADER)
    return HK_FRAME_PART;
  uint32_t sum;
  memcpy(&out->length, data + AT_LENGTH, sizeof out->length);
  memcpy(&out->tag, data + AT_TAG, sizeof out->tag);
  memcpy(&sum, data + AT_CHECKSUM, sizeof sum);
  out->type = data[AT_TYPE];
  if (out->length > max_length)
    return HANKEL_TOO_LONG;
  if (size < hk_frame_size(out))
    return HK_FRAME_PART;
  if (sum != checksum(data, out->length))
    return HANKEL_BAD_CHECKSUM;
  out->payload = data + HK_FRAME_HEADER;
  return HK_FRAME_WHOLE;
}

/* An inbox starts small, so that an idle peer costs little, and doubles when received bytes fill it. */
enum { INBOX_START = 16 << 10 };

void hk_inbox_lend(struct hk_inbox *in, uint8_t *buffer, size_t size)
{
  const size_t waits = in->end - in->start;
  if (waits >= size / 2)
    return;
  if (waits > 0)
    memcpy(buffer, in->data + in->start, waits);
  in->own = in->data;
  in->own_capacity = in->capacity;
  in->data = buffer;
  in->capacity = size;
  in->start = 0;
  in->end = waits;
  in->lent = true;
}

int hk_inbox_settle(struct hk_inbox *in)
{
  if (!in->lent)
    return 0;
  const uint8_t *left = in->data + in->start;
  const size_t n = in->end - in->start;
  int status = 0;
  if (n > in->own_capacity || n == 0) {
    free(in->own);
    in->own = n > 0 ? malloc(n) : NULL;
    in->own_capacity = in->own ? n : 0;
    status = n > 0 && !in->own ? -ENOMEM : 0;
  }
  if (in->own)
    memcpy(in->own, left, n);
  *in = (struct hk_inbox){ in->own, 0, in->own ? n : 0, in->own_capacity, in->max_length, false, NULL, 0 };
  return status;
}

uint8_t *hk_inbox_space(struct hk_inbox *in, size_t *size)
{
  if (in->start == in->end)
    in->start = in->end = 0;
  if (in->lent) {
    *size = in->capacity - in->end;
    return in->data + in->end;
  }
  /* Room for two frames of the greatest length, so that moving the rest to the front is rare. */
  const size_t most = 2 * (HK_FRAME_HEADER + (size_t)in->max_length);
  if (in->capacity - in->end < in->capacity / 4 && in->start >= in->capacity / 2) {
    memmove(in->data, in->data + in->start, in->end - in->start);
    in->end -= in->start;
    in->start = 0;
  }
  if (in->end == in->capacity && in->capacity < most) {
    size_t capacity = in->capacity > INBOX_START / 2 ? 2 * in->capacity : INBOX_START;
    if (capacity > most)
      capacity = most;
    uint8_t *data = realloc(in->data, capacity);
    if (!data)
      return NULL;
    in->data = data;
    in->capacity = capacity;
  } else if (in->end == in->capacity) { /* full at its greatest size: start > 0, because a frame takes at most half of it */
    memmove(in->data, in->data + in->start, in->end - in->start);
    in->end -= in->start;
    in->start = 0;
  }
  *size = in->capacity - in->end;
  return in->data + in->end;
}

void hk_inbox_wrote(struct hk_inbox *in, size_t n)
{
  in->end += n;
}

int hk_inbox_next(struct hk_inbox *in, struct hk_frame *out)
{
  if (in->start == in->end) /* also before the first byte, while there is no buffer */
    return HK_FRAME_PART;
  const int status = hk_frame_read(in->data + in->start, in->end - in->start, in->max_length, out);
  if (status == HK_FRAME_WHOLE)
    in->start += hk_frame_size(out);
  return status;
}

void hk_inbox_free(struct hk_inbox *in)
{
  free(in->lent ? in->own : in->data);
  *in = (struct hk_inbox){ .max_length = in->max_length };
}

size_t hk_frame_begin(struct hk_writer *w, uint8_t type, uint32_t tag)
{
  const size_t place = w->size;
  hk_put(w, magic, sizeof magic);
  hk_put_u8(w, HK_PROTOCOL_VERSION);
  hk_put_u8(w, type);
  hk_put_u32(w, 0);
  hk_put_u32(w, tag);
  hk_put_u32(w, 0);
  return place;
}

int hk_frame_end(struct hk_writer *w, size_t place)
{
  if (w->full || w->size - place - HK_FRAME_HEADER > UINT32_MAX) {
    w->size = place;
    w->full = false;
    return -ENOSPC;
  }
  uint8_t *frame = w->data + place;
  const uint32_t length = (uint32_t)(w->size - place - HK_FRAME_HEADER);
  memcpy(frame + AT_LENGTH, &length, sizeof length);
  const uint32_t sum = checksum(frame, length);
  memcpy(frame + AT_CHECKSUM, &sum, sizeof sum);
  return 0;
}
