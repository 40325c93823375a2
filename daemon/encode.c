/* Frames are cut so that none is longer than a server may send. */
#include "daemon/encode.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define EVENTS_FRAME 16384u /* events, names in one frame; 1 MiB holds as many of each */
#define NAMES_FRAME 1024u

static const char *const state_names[] = { "warming", "ok", "gap", "late", "rejected" };
static const char *const event_names[] = { "?", "raised", "corrected", "cleared", "stale", "back" };

/* A writer over `size` more bytes of the buffer. */
static struct hk_writer writer(struct hk_buffer *out, size_t size)
{
  char *room = hk_buffer_room(out, size);
  return (struct hk_writer)HK_WRITER((uint8_t *)room, room ? size : 0);
}

/* Room for what a frame of `size` bytes is made of, behind it in the same buffer (so that encoding asks for no memory of its
 * own), aligned for any type. NULL: no memory, and the buffer is marked. Good until the buffer is used again after the frame. */
static void *workspace(struct hk_buffer *out, size_t size, size_t bytes)
{
  char *room = hk_buffer_room(out, size + bytes + 16);
  return room ? (void *)(((uintptr_t)room + size + 15) & ~(uintptr_t)15) : NULL;
}

static void results_frame(struct hk_buffer *out, const struct hk_registry *registry, const struct hk_batch *b,
                          const struct hk_choice *chosen, uint32_t first, uint32_t n, bool values)
{
  const uint32_t *handles = hk_registry_handles(registry);
  const size_t size = hk_scores_most(n, values);
  /* Columns of the chosen, widest first; those of a whole batch stand there already, but for the handles. */
  void *columns = workspace(out, size, (size_t)n * (chosen->index ? 8 + 8 + 4 + 4 + 1 : 4));
  if (!columns)
    return;
  int64_t *time = columns;
  double *value = (double *)(time + n);
  uint32_t *handle = chosen->index ? (uint32_t *)(value + n) : columns;
  float *score = (float *)(handle + n);
  uint8_t *state = (uint8_t *)(score + n);
  const uint32_t *index = chosen->index ? chosen->index + first : NULL;
  /* A loop a column: the reads of one do not wait for those of another. */
  for (uint32_t k = 0; index && k < n; k++)
    time[k] = b->time[index[k]];
  for (uint32_t k = 0; index && values && k < n; k++)
    value[k] = b->value[index[k]];
  for (uint32_t k = 0; k < n; k++)
    handle[k] = handles[b->slot[index ? index[k] : first + k]];
  for (uint32_t k = 0; index && k < n; k++)
    score[k] = b->score[index[k]];
  for (uint32_t k = 0; index && k < n; k++)
    state[k] = b->state[index[k]];
  if (!index) {
    time = b->time + first;
    value = b->value + first;
    score = b->score + first;
    state = b->state + first;
  }
  struct hk_writer w = writer(out, size);
  if (hk_scores_write(&w, n, time, values ? value : NULL, handle, score, state) == 0)
    out->size += w.size;
  else
    out->failed = true;
}

static void result_line(struct hk_buffer *out, const struct hk_registry *registry, const struct hk_batch *b, uint32_t i)
{
  const struct hk_string name = hk_registry_name(registry, b->slot[i]);
  hk_buffer_put(out, "{\"sensor\":", 10);
  hk_json_string(out, name.data, name.length);
  hk_buffer_print(out, ",\"time\":%" PRId64 ",\"value\":", b->time[i]);
  hk_json_number(out, b->value[i], 17);
  hk_buffer_put(out, ",\"score\":", 9);
  hk_json_number(out, (double)b->score[i], 9);
  hk_buffer_print(out, ",\"state\":\"%s\"}\n", state_names[b->state[i] <= HK_STATE_REJECTED ? b->state[i] : HK_STATE_REJECTED]);
}

void hk_encode_results(struct hk_buffer *out, enum hk_protocol format, const struct hk_registry *registry,
                       const struct hk_batch *b, const struct hk_choice *chosen, uint32_t first, uint32_t n, bool values)
{
  if (format == HK_PROTOCOL_BINARY)
    results_frame(out, registry, b, chosen, first, n, values);
  else
    for (uint32_t i = 0; i < n; i++)
      result_line(out, registry, b, hk_choice_at(chosen, first + i));
}

static void event_line(struct hk_buffer *out, const struct hk_registry *registry, const struct hk_event *e)
{
  const struct hk_string name = hk_registry_name(registry, e->slot);
  const bool notice = e->kind == HK_EVENT_STALE || e->kind == HK_EVENT_BACK;
  hk_buffer_print(out, "{\"%s\":\"%s\"", notice ? "notice" : "event", event_names[e->kind <= HK_EVENT_BACK ? e->kind : 0]);
  if (!notice) {
    hk_buffer_put(out, ",\"id\":", 6);
    hk_json_string(out, name.data, name.length);
    out->size -= !out->failed; /* the number goes in before the closing quotation mark */
    hk_buffer_print(out, ":%" PRIu32 "\"", e->number);
  }
  hk_buffer_put(out, ",\"sensor\":", 10);
  hk_json_string(out, name.data, name.length);
  hk_buffer_print(out, ",\"time\":%" PRId64, e->time);
  if (!notice) {
    hk_buffer_print(out, ",\"from\":%" PRId64 ",\"instant\":%" PRId64 ",\"score\":", e->from, e->instant);
    hk_json_number(out, (double)e->score, 9);
    hk_buffer_put(out, ",\"before\":", 10);
    hk_json_number(out, e->before, 17);
    hk_buffer_put(out, ",\"after\":", 9);
    hk_json_number(out, e->after, 17);
  }
  hk_buffer_put(out, "}\n", 2);
}

static void events_frame(struct hk_buffer *out, const struct hk_registry *registry, const struct hk_batch *b,
                         const uint32_t *chosen, uint32_t n)
{
  const uint32_t *handles = hk_registry_handles(registry);
  const size_t size = HK_FRAME_HEADER + 8 + (size_t)n * HK_EVENT_BYTES;
  struct hk_event_message *messages = workspace(out, size, n * sizeof *messages);
  if (!messages)
    return;
  for (uint32_t k = 0; k < n; k++) {
    const struct hk_event *e = &b->event[chosen[k]];
    messages[k] = (struct hk_event_message){ .handle = handles[e->slot],
                                             .number = e->number,
                                             .kind = e->kind,
                                             .score = e->score,
                                             .time = e->time,
                                             .from = e->from,
                                             .instant = e->instant,
                                             .before = e->before,
                                             .after = e->after };
  }
  struct hk_writer w = writer(out, size);
  if (hk_events_write(&w, n, messages) == 0)
    out->size += w.size;
  else
    out->failed = true;
}

void hk_encode_events(struct hk_buffer *out, enum hk_protocol format, const struct hk_registry *registry,
                      const struct hk_batch *b, const struct hk_choice *chosen)
{
  const uint32_t n = chosen->n;
  if (format == HK_PROTOCOL_TEXT) {
    for (uint32_t i = 0; i < n; i++)
      event_line(out, registry, &b->event[chosen->index[i]]);
    return;
  }
  for (uint32_t at = 0; at < n; at += EVENTS_FRAME)
    events_frame(out, registry, b, chosen->index + at, n - at < EVENTS_FRAME ? n - at : EVENTS_FRAME);
}

void hk_encode_gap(struct hk_buffer *out, enum hk_protocol format, uint64_t results, uint64_t events)
{
  if (format == HK_PROTOCOL_TEXT) {
    hk_buffer_print(out, "{\"gap\":{\"results\":%" PRIu64 ",\"events\":%" PRIu64 "}}\n", results, events);
    return;
  }
  struct hk_writer w = writer(out, HK_FRAME_HEADER + 16);
  if (hk_gap_write(&w, results, events) == 0)
    out->size += w.size;
  else
    out->failed = true;
}

void hk_encode_names(struct hk_buffer *out, const struct hk_registry *registry, const uint32_t *slots, uint32_t n)
{
  uint32_t handles[NAMES_FRAME];
  struct hk_string names[NAMES_FRAME];
  for (uint32_t at = 0; at < n; at += NAMES_FRAME) {
    const uint32_t count = n - at < NAMES_FRAME ? n - at : NAMES_FRAME;
    size_t size = HK_FRAME_HEADER + 4;
    for (uint32_t i = 0; i < count; i++) {
      handles[i] = hk_registry_handles(registry)[slots[at + i]];
      names[i] = hk_registry_name(registry, slots[at + i]);
      size += 6 + names[i].length;
    }
    struct hk_writer w = writer(out, size);
    if (hk_names_write(&w, count, handles, names) == 0)
      out->size += w.size;
    else
      out->failed = true;
  }
}
