/* Payloads of the binary protocol, except POINTS (columns.c), SCORES (scores.c) and EVENTS (event_message.c). See message.h. */
#include "proto/wire/message.h"

#include <errno.h>

int hk_hello_write(struct hk_writer *w, uint32_t tag, const struct hk_hello *m)
{
  if (m->client.length > HK_CLIENT_MAX || m->token.length > HK_TOKEN_BYTES)
    return -EINVAL;
  const size_t place = hk_frame_begin(w, HK_HELLO, tag);
  hk_put_string(w, m->client);
  if (m->token.length > 0 || m->wants) {
    hk_put_string(w, m->token);
    hk_put_u32(w, m->wants);
  }
  return hk_frame_end(w, place);
}

int hk_hello_read(const struct hk_frame *f, struct hk_hello *m)
{
  struct hk_reader r = hk_reader(f);
  *m = (struct hk_hello){ .client = hk_get_string(&r), .token = hk_string("") };
  if (r.size > 0) {
    m->token = hk_get_string(&r);
    m->wants = hk_get_u32(&r);
    if (m->token.length == 0 && m->wants == 0) /* then the writer omits both */
      return HANKEL_BAD_PAYLOAD;
  }
  return hk_text_valid(m->client, HK_CLIENT_MAX) && m->token.length <= HK_TOKEN_BYTES &&
                 !(m->wants & ~(uint32_t)(HK_WANTS_KEY | HK_WANTS_COUNTS))
             ? hk_reader_verdict(&r)
             : HANKEL_BAD_PAYLOAD;
}

int hk_welcome_write(struct hk_writer *w, uint32_t tag, const struct hk_welcome *m)
{
  if (m->server.length > HK_CLIENT_MAX)
    return -EINVAL;
  const size_t place = hk_frame_begin(w, HK_WELCOME, tag);
  hk_put_u64(w, m->feed);
  hk_put_u32(w, m->max_frame);
  hk_put_string(w, m->server);
  if (m->key.length > 0)
    hk_put_string(w, m->key);
  return hk_frame_end(w, place);
}

int hk_welcome_read(const struct hk_frame *f, struct hk_welcome *m)
{
  struct hk_reader r = hk_reader(f);
  m->feed = hk_get_u64(&r);
  m->max_frame = hk_get_u32(&r);
  m->server = hk_get_string(&r);
  const bool keyed = r.size > 0;
  m->key = keyed ? hk_get_string(&r) : hk_string("");
  return hk_text_valid(m->server, HK_CLIENT_MAX) && (m->key.length > 0) == keyed && m->key.length <= HK_TOKEN_BYTES
             ? hk_reader_verdict(&r)
             : HANKEL_BAD_PAYLOAD;
}

int hk_register_write(struct hk_writer *w, uint32_t tag, uint32_t n, const struct hk_string *names)
{
  if (n < 1 || n > HK_REGISTER_MAX)
    return -EINVAL;
  const size_t place = hk_frame_begin(w, HK_REGISTER, tag);
  hk_put_u32(w, n);
  for (uint32_t i = 0; i < n; i++) {
    if (names[i].length > UINT16_MAX)
      w->full = true; /* hk_frame_end then removes the frame */
    else
      hk_put_string(w, names[i]);
  }
  return hk_frame_end(w, place);
}

int hk_register_read(const struct hk_frame *f, struct hk_list *names)
{
  struct hk_reader r = hk_reader(f);
  names->n = hk_get_u32(&r);
  names->reader = r;
  if (names->n < 1 || names->n > HK_REGISTER_MAX)
    return HANKEL_BAD_PAYLOAD;
  for (uint32_t i = 0; i < names->n; i++)
    hk_get_string(&r);
  return hk_reader_verdict(&r);
}

struct hk_string hk_name_next(struct hk_list *names)
{
  return hk_get_string(&names->reader);
}

int hk_registered_write(struct hk_writer *w, uint32_t tag, uint32_t n, const uint32_t *handles, const uint32_t *reasons)
{
  const size_t place = hk_frame_begin(w, HK_REGISTERED, tag);
  hk_put_u32(w, n);
  for (uint32_t i = 0; i < n; i++) {
    hk_put_u32(w, handles[i]);
    hk_put_u32(w, reasons[i]);
  }
  return hk_frame_end(w, place);
}

int hk_registered_read(const struct hk_frame *f, struct hk_list *list)
{
  struct hk_reader r = hk_reader(f);
  list->n = hk_get_u32(&r);
  list->reader = r;
  return list->n <= HK_REGISTER_MAX && !r.bad && r.size == 8 * (size_t)list->n ? 0 : HANKEL_BAD_PAYLOAD;
}

void hk_registered_next(struct hk_list *list, uint32_t *handle, uint32_t *reason)
{
  *handle = hk_get_u32(&list->reader);
  *reason = hk_get_u32(&list->reader);
}

int hk_subscribe_write(struct hk_writer *w, uint32_t tag, const struct hk_subscription *m)
{
  if (m->glob.length > HK_GLOB_MAX)
    return -EINVAL;
  const size_t place = hk_frame_begin(w, HK_SUBSCRIBE, tag);
  hk_put_u32(w, m->what);
  hk_put_f32(w, m->min_score);
  hk_put_string(w, m->glob);
  if (m->what & HANKEL_POSITIONS)
    hk_put_u64(w, m->since);
  return hk_frame_end(w, place);
}

int hk_subscribe_read(const struct hk_frame *f, struct hk_subscription *m)
{
  const uint32_t shown = HANKEL_SCORES | HANKEL_UNSCORED | HANKEL_EVENTS | HANKEL_NOTICES | HANKEL_INCIDENTS;
  struct hk_reader r = hk_reader(f);
  m->what = hk_get_u32(&r);
  m->min_score = hk_get_f32(&r);
  m->glob = hk_get_string(&r);
  m->since = m->what & HANKEL_POSITIONS ? hk_get_u64(&r) : HANKEL_NOW;
  if (!hk_reader_done(&r))
    return HANKEL_BAD_PAYLOAD;
  const bool good = !(m->what & ~(shown | HANKEL_VALUES | HANKEL_POSITIONS | HANKEL_SEQUENCES | HANKEL_DETAILS | HANKEL_NOTES)) &&
                    (m->what & shown) && m->min_score >= 0 && m->min_score <= 1 && hk_text_valid(m->glob, HK_GLOB_MAX);
  return good ? 0 : HANKEL_BAD_SUBSCRIPTION;
}

int hk_feed_write(struct hk_writer *w, uint32_t tag, struct hk_string name)
{
  if (name.length > HK_FEED_NAME_MAX)
    return -EINVAL;
  const size_t place = hk_frame_begin(w, HK_FEED, tag);
  hk_put_string(w, name);
  return hk_frame_end(w, place);
}

int hk_feed_read(const struct hk_frame *f, struct hk_string *name)
{
  struct hk_reader r = hk_reader(f);
  *name = hk_get_string(&r);
  return name->length <= HK_FEED_NAME_MAX && hk_name_valid(name->data, name->length) ? hk_reader_verdict(&r) : HANKEL_BAD_PAYLOAD;
}

int hk_feed_at_write(struct hk_writer *w, uint32_t tag, const struct hk_feed_at *m)
{
  const size_t place = hk_frame_begin(w, HK_FEED_AT, tag);
  hk_put_u64(w, m->points);
  hk_put_u32(w, m->durability);
  return hk_frame_end(w, place);
}

int hk_feed_at_read(const struct hk_frame *f, struct hk_feed_at *m)
{
  struct hk_reader r = hk_reader(f);
  m->points = hk_get_u64(&r);
  m->durability = hk_get_u32(&r);
  return hk_reader_verdict(&r);
}

int hk_empty_write(struct hk_writer *w, uint8_t type, uint32_t tag)
{
  return hk_frame_end(w, hk_frame_begin(w, type, tag));
}
int hk_empty_read(const struct hk_frame *f)
{
  return f->length == 0 ? 0 : HANKEL_BAD_PAYLOAD;
}

static int one_write(struct hk_writer *w, uint8_t type, uint32_t tag, uint64_t a)
{
  const size_t place = hk_frame_begin(w, type, tag);
  hk_put_u64(w, a);
  return hk_frame_end(w, place);
}

static int one_read(const struct hk_frame *f, uint64_t *a)
{
  struct hk_reader r = hk_reader(f);
  *a = hk_get_u64(&r);
  return hk_reader_verdict(&r);
}

int hk_ping_write(struct hk_writer *w, uint8_t type, uint32_t tag, uint64_t token)
{
  return one_write(w, type, tag, token);
}
int hk_ping_read(const struct hk_frame *f, uint64_t *token)
{
  return one_read(f, token);
}
int hk_done_write(struct hk_writer *w, uint32_t tag, const uint64_t *since)
{
  return since ? one_write(w, HK_DONE, tag, *since) : hk_empty_write(w, HK_DONE, tag);
}
int hk_done_read(const struct hk_frame *f, uint64_t *since)
{
  *since = HANKEL_NOW;
  return f->length == 0 ? 0 : one_read(f, since);
}
int hk_ack_write(struct hk_writer *w, uint64_t points)
{
  return one_write(w, HK_ACK, 0, points);
}
int hk_ack_read(const struct hk_frame *f, uint64_t *points)
{
  return one_read(f, points);
}

static int two_write(struct hk_writer *w, uint8_t type, uint32_t tag, uint64_t a, uint64_t b)
{
  const size_t place = hk_frame_begin(w, type, tag);
  hk_put_u64(w, a);
  hk_put_u64(w, b);
  return hk_frame_end(w, place);
}

static int two_read(const struct hk_frame *f, uint64_t *a, uint64_t *b)
{
  struct hk_reader r = hk_reader(f);
  *a = hk_get_u64(&r);
  *b = hk_get_u64(&r);
  return hk_reader_verdict(&r);
}

int hk_bye_write(struct hk_writer *w, uint32_t tag, uint64_t datagrams, uint64_t points)
{
  return two_write(w, HK_BYE, tag, datagrams, points);
}
int hk_bye_read(const struct hk_frame *f, uint64_t *datagrams, uint64_t *points)
{
  return two_read(f, datagrams, points);
}
int hk_farewell_write(struct hk_writer *w, uint32_t tag, uint64_t late, uint64_t rejected)
{
  return two_write(w, HK_FAREWELL, tag, late, rejected);
}
int hk_farewell_read(const struct hk_frame *f, uint64_t *late, uint64_t *rejected)
{
  return two_read(f, late, rejected);
}
int hk_gap_write(struct hk_writer *w, uint64_t results, uint64_t events)
{
  return two_write(w, HK_GAP, 0, results, events);
}
int hk_gap_read(const struct hk_frame *f, uint64_t *results, uint64_t *events)
{
  return two_read(f, results, events);
}

int hk_report_write(struct hk_writer *w, uint32_t tag, struct hk_string json)
{
  const size_t place = hk_frame_begin(w, HK_REPORT, tag);
  hk_put(w, json.data, json.length);
  return hk_frame_end(w, place);
}

int hk_sensors_write(struct hk_writer *w, uint32_t tag, const struct hk_sensors_asked *m)
{
  if (m->glob.length > HK_GLOB_MAX)
    return -EINVAL;
  const size_t place = hk_frame_begin(w, HK_SENSORS, tag);
  hk_put_u64(w, m->after);
  hk_put_u32(w, m->limit);
  hk_put_string(w, m->glob);
  return hk_frame_end(w, place);
}

int hk_sensors_read(const struct hk_frame *f, struct hk_sensors_asked *m)
{
  struct hk_reader r = hk_reader(f);
  m->after = hk_get_u64(&r);
  m->limit = hk_get_u32(&r);
  m->glob = hk_get_string(&r);
  return m->limit >= 1 && m->limit <= HK_SENSORS_MAX && hk_text_valid(m->glob, HK_GLOB_MAX) ? hk_reader_verdict(&r)
                                                                                            : HANKEL_BAD_PAYLOAD;
}

int hk_operate_write(struct hk_writer *w, uint32_t tag, const struct hk_operate *m)
{
  if (m->subject.length > HK_GLOB_MAX || m->by.length > HK_WHO_MAX)
    return -EINVAL;
  const size_t place = hk_frame_begin(w, HK_OPERATE, tag);
  hk_put_u8(w, m->what);
  hk_put_u8(w, 0);
  hk_put_u16(w, 0);
  hk_put_u32(w, m->number);
  hk_put_u64(w, m->duration);
  hk_put_string(w, m->subject);
  hk_put_string(w, m->by);
  return hk_frame_end(w, place);
}

int hk_operate_read(const struct hk_frame *f, struct hk_operate *m)
{
  struct hk_reader r = hk_reader(f);
  m->what = hk_get_u8(&r);
  const uint32_t zero = hk_get_u8(&r) | (uint32_t)hk_get_u16(&r);
  m->number = hk_get_u32(&r);
  m->duration = hk_get_u64(&r);
  m->subject = hk_get_string(&r);
  m->by = hk_get_string(&r);
  const bool good = zero == 0 && m->what >= HANKEL_ACKNOWLEDGE && m->what <= HANKEL_MOVE &&
                    hk_text_valid(m->subject, HK_GLOB_MAX) && hk_text_valid(m->by, HK_WHO_MAX) &&
                    (m->what != HANKEL_BEGIN_MAINTENANCE || m->duration > 0);
  return good ? hk_reader_verdict(&r) : HANKEL_BAD_PAYLOAD;
}

int hk_reloaded_write(struct hk_writer *w, uint8_t type, uint32_t tag, bool taken, struct hk_string text)
{
  const size_t place = hk_frame_begin(w, type, tag);
  hk_put_u8(w, taken);
  hk_put(w, text.data, text.length);
  return hk_frame_end(w, place);
}

int hk_reloaded_read(const struct hk_frame *f, bool *taken, struct hk_string *text)
{
  struct hk_reader r = hk_reader(f);
  const uint8_t outcome = hk_get_u8(&r);
  if (r.bad || outcome > 1)
    return HANKEL_BAD_PAYLOAD;
  *taken = outcome;
  *text = (struct hk_string){ (const char *)r.data, r.size };
  return 0;
}

int hk_names_write(struct hk_writer *w, uint32_t n, const uint32_t *handles, const struct hk_string *names)
{
  const size_t place = hk_frame_begin(w, HK_NAMES, 0);
  hk_put_u32(w, n);
  for (uint32_t i = 0; i < n; i++) {
    if (names[i].length > HK_NAME_MAX)
      w->full = true; /* hk_frame_end then removes the frame */
    hk_put_u32(w, handles[i]);
    hk_put_string(w, names[i]);
  }
  return hk_frame_end(w, place);
}

int hk_names_read(const struct hk_frame *f, struct hk_list *list)
{
  struct hk_reader r = hk_reader(f);
  list->n = hk_get_u32(&r);
  list->reader = r;
  for (uint32_t i = 0; i < list->n && !r.bad; i++) {
    (void)hk_get_u32(&r);
    const struct hk_string name = hk_get_string(&r);
    r.bad |= !hk_name_valid(name.data, name.length);
  }
  return hk_reader_verdict(&r);
}

void hk_names_next(struct hk_list *list, uint32_t *handle, struct hk_string *name)
{
  *handle = hk_get_u32(&list->reader);
  *name = hk_get_string(&list->reader);
}

bool hk_error_closes(uint16_t code)
{
  return code != HANKEL_UNKNOWN_HANDLE && code != HANKEL_BAD_SUBSCRIPTION && code != HANKEL_INTERNAL &&
         code != HANKEL_FORBIDDEN && code != HANKEL_BAD_PICTURE;
}

int hk_error_write(struct hk_writer *w, uint32_t tag, uint16_t code, uint8_t type, struct hk_string message)
{
  const size_t most = 1024, place = hk_frame_begin(w, HK_ERROR, tag);
  hk_put_u16(w, code);
  hk_put_u8(w, type);
  hk_put_u8(w, hk_error_closes(code));
  hk_put_string(w, (struct hk_string){ message.data, message.length < most ? message.length : most });
  return hk_frame_end(w, place);
}

int hk_error_read(const struct hk_frame *f, struct hk_error_message *m)
{
  struct hk_reader r = hk_reader(f);
  m->code = hk_get_u16(&r);
  m->type = hk_get_u8(&r);
  m->closing = hk_get_u8(&r) != 0;
  m->message = hk_get_string(&r);
  return hk_reader_verdict(&r);
}
