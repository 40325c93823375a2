#include "proto/wire/incident_message.h"

#include <errno.h>

int hk_incident_write(struct hk_writer *w, const struct hk_incident_message *m)
{
  const size_t place = hk_frame_begin(w, HK_INCIDENT, 0);
  if (m->text.length > UINT16_MAX)
    w->full = true; /* hk_frame_end then removes the frame */
  hk_put_u64(w, m->position);
  hk_put_u64(w, m->id);
  hk_put_u64(w, m->into);
  hk_put_i64(w, m->time);
  hk_put_i64(w, m->since);
  hk_put_f64(w, m->rank);
  hk_put_f64(w, m->severity);
  hk_put_u32(w, m->count);
  hk_put_u8(w, m->kind);
  hk_put_u8(w, m->told);
  hk_put_string(w, m->text);
  hk_put(w, m->about.data, m->about.length);
  return hk_frame_end(w, place);
}

int hk_incident_read(const struct hk_frame *f, struct hk_incident_message *m)
{
  struct hk_reader r = hk_reader(f);
  m->position = hk_get_u64(&r);
  m->id = hk_get_u64(&r);
  m->into = hk_get_u64(&r);
  m->time = hk_get_i64(&r);
  m->since = hk_get_i64(&r);
  m->rank = hk_get_f64(&r);
  m->severity = hk_get_f64(&r);
  m->count = hk_get_u32(&r);
  m->kind = hk_get_u8(&r);
  m->told = hk_get_u8(&r);
  m->text = hk_get_string(&r);
  if (r.bad)
    return HANKEL_BAD_PAYLOAD;
  m->about = (struct hk_string){ (const char *)r.data, r.size };
  const bool good = m->told <= 1 && m->id > 0 && hk_text_valid(m->text, UINT16_MAX) && hk_text_valid(m->about, r.size);
  return good ? 0 : HANKEL_BAD_PAYLOAD;
}
