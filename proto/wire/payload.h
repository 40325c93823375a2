/* What payloads of frames are made of: strings and lists. */
#ifndef HK_PAYLOAD_H
#define HK_PAYLOAD_H

#include "proto/wire/frame.h"
#include "proto/wire/name.h"

#define HK_WHO_MAX 64u /* bytes of a name that says who operates */

/* Bytes of UTF-8, with no 0 at the end. */
struct hk_string {
  const char *data;
  size_t length;
};
static inline struct hk_string hk_string(const char *text)
{
  return (struct hk_string){ text, strlen(text) };
}

/* Several readers leave a list to be walked with hk_name_next / hk_registered_next / hk_event_next; the whole
 * list has been checked by then, so n steps never fail. */
struct hk_list {
  uint32_t n;
  uint32_t with; /* EVENTS: enum hk_events_with, added up */
  struct hk_reader reader;
};

/* 0, or HANKEL_BAD_PAYLOAD: the payload had less than was read of it, or more. */
static inline int hk_reader_verdict(const struct hk_reader *r)
{
  return hk_reader_done(r) ? 0 : HANKEL_BAD_PAYLOAD;
}

static inline void hk_put_string(struct hk_writer *w, struct hk_string s)
{
  hk_put_u16(w, (uint16_t)s.length);
  hk_put(w, s.data, s.length);
}

static inline struct hk_string hk_get_string(struct hk_reader *r)
{
  const uint16_t length = hk_get_u16(r);
  const uint8_t *data = hk_take(r, length);
  return data ? (struct hk_string){ (const char *)data, length } : (struct hk_string){ "", 0 };
}

/* Whether a text for people or logs is no longer than most, and valid by the rule of name.h. */
static inline bool hk_text_valid(struct hk_string s, size_t most)
{
  return s.length <= most && hk_name_piece_valid(s.data, s.length, NULL);
}

#endif
