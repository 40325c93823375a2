/* Results are split into frames of at most the length that a server may send. */
#include "daemon/publish/encode_results.h"

#include "daemon/sensors/limit_shown.h"
#include "daemon/sensors/novelty_shown.h"
#include "proto/wire/event_message.h"
#include "proto/wire/incident_message.h"
#include "proto/wire/scores.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define EVENTS_FRAME 10240u /* events or names in one frame; that many of either fit into 1 MiB */
#define NAMES_FRAME 1024u

/* Makes a writer for `size` more bytes of the buffer. */
static struct hk_writer writer(struct hk_buffer *out, size_t size)
{
  char *room = hk_buffer_room(out, size);
  return (struct hk_writer)HK_WRITER((uint8_t *)room, room ? size : 0);
}

/* Reserves scratch memory for encoding a frame of `size` bytes, after the frame in the same buffer, so that encoding allocates
 * none; aligned for any type. NULL: no memory, and the buffer is marked as failed. Valid until the buffer is next used. */
static void *workspace(struct hk_buffer *out, size_t size, size_t bytes)
{
  char *room = hk_buffer_room(out, size + bytes + 16);
  return room ? (void *)(((uintptr_t)room + size + 15) & ~(uintptr_t)15) : NULL;
}

static void results_frame(struct hk_buffer *out, const struct hk_registry *registry, const struct hk_batch *b,
                          const struct hk_choice *chosen, uint32_t first, uint32_t n, bool values, const uint64_t *sequences)
{
  const uint32_t *handles = hk_registry_handles(registry);
  const size_t size = hk_scores_most(n, values + (sequences != NULL));
  /* Columns of the selected results, widest first. For a whole batch, all columns except the handles exist already. */
  void *columns = workspace(out, size, (size_t)n * (chosen->index ? 8 + 8 + 8 + 4 + 4 + 1 : 4));
  if (!columns)
    return;
  int64_t *time = columns;
  double *value = (double *)(time + n);
  uint64_t *sequence = (uint64_t *)(value + n);
  uint32_t *handle = chosen->index ? (uint32_t *)(sequence + n) : columns;
  float *score = (float *)(handle + n);
  uint8_t *state = (uint8_t *)(score + n);
  const uint32_t *index = chosen->index ? chosen->index + first : NULL;
  /* One loop for each column, so that reads of one do not wait for reads of another. */
  for (uint32_t k = 0; index && k < n; k++)
    time[k] = b->time[index[k]];
  for (uint32_t k = 0; index && values && k < n; k++)
    value[k] = b->value[index[k]];
  for (uint32_t k = 0; index && sequences && k < n; k++)
    sequence[k] = sequences[index[k]];
  for (uint32_t k = 0; k < n; k++)
    handle[k] = handles[b->slot[index ? index[k] : first + k]];
  for (uint32_t k = 0; index && k < n; k++)
    score[k] = b->score[index[k]];
  for (uint32_t k = 0; index && k < n; k++)
    state[k] = b->state[index[k]];
  if (!index) {
    time = b->time + first;
    value = b->value + first;
    sequence = sequences ? (uint64_t *)(uintptr_t)(sequences + first) : NULL;
    score = b->score + first;
    state = b->state + first;
  }
  struct hk_writer w = writer(out, size);
  if (hk_scores_write(&w, n, time, values ? value : NULL, sequences ? sequence : NULL, handle, score, state) == 0)
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
  hk_buffer_print(out, ",\"state\":\"%s\"}\n", hankel_state_name(b->state[i]));
}

void hk_encode_results(struct hk_buffer *out, enum hk_protocol format, const struct hk_registry *registry,
                       const struct hk_batch *b, const struct hk_choice *chosen, uint32_t first, uint32_t n, bool values,
                       const uint64_t *sequence)
{
  if (format == HK_PROTOCOL_BINARY)
    results_frame(out, registry, b, chosen, first, n, values, sequence);
  else
    for (uint32_t i = 0; i < n; i++)
      result_line(out, registry, b, hk_choice_at(chosen, first + i));
}

/* Encodes the unusual segment of an event of the channel novelty. */
static void encode_put_novelty(struct hk_buffer *out, const struct hk_event *e)
{
  const struct hk_novelty_note *note = &e->novelty;
  hk_buffer_print(out, ",\"novelty\":{\"kind\":\"%s\",\"expected\":", hankel_novelty_name(note->channel));
  hk_json_number(out, e->before, 17);
  hk_buffer_put(out, ",\"tolerance\":", 13);
  hk_json_number(out, (double)e->spread_before, 9);
  hk_buffer_print(out, ",\"nearest\":%" PRId64 ",\"oldest\":%" PRId64 ",\"low\":", note->nearest, note->oldest);
  hk_json_number(out, note->low, 17);
  hk_buffer_put(out, ",\"high\":", 8);
  hk_json_number(out, note->high, 17);
  hk_buffer_print(out, ",\"compared\":%" PRIu32 ",\"reach\":%u}", note->compared, note->reach);
}

/* Encodes the time at which the limit is reached, of an event of the channel limit. */
static void encode_put_limit(struct hk_buffer *out, const struct hankel_limit *l)
{
  hk_buffer_put(out, ",\"limit\":{\"limit\":", 18);
  hk_json_number(out, l->limit, 17);
  hk_buffer_put(out, ",\"slope\":", 9);
  hk_json_number(out, (double)l->slope, 9);
  hk_buffer_print(out, ",\"earliest\":%" PRId64 ",\"reached\":%" PRId64 ",\"latest\":", l->earliest, l->reached);
  if (l->latest == INT64_MAX)
    hk_buffer_put(out, "null", 4);
  else
    hk_buffer_print(out, "%" PRId64, l->latest);
  hk_buffer_print(out, ",\"blocks\":%u}", l->blocks);
}

void hk_encode_remarks(struct hk_buffer *out, const struct hk_event *e)
{
  if (e->marks & HANKEL_MAINTENANCE)
    hk_buffer_print(out, ",\"maintenance\":true");
  if (e->marks & HANKEL_SECONDARY)
    hk_buffer_print(out, ",\"secondary\":true");
  if (e->marks & HANKEL_PROVISIONAL)
    hk_buffer_print(out, ",\"provisional\":true");
  if (e->marks & HANKEL_TRAVELS)
    hk_buffer_print(out, ",\"travels\":true");
  if (e->held > 0)
    hk_buffer_print(out, ",\"held\":%" PRIu32, e->held);
  if (e->likeness > 0) {
    hk_buffer_print(out, ",\"similar\":%" PRIu32 ",\"similar_from\":%" PRId64 ",\"likeness\":", e->similar, e->similar_from);
    hk_json_number(out, (double)e->likeness, 3);
  }
  const struct hankel_limit limit = hk_limit_shown(e);
  if (limit.blocks > 0)
    encode_put_limit(out, &limit);
  else if (hk_novelty_shown(e).kind != HANKEL_NO_NOVELTY)
    encode_put_novelty(out, e);
}

/* Finds which details an event has. */
static void encode_put_details(struct hk_buffer *out, const struct hk_event *e)
{
  const float severity = hk_severity_told(e->severity);
  hk_buffer_print(out, ",\"channel\":\"%s\",\"severity\":%.3f,\"level\":\"%s\"", hankel_channel_name(e->channel),
                  (double)severity, hankel_severity_name(severity));
  hk_buffer_put(out, ",\"margin\":", 10);
  hk_json_number(out, (double)e->margin, 6);
  hk_buffer_put(out, ",\"spread_before\":", 17);
  hk_json_number(out, (double)e->spread_before, 9);
  hk_buffer_put(out, ",\"spread_after\":", 16);
  hk_json_number(out, (double)e->spread_after, 9);
  hk_encode_remarks(out, e);
}

/* position: 0: the event is not in the log. incidents: its incident is included. */
static void event_line(struct hk_buffer *out, const struct hk_logged *l, uint64_t position, bool incidents)
{
  const struct hk_event *e = &l->event;
  const struct hk_string name = l->name, by = l->by;
  const bool notice = e->kind == HK_EVENT_STALE || e->kind == HK_EVENT_BACK;
  hk_buffer_print(out, "{\"%s\":\"%s\"", notice ? "notice" : "event", hankel_event_name(e->kind));
  if (!notice) {
    hk_buffer_put(out, ",\"id\":", 6);
    hk_json_string(out, name.data, name.length);
    out->size -= !out->failed; /* the number is inserted before the closing quotation mark */
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
    encode_put_details(out, e);
  }
  if (by.length > 0) {
    hk_buffer_put(out, ",\"by\":", 6);
    hk_json_string(out, by.data, by.length);
  }
  if (position > 0)
    hk_buffer_print(out, ",\"position\":%" PRIu64 ",\"sequence\":%" PRIu64, position, l->sequence);
  if (incidents && l->incident > 0)
    hk_buffer_print(out, ",\"incident\":%" PRIu64, l->incident);
  hk_buffer_put(out, "}\n", 2);
}

static struct hk_event_message encode_message(const struct hk_event *e, uint32_t handle)
{
  return (struct hk_event_message){ .handle = handle,
                                    .number = e->number,
                                    .kind = e->kind,
                                    .score = e->score,
                                    .time = e->time,
                                    .from = e->from,
                                    .instant = e->instant,
                                    .before = e->before,
                                    .after = e->after,
                                    .severity = e->severity,
                                    .margin = e->margin,
                                    .spread_before = e->spread_before,
                                    .spread_after = e->spread_after,
                                    .channel = e->channel,
                                    .marks = e->marks,
                                    .held = e->held,
                                    .similar = e->similar,
                                    .likeness = e->likeness,
                                    .similar_from = e->similar_from,
                                    .by = { "", 0 },
                                    .novelty = hk_novelty_shown(e),
                                    .limit = hk_limit_shown(e) };
}

static uint32_t with(uint32_t what)
{
  return (what & HANKEL_POSITIONS ? HK_EVENTS_PLACED : 0) | (what & HANKEL_DETAILS ? HK_EVENTS_DETAILED : 0) |
         (what & HANKEL_NOTES ? HK_EVENTS_NOTED : 0) | (what & HANKEL_INCIDENTS ? HK_EVENTS_GROUPED : 0);
}

/* Bytes of a frame. by: total length of the names. */
static size_t events_size(uint32_t n, size_t by)
{
  return HK_FRAME_HEADER + 8 +
         (size_t)n *
             (HK_EVENT_BYTES + HK_EVENT_PLACE_BYTES + HK_EVENT_DETAIL_BYTES + HK_EVENT_NOTE_BYTES + HK_EVENT_GROUP_BYTES) +
         by;
}

static void put_events(struct hk_buffer *out, uint32_t n, const struct hk_event_message *messages, size_t by, uint32_t what)
{
  struct hk_writer w = writer(out, events_size(n, by));
  if (hk_events_write(&w, n, messages, with(what)) == 0)
    out->size += w.size;
  else
    out->failed = true;
}

static void events_frame(struct hk_buffer *out, const struct hk_registry *registry, const struct hk_batch *b,
                         const uint32_t *chosen, uint32_t n, uint32_t what, struct hk_string by)
{
  const uint32_t *handles = hk_registry_handles(registry);
  struct hk_event_message *messages = workspace(out, events_size(n, n * by.length), n * sizeof *messages);
  if (!messages)
    return;
  for (uint32_t k = 0; k < n; k++) {
    messages[k] = encode_message(&b->event[chosen[k]], handles[b->event[chosen[k]].slot]);
    messages[k].by = by;
  }
  put_events(out, n, messages, n * by.length, what);
}

void hk_encode_events(struct hk_buffer *out, enum hk_protocol format, const struct hk_registry *registry,
                      const struct hk_batch *b, const struct hk_choice *chosen, uint32_t what, struct hk_string by)
{
  const uint32_t n = chosen->n;
  if (format == HK_PROTOCOL_TEXT) {
    for (uint32_t i = 0; i < n; i++) {
      const struct hk_event *e = &b->event[chosen->index[i]];
      event_line(out, &(struct hk_logged){ .name = hk_registry_name(registry, e->slot), .by = by, .event = *e }, 0, false);
    }
    return;
  }
  for (uint32_t at = 0; at < n; at += EVENTS_FRAME)
    events_frame(out, registry, b, chosen->index + at, n - at < EVENTS_FRAME ? n - at : EVENTS_FRAME, what, by);
}

/* NAMES of n handles. */
static void put_names(struct hk_buffer *out, uint32_t n, const uint32_t *handles, const struct hk_string *names)
{
  size_t size = HK_FRAME_HEADER + 4;
  for (uint32_t i = 0; i < n; i++)
    size += 6 + names[i].length;
  struct hk_writer w = writer(out, size);
  if (hk_names_write(&w, n, handles, names) == 0)
    out->size += w.size;
  else
    out->failed = true;
}

/* Returns the i-th of the handles that no sensor ever has, except HK_NO_HANDLE. */
static uint32_t handle_of_nobody(uint32_t i)
{
  return i << 24 | 0xffffff;
}

void hk_encode_logged(struct hk_buffer *out, enum hk_protocol format, const struct hk_logged *events, uint32_t n, uint32_t what)
{
  uint32_t handles[HK_LOGGED_FRAME];
  struct hk_string names[HK_LOGGED_FRAME];
  struct hk_event_message messages[HK_LOGGED_FRAME];
  size_t by = 0;
  for (uint32_t i = 0; format == HK_PROTOCOL_TEXT && i < n; i++)
    event_line(out, &events[i], events[i].unsure ? 0 : events[i].position, what & HANKEL_INCIDENTS);
  if (format == HK_PROTOCOL_TEXT)
    return;
  for (uint32_t i = 0; i < n; i++) {
    handles[i] = handle_of_nobody(i);
    names[i] = events[i].name;
    messages[i] = encode_message(&events[i].event, handles[i]);
    messages[i].position = events[i].unsure ? 0 : events[i].position;
    messages[i].sequence = events[i].unsure ? 0 : events[i].sequence;
    messages[i].by = events[i].by;
    messages[i].incident = events[i].incident;
    by += events[i].by.length;
  }
  put_names(out, n, handles, names);
  put_events(out, n, messages, by, what);
}

void hk_encode_incident(struct hk_buffer *out, enum hk_protocol format, const struct hk_logged_incident *i, uint32_t what)
{
  const uint64_t position = i->unsure ? 0 : i->position;
  if (format == HK_PROTOCOL_TEXT) {
    const bool closed = i->about.length > 0 && i->about.data[i->about.length - 1] == '}';
    hk_buffer_put(out, i->about.data, i->about.length - closed);
    if (closed && position > 0)
      hk_buffer_print(out, ",\"position\":%" PRIu64, position);
    hk_buffer_put(out, "}\n", closed ? 2 : 0);
    return;
  }
  const struct hk_incident_message m = { .position = what & HANKEL_POSITIONS ? position : 0,
                                         .id = i->id,
                                         .into = i->into,
                                         .time = i->time,
                                         .since = i->since,
                                         .rank = i->rank,
                                         .severity = i->severity,
                                         .count = i->count,
                                         .kind = i->kind,
                                         .told = i->told,
                                         .text = i->text,
                                         .about = i->about };
  struct hk_writer w = writer(out, HK_FRAME_HEADER + HK_INCIDENT_BYTES + i->text.length + i->about.length);
  if (hk_incident_write(&w, &m) == 0)
    out->size += w.size;
  else
    out->failed = true;
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
    for (uint32_t i = 0; i < count; i++) {
      handles[i] = hk_registry_handles(registry)[slots[at + i]];
      names[i] = hk_registry_name(registry, slots[at + i]);
    }
    put_names(out, count, handles, names);
  }
}
