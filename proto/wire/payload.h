/* Parts of payloads: strings and lists. */
#ifndef HK_PAYLOAD_H
#define HK_PAYLOAD_H

#include "proto/wire/frame.h"
#include "proto/wire/name.h"

#define HK_WHO_MAX 64u /* bytes of an operator's name */

/* UTF-8, not NUL-terminated. */
struct hk_string {
  const char *data;
  size_t length;
};
static inline struct hk_string hk_string(const char *text)
{
  return (struct hk_string){ text, strlen(text) };
}

/* A list for hk_name_next, hk_registered_next, hk_names_next or hk_event_next. Its reader has checked the whole list, so n
 * steps never fail. */
struct hk_list {
  uint32_t n;
  uint32_t with; /* EVENTS: sum of enum hk_events_with */
  struct hk_reader reader;
};

/* Returns 0, or HANKEL_BAD_PAYLOAD if the payload was shorter or longer than what was read. */
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

/* Whether a text for people or logs has at most `most` bytes and is valid by name.h. */
static inline bool hk_text_valid(struct hk_string s, size_t most)
{
  return s.length <= most && hk_name_piece_valid(s.data, s.length, NULL);
}

#endif
