/* Fuzz target: the binary protocol. The first byte of the input selects the use of the rest: if even, a stream of bytes that goes
 * into an inbox in pieces; if odd, the second byte is a frame's type and the rest its payload, with a good checksum, so that the
 * readers of payloads are reached. A frame that was read is written again, and must have the same bytes. */
#include "daemon/intake/decode_points.h"
#include "proto/wire/columns.h"
#include "proto/wire/event_message.h"
#include "proto/wire/incident_message.h"
#include "proto/wire/message.h"
#include "proto/wire/picture.h"
#include "proto/wire/scores.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
  if (!good)
    abort();
}

/* A frame that was written from what was read of f must be f but for its tag. */
static void same(const struct hk_frame *f, const struct hk_writer *w, int status)
{
  struct hk_frame again;
  require(status == 0);
  require(hk_frame_read(w->data, w->size, HK_FRAME_MAX, &again) == HK_FRAME_WHOLE);
  require(again.type == f->type && again.length == f->length && memcmp(again.payload, f->payload, f->length) == 0);
}

/* As the daemon takes them: what comes out are the points whose handles are good, none of them later than is believed. */
static void decode_points(const struct hk_points *p, const uint32_t *handle, const int64_t *time, const double *value)
{
  enum { SENSORS = 64, LATEST = 1 << 20 };
  static atomic_uint of_slot[SENSORS + 1];
  for (uint32_t i = 0; i < SENSORS; i++)
    atomic_store(&of_slot[i], i % 3 ? i | i << 24 : HK_NO_HANDLE);
  const struct hk_decoder d = { { of_slot, SENSORS }, 1, LATEST };
  const struct hk_columns to = { malloc(p->n * sizeof(uint32_t)), malloc(p->n * sizeof(int64_t)), malloc(p->n * sizeof(double)) };
  const struct hk_decoded out = hk_decode(&d, p, 0, p->n, to);
  uint32_t n = 0, ahead = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const uint32_t slot = handle[i] & 0xffffff;
    if (slot >= SENSORS || slot % 3 == 0 || handle[i] >> 24 != slot)
      continue;
    ahead += time[i] > LATEST;
    require(to.slot[n] == slot && to.time[n] == time[i]);
    require(time[i] > LATEST ? to.value[n] != to.value[n] : memcmp(&to.value[n], &value[i], sizeof *value) == 0);
    n++;
  }
  require(out.n == n && out.ahead == ahead);
  free(to.slot);
  free(to.time);
  free(to.value);
}

static void read_points(const struct hk_frame *f, struct hk_writer *w)
{
  struct hk_points p;
  if (hk_points_read(f, &p) != 0)
    return;
  uint32_t *handle = malloc(p.n * sizeof *handle);
  int64_t *time = malloc(p.n * sizeof *time);
  double *value = malloc(p.n * sizeof *value);
  hk_points_handles(&p, 0, p.n, handle);
  hk_points_times(&p, 0, p.n, 1, time);
  hk_points_values(&p, 0, p.n, value);
  decode_points(&p, handle, time, value);
  const uint32_t half = p.n / 2;
  hk_points_handles(&p, half, p.n - half, handle);
  hk_points_times(&p, half, p.n - half, 1, time);
  hk_points_values(&p, half, p.n - half, value);
  free(handle);
  free(time);
  free(value);
  same(f, w, hk_points_write(w, 0, &p));
}

static void read_scores(const struct hk_frame *f)
{
  struct hk_scores s;
  if (hk_scores_read(f, &s) != 0)
    return;
  const unsigned wide = (s.values != NULL) + (s.sequences != NULL);
  require(hk_frame_size(f) <= hk_scores_most(s.n, wide));
  /* A payload that was read is written again, and read with the same result. */
  const size_t n = s.n, size = hk_scores_most(s.n, wide);
  int64_t *time = malloc(2 * n * sizeof *time), *again = time + n;
  double *value = malloc(n * sizeof *value);
  uint64_t *sequence = malloc(n * sizeof *sequence);
  uint32_t *handle = malloc(n * sizeof *handle);
  float *score = malloc(n * sizeof *score);
  uint8_t *state = malloc(n), *bytes = malloc(size);
  require(time && value && sequence && handle && score && state && bytes);
  hk_scores_times(&s, time);
  if (s.values)
    memcpy(value, s.values, n * sizeof *value);
  if (s.sequences)
    memcpy(sequence, s.sequences, n * sizeof *sequence);
  memcpy(handle, s.handles, n * sizeof *handle);
  memcpy(score, s.scores, n * sizeof *score);
  memset(state, HANKEL_OK, n);
  if (s.states)
    memcpy(state, s.states, n);
  struct hk_writer w = HK_WRITER(bytes, size);
  struct hk_frame g;
  struct hk_scores t;
  require(hk_scores_write(&w, s.n, time, s.values ? value : NULL, s.sequences ? sequence : NULL, handle, score, state) == 0);
  require(hk_frame_read(bytes, w.size, UINT32_MAX, &g) == HK_FRAME_WHOLE && hk_scores_read(&g, &t) == 0 && t.n == s.n);
  hk_scores_times(&t, again);
  require(memcmp(time, again, n * sizeof *time) == 0 && memcmp(handle, t.handles, n * sizeof *handle) == 0 &&
          memcmp(score, t.scores, n * sizeof *score) == 0 && (!s.values || memcmp(value, t.values, n * sizeof *value) == 0) &&
          (!s.sequences || memcmp(sequence, t.sequences, n * sizeof *sequence) == 0));
  for (size_t i = 0; i < n; i++)
    require(state[i] == (t.states ? ((const uint8_t *)t.states)[i] : HANKEL_OK));
  free(time);
  free(value);
  free(sequence);
  free(handle);
  free(score);
  free(state);
  free(bytes);
}

static void read_picture(const struct hk_frame *f, struct hk_writer *w)
{
  struct hk_picture_message picture;
  const char *why = NULL;
  const int code = hk_picture_read(f, &picture, &why);
  require(code == 0 ? !why : code == HANKEL_BAD_PAYLOAD || (code == HANKEL_BAD_PICTURE && why));
  if (code != 0)
    return;
  float *row = malloc(picture.width * sizeof *row);
  for (uint32_t r = 0; row && r < picture.height; r++)
    hk_picture_pixels(&picture, r, row);
  free(row);
  same(f, w, hk_picture_write(w, 0, &picture));
}

static void read_registered(const struct hk_frame *f)
{
  struct hk_list list;
  uint32_t handle, reason;
  if (hk_registered_read(f, &list) == 0) {
    for (uint32_t i = 0; i < list.n; i++)
      hk_registered_next(&list, &handle, &reason);
    require(hk_reader_done(&list.reader));
  }
}

static void read_names(const struct hk_frame *f)
{
  struct hk_string s;
  struct hk_list list;
  uint32_t handle;
  if (hk_names_read(f, &list) == 0) {
    for (uint32_t i = 0; i < list.n; i++) {
      hk_names_next(&list, &handle, &s);
      require(hk_name_valid(s.data, s.length));
    }
    require(hk_reader_done(&list.reader));
  }
}

/* Of a frame that the daemon sends. */
static void read_answer(const struct hk_frame *f, struct hk_writer *w)
{
  struct hk_list list;
  struct hk_welcome welcome;
  struct hk_error_message error;
  struct hk_event_message event;
  struct hk_incident_message incident;
  struct hk_feed_at feed_at;
  uint64_t a, b;
  switch (f->type) {
  case HK_FEED_AT:
    if (hk_feed_at_read(f, &feed_at) == 0)
      same(f, w, hk_feed_at_write(w, 0, &feed_at));
    break;
  case HK_ACK:
    if (hk_ack_read(f, &a) == 0)
      same(f, w, hk_ack_write(w, a));
    break;
  case HK_DONE:
    if (hk_done_read(f, &a) == 0)
      same(f, w, hk_done_write(w, 0, f->length > 0 ? &a : NULL));
    break;
  case HK_GAP:
    if (hk_gap_read(f, &a, &b) == 0)
      same(f, w, hk_gap_write(w, a, b));
    break;
  case HK_WELCOME:
    if (hk_welcome_read(f, &welcome) == 0)
      same(f, w, hk_welcome_write(w, 0, &welcome));
    break;
  case HK_REGISTERED:
    read_registered(f);
    break;
  case HK_NAMES:
    read_names(f);
    break;
  case HK_SCORES:
    read_scores(f);
    break;
  case HK_EVENTS:
    if (hk_events_read(f, &list) == 0) {
      for (uint32_t i = 0; i < list.n; i++)
        hk_event_next(&list, &event);
      require(hk_reader_done(&list.reader));
    }
    break;
  case HK_INCIDENT:
    if (hk_incident_read(f, &incident) == 0)
      same(f, w, hk_incident_write(w, &incident));
    break;
  case HK_ERROR:
    (void)hk_error_read(f, &error);
    break;
  default:
    (void)hk_empty_read(f);
  }
}

static void read_register(const struct hk_frame *f, struct hk_writer *w)
{
  struct hk_list list;
  if (hk_register_read(f, &list) == 0) {
    struct hk_string *names = malloc(list.n * sizeof *names);
    const uint32_t n = list.n;
    for (uint32_t i = 0; i < n; i++) {
      names[i] = hk_name_next(&list);
      hk_name_valid(names[i].data, names[i].length);
    }
    same(f, w, hk_register_write(w, 0, n, names));
    free(names);
  }
}

static void read_payload(const struct hk_frame *f, struct hk_writer *w)
{
  struct hk_string s;
  struct hk_hello hello;
  struct hk_subscription subscription;
  uint64_t a, b;
  switch (f->type) {
  case HK_HELLO:
    if (hk_hello_read(f, &hello) == 0)
      same(f, w, hk_hello_write(w, 0, &hello));
    break;
  case HK_REGISTER:
    read_register(f, w);
    break;
  case HK_POINTS:
    read_points(f, w);
    break;
  case HK_SUBSCRIBE:
    if (hk_subscribe_read(f, &subscription) == 0)
      same(f, w, hk_subscribe_write(w, 0, &subscription));
    break;
  case HK_OPERATE: {
    struct hk_operate operate;
    if (hk_operate_read(f, &operate) == 0)
      same(f, w, hk_operate_write(w, 0, &operate));
    break;
  }
  case HK_PICTURE:
    read_picture(f, w);
    break;
  case HK_SENSORS: {
    struct hk_sensors_asked sensors;
    if (hk_sensors_read(f, &sensors) == 0)
      same(f, w, hk_sensors_write(w, 0, &sensors));
    break;
  }
  case HK_PING:
    if (hk_ping_read(f, &a) == 0)
      same(f, w, hk_ping_write(w, HK_PING, 0, a));
    break;
  case HK_BYE:
    if (hk_bye_read(f, &a, &b) == 0)
      same(f, w, hk_bye_write(w, 0, a, b));
    break;
  case HK_FEED:
    if (hk_feed_read(f, &s) == 0)
      same(f, w, hk_feed_write(w, 0, s));
    break;
  default:
    read_answer(f, w);
  }
}

/* Puts bytes in pieces into an inbox with its own memory, or one whose buffer others use in between. */
static void stream(const uint8_t *data, size_t size, struct hk_writer *w, bool lend)
{
  struct hk_inbox in = { .max_length = 4096 };
  struct hk_frame f;
  const size_t piece = 1 + (data[0] >> 1);
  int status = HK_FRAME_PART;
  for (size_t at = 1; at < size && status == HK_FRAME_PART; at += piece) {
    uint8_t *buffer = lend ? malloc(1024) : NULL;
    size_t room;
    const size_t n = piece < size - at ? piece : size - at;
    if (lend)
      hk_inbox_lend(&in, buffer, 1024);
    uint8_t *space = hk_inbox_space(&in, &room);
    require(space && room >= n);
    memcpy(space, data + at, n);
    hk_inbox_wrote(&in, n);
    while ((status = hk_inbox_next(&in, &f)) == HK_FRAME_WHOLE) {
      require(f.length <= in.max_length);
      w->size = 0;
      read_payload(&f, w);
    }
    require(hk_inbox_settle(&in) == 0);
    free(buffer);
  }
  require(in.capacity <= 2 * (HK_FRAME_HEADER + 4096) || in.capacity <= 16 << 10);
  hk_inbox_free(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static uint8_t buffer[1 << 18];
  struct hk_writer w = HK_WRITER(buffer, sizeof buffer);
  struct hk_frame f;
  if (size < 2 || size > 1 << 16)
    return 0;
  if (data[0] & 1) {
    /* its own piece of memory, so that ASan sees one byte too many */
    uint8_t *payload = malloc(size - 2 + (size == 2));
    memcpy(payload, data + 2, size - 2);
    f = (struct hk_frame){ data[1], 0, (uint32_t)(size - 2), payload };
    read_payload(&f, &w);
    free(payload);
    return 0;
  }
  stream(data, size, &w, false);
  stream(data, size, &w, true);
  return 0;
}
