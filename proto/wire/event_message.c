#include "proto/wire/event_message.h"

#include <math.h>

static uint16_t thousandths(float severity)
{
  return severity > 0 ? (uint16_t)lroundf(1000 * (severity < HK_SEVERITY_TOLD ? severity : HK_SEVERITY_TOLD)) : 0;
}

float hk_severity_told(float severity)
{
  return (float)thousandths(severity) / 1000;
}

static void event_message_put_details(struct hk_writer *w, const struct hk_event_message *e)
{
  const float told = hk_severity_told(e->severity);
  hk_put_f32(w, told / (told + 2)); /* strength, 0..1, for clients that know no severity */
  hk_put_f32(w, e->margin);
  hk_put_f32(w, e->spread_before);
  hk_put_f32(w, e->spread_after);
  hk_put_u8(w, e->channel);
  hk_put_u8(w, e->marks);
  hk_put_u16(w, thousandths(e->severity));
  hk_put_u32(w, e->held);
  hk_put_u32(w, e->similar);
  hk_put_f32(w, e->likeness);
  hk_put_i64(w, e->similar_from);
  hk_put_string(w, e->by);
}

static void get_details(struct hk_reader *r, struct hk_event_message *e)
{
  (void)hk_get_f32(r);
  e->margin = hk_get_f32(r);
  e->spread_before = hk_get_f32(r);
  e->spread_after = hk_get_f32(r);
  e->channel = hk_get_u8(r);
  e->marks = hk_get_u8(r);
  e->severity = (float)hk_get_u16(r) / 1000;
  e->held = hk_get_u32(r);
  e->similar = hk_get_u32(r);
  e->likeness = hk_get_f32(r);
  e->similar_from = hk_get_i64(r);
  e->by = hk_get_string(r);
}

#define NOTE_LIMIT 4 /* kind of a note, after those of enum hankel_novelty_kind */
#define NOTE_KIND 38 /* offset of the kind in a note */

static void event_message_put_limit(struct hk_writer *w, const struct hankel_limit *l)
{
  hk_put_i64(w, l->earliest);
  hk_put_i64(w, l->latest);
  hk_put_i64(w, l->reached);
  hk_put_f64(w, l->limit);
  hk_put_f32(w, l->slope);
  hk_put_u16(w, l->blocks);
  hk_put_u8(w, NOTE_LIMIT);
  hk_put_u8(w, 0);
}

static void get_limit(struct hk_reader *r, struct hankel_limit *l)
{
  l->earliest = hk_get_i64(r);
  l->latest = hk_get_i64(r);
  l->reached = hk_get_i64(r);
  l->limit = hk_get_f64(r);
  l->slope = hk_get_f32(r);
  l->blocks = hk_get_u16(r);
  (void)hk_take(r, 2);
}

static void event_message_put_novelty(struct hk_writer *w, const struct hankel_novelty *n)
{
  hk_put_i64(w, n->nearest);
  hk_put_i64(w, n->oldest);
  hk_put_f64(w, n->low);
  hk_put_f64(w, n->high);
  hk_put_u32(w, n->compared);
  hk_put_u16(w, n->reach);
  hk_put_u8(w, n->kind);
  hk_put_u8(w, 0);
}

static void get_novelty(struct hk_reader *r, struct hankel_novelty *n)
{
  n->nearest = hk_get_i64(r);
  n->oldest = hk_get_i64(r);
  n->low = hk_get_f64(r);
  n->high = hk_get_f64(r);
  n->compared = hk_get_u32(r);
  n->reach = hk_get_u16(r);
  n->kind = hk_get_u8(r);
  (void)hk_get_u8(r);
}

/* The kind decides how a note is read. */
static void get_note(struct hk_reader *r, struct hk_event_message *e)
{
  if (r->size >= HK_EVENT_NOTE_BYTES && r->data[NOTE_KIND] == NOTE_LIMIT)
    get_limit(r, &e->limit);
  else
    get_novelty(r, &e->novelty);
}

int hk_events_write(struct hk_writer *w, uint32_t n, const struct hk_event_message *events, uint32_t with)
{
  static const uint8_t zeros[3];
  const size_t place = hk_frame_begin(w, HK_EVENTS, 0);
  hk_put_u32(w, n);
  hk_put_u32(w, with);
  for (uint32_t i = 0; i < n; i++) {
    const struct hk_event_message *e = &events[i];
    if (e->by.length > HK_WHO_MAX)
      w->full = true; /* hk_frame_end then removes the frame */
    if (with & HK_EVENTS_PLACED) {
      hk_put_u64(w, e->position);
      hk_put_u64(w, e->sequence);
    }
    if (with & HK_EVENTS_GROUPED)
      hk_put_u64(w, e->incident);
    hk_put_u32(w, e->handle);
    hk_put_u32(w, e->number);
    hk_put_u8(w, e->kind);
    hk_put(w, zeros, sizeof zeros);
    hk_put_f32(w, e->score);
    hk_put_i64(w, e->time);
    hk_put_i64(w, e->from);
    hk_put_i64(w, e->instant);
    hk_put_f64(w, e->before);
    hk_put_f64(w, e->after);
    if (with & HK_EVENTS_NOTED && e->limit.blocks > 0)
      event_message_put_limit(w, &e->limit);
    else if (with & HK_EVENTS_NOTED)
      event_message_put_novelty(w, &e->novelty);
    if (with & HK_EVENTS_DETAILED)
      event_message_put_details(w, e);
  }
  return hk_frame_end(w, place);
}

int hk_events_read(const struct hk_frame *f, struct hk_list *list)
{
  struct hk_reader r = hk_reader(f);
  list->n = hk_get_u32(&r);
  list->with = hk_get_u32(&r);
  list->reader = r;
  const size_t each = HK_EVENT_BYTES + (list->with & HK_EVENTS_PLACED ? HK_EVENT_PLACE_BYTES : 0) +
                      (list->with & HK_EVENTS_NOTED ? HK_EVENT_NOTE_BYTES : 0) +
                      (list->with & HK_EVENTS_GROUPED ? HK_EVENT_GROUP_BYTES : 0);
  if (r.bad || list->with > (HK_EVENTS_PLACED | HK_EVENTS_DETAILED | HK_EVENTS_NOTED | HK_EVENTS_GROUPED))
    return HANKEL_BAD_PAYLOAD;
  if (!(list->with & HK_EVENTS_DETAILED))
    return r.size == each * list->n ? 0 : HANKEL_BAD_PAYLOAD;
  for (uint32_t i = 0; i < list->n && !r.bad; i++) {
    struct hk_event_message e;
    (void)hk_take(&r, each);
    get_details(&r, &e);
    r.bad |= !hk_text_valid(e.by, HK_WHO_MAX);
  }
  return hk_reader_verdict(&r);
}

void hk_event_next(struct hk_list *list, struct hk_event_message *event)
{
  struct hk_reader *r = &list->reader;
  *event = (struct hk_event_message){ .by = { "", 0 } };
  event->position = list->with & HK_EVENTS_PLACED ? hk_get_u64(r) : 0;
  event->sequence = list->with & HK_EVENTS_PLACED ? hk_get_u64(r) : 0;
  event->incident = list->with & HK_EVENTS_GROUPED ? hk_get_u64(r) : 0;
  event->handle = hk_get_u32(r);
  event->number = hk_get_u32(r);
  event->kind = hk_get_u8(r);
  (void)hk_take(r, 3);
  event->score = hk_get_f32(r);
  event->time = hk_get_i64(r);
  event->from = hk_get_i64(r);
  event->instant = hk_get_i64(r);
  event->before = hk_get_f64(r);
  event->after = hk_get_f64(r);
  if (list->with & HK_EVENTS_NOTED)
    get_note(r, event);
  if (list->with & HK_EVENTS_DETAILED)
    get_details(r, event);
}
