/* Golden bytes of every message: the writer makes each frame of proto/vectors/frames.json from its fields, and also from the
 * fields that the reader gets from the frame. So an error in the place or the byte order of a field is found, even if writer and
 * reader agree on it. */
#include "proto/wire/columns.h"
#include "proto/wire/event_message.h"
#include "proto/wire/incident_message.h"
#include "proto/wire/picture.h"
#include "proto/wire/scores.h"
#include "tests/unit/support/frames.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 8
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const cJSON *of(const cJSON *fields, const char *name)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(fields, name);
  if (!item)
    fail_msg("no field `%s`", name);
  return item;
}

/* A number of up to 64 bits, with or without a sign; those over 32 are text. */
static uint64_t whole_number(const cJSON *item)
{
  const char *text = cJSON_IsString(item) ? item->valuestring : NULL;
  if (!text)
    return (uint64_t)item->valuedouble;
  return *text == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
}

static uint64_t u(const cJSON *fields, const char *name)
{
  return whole_number(of(fields, name));
}

static float f32(const cJSON *fields, const char *name)
{
  return (float)of(fields, name)->valuedouble;
}

static struct hk_string s(const cJSON *fields, const char *name)
{
  return hk_string(of(fields, name)->valuestring);
}

/* Columns of a frame. */
struct columns {
  uint32_t n;
  uint32_t handle[MOST], other[MOST], steps[MOST];
  int64_t time[MOST];
  uint64_t sequence[MOST];
  double value[MOST];
  float single[MOST], score[MOST];
  uint8_t state[MOST];
  struct hk_string name[MOST];
};

static void read_columns(const cJSON *fields, struct columns *c)
{
  *c = (struct columns){ 0 };
  c->n = (uint32_t)cJSON_GetArraySize(cJSON_HasObjectItem(fields, "handles") ? of(fields, "handles") : of(fields, "names"));
  assert_in_range(c->n, 1, MOST);
  for (uint32_t i = 0; i < c->n; i++) {
    const cJSON *item;
#define AT(key) (item = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(fields, key), (int)i))
    c->handle[i] = AT("handles") ? (uint32_t)whole_number(item) : 0;
    c->other[i] = AT("reasons") ? (uint32_t)whole_number(item) : 0;
    c->steps[i] = AT("steps") ? (uint32_t)whole_number(item) : 0;
    c->time[i] = AT("times") ? (int64_t)whole_number(item) : 0;
    c->sequence[i] = AT("sequences") ? whole_number(item) : 0;
    c->value[i] = AT("values") ? item->valuedouble : 0;
    c->single[i] = (float)c->value[i];
    c->score[i] = AT("scores") && cJSON_IsNumber(item) ? (float)item->valuedouble : NAN;
    c->state[i] = AT("states") ? (uint8_t)whole_number(item) : HANKEL_OK;
    if (AT("names"))
      c->name[i] = hk_string(item->valuestring);
#undef AT
  }
}

static int write_picture(struct hk_writer *w, uint32_t tag, const cJSON *f)
{
  uint8_t pixels[64];
  const char *hex = of(f, "pixels")->valuestring;
  for (size_t i = 0; i < strlen(hex) / 2 && i < sizeof pixels; i++)
    assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &pixels[i]), 1);
  return hk_picture_write(w, tag,
                          &(struct hk_picture_message){ .before = u(f, "before"),
                                                        .time = (int64_t)u(f, "time"),
                                                        .height = (uint32_t)u(f, "height"),
                                                        .width = (uint32_t)u(f, "width"),
                                                        .kind = (uint8_t)u(f, "kind"),
                                                        .scale = (float)of(f, "scale")->valuedouble,
                                                        .offset = (float)of(f, "offset")->valuedouble,
                                                        .camera = hk_string(of(f, "camera")->valuestring),
                                                        .pixels = pixels });
}

static int write_points(struct hk_writer *w, uint32_t tag, const cJSON *f)
{
  struct columns c;
  read_columns(f, &c);
  struct hk_points p = {
    u(f, "feed"), u(f, "sequence"), u(f, "before"), c.n, (uint8_t)u(f, "time_kind"), (uint8_t)u(f, "value_kind"), 0, 0, NULL,
    NULL,         c.value,          c.handle
  };
  p.base = cJSON_HasObjectItem(f, "base") ? (int64_t)u(f, "base") : 0;
  p.step = cJSON_HasObjectItem(f, "step") ? (int64_t)u(f, "step") : 0;
  p.times = p.time_kind == HK_TIME_EACH ? c.time : NULL;
  p.steps = p.time_kind == HK_TIME_STEPS ? c.steps : NULL;
  if (p.value_kind == HK_VALUE_F32)
    p.values = c.single;
  return hk_points_write(w, tag, &p);
}

static struct hankel_novelty novelty(const cJSON *e)
{
  return (struct hankel_novelty){ .kind = (uint8_t)u(e, "novelty"),
                                  .reach = (uint16_t)u(e, "reach"),
                                  .compared = (uint32_t)u(e, "compared"),
                                  .nearest = (int64_t)u(e, "nearest"),
                                  .oldest = (int64_t)u(e, "oldest"),
                                  .low = cJSON_GetNumberValue(cJSON_GetObjectItem(e, "low")),
                                  .high = cJSON_GetNumberValue(cJSON_GetObjectItem(e, "high")) };
}

static struct hankel_limit limit(const cJSON *e)
{
  return (struct hankel_limit){ .blocks = (uint16_t)u(e, "blocks"),
                                .slope = f32(e, "slope"),
                                .limit = of(e, "limit")->valuedouble,
                                .earliest = (int64_t)u(e, "earliest"),
                                .reached = (int64_t)u(e, "reached"),
                                .latest = (int64_t)u(e, "latest") };
}

static int write_events(struct hk_writer *w, const cJSON *f)
{
  struct hk_event_message events[MOST];
  uint32_t n = 0;
  const cJSON *e;
  cJSON_ArrayForEach(e, of(f, "events"))
  {
    assert_in_range(n, 0, MOST - 1);
    events[n++] =
        (struct hk_event_message){ .handle = (uint32_t)u(e, "handle"),
                                   .number = (uint32_t)u(e, "number"),
                                   .kind = (uint8_t)u(e, "kind"),
                                   .score = f32(e, "score"),
                                   .time = (int64_t)u(e, "time"),
                                   .from = (int64_t)u(e, "from"),
                                   .instant = (int64_t)u(e, "instant"),
                                   .before = of(e, "before")->valuedouble,
                                   .after = of(e, "after")->valuedouble,
                                   .position = u(e, "position"),
                                   .sequence = u(e, "sequence"),
                                   .severity = f32(e, "severity"),
                                   .margin = f32(e, "margin"),
                                   .spread_before = f32(e, "spread_before"),
                                   .spread_after = f32(e, "spread_after"),
                                   .channel = (uint8_t)u(e, "channel"),
                                   .marks = (uint8_t)u(e, "marks"),
                                   .held = (uint32_t)u(e, "held"),
                                   .similar = (uint32_t)u(e, "similar"),
                                   .likeness = f32(e, "likeness"),
                                   .similar_from = (int64_t)u(e, "similar_from"),
                                   .by = s(e, "by"),
                                   .novelty = cJSON_HasObjectItem(e, "blocks") ? (struct hankel_novelty){ 0 } : novelty(e),
                                   .limit = cJSON_HasObjectItem(e, "blocks") ? limit(e) : (struct hankel_limit){ 0 },
                                   .incident = cJSON_HasObjectItem(e, "incident") ? u(e, "incident") : 0 };
  }
  return hk_events_write(w, n, events, (uint32_t)u(f, "with"));
}

static int write_incident(struct hk_writer *w, const cJSON *f)
{
  const struct hk_incident_message m = { .position = u(f, "position"),
                                         .id = u(f, "id"),
                                         .into = u(f, "into"),
                                         .time = (int64_t)u(f, "time"),
                                         .since = (int64_t)u(f, "since"),
                                         .rank = of(f, "rank")->valuedouble,
                                         .severity = of(f, "severity")->valuedouble,
                                         .count = (uint32_t)u(f, "count"),
                                         .kind = (uint8_t)u(f, "kind"),
                                         .told = (uint8_t)u(f, "told"),
                                         .text = s(f, "text"),
                                         .about = s(f, "about") };
  return hk_incident_write(w, &m);
}

static int write_scores(struct hk_writer *w, const cJSON *f)
{
  struct columns c;
  read_columns(f, &c);
  return hk_scores_write(w, c.n, c.time, cJSON_HasObjectItem(f, "values") ? c.value : NULL,
                         cJSON_HasObjectItem(f, "sequences") ? c.sequence : NULL, c.handle, c.score, c.state);
}

/* Writes a frame that the daemon sends. */
static int write_answer(struct hk_writer *w, uint8_t type, uint32_t tag, const cJSON *f)
{
  struct columns c;
  uint64_t number;
  switch (type) {
  case HK_WELCOME:
    return hk_welcome_write(w, tag,
                            &(struct hk_welcome){ u(f, "feed"), (uint32_t)u(f, "max_frame"), s(f, "server"), s(f, "key") });
  case HK_REGISTERED:
    read_columns(f, &c);
    return hk_registered_write(w, tag, c.n, c.handle, c.other);
  case HK_REPORT:
    return hk_report_write(w, tag, s(f, "text"));
  case HK_FAREWELL:
    return cJSON_HasObjectItem(f, "late") ? hk_farewell_write(w, tag, u(f, "late"), u(f, "rejected"))
                                          : hk_empty_write(w, type, tag);
  case HK_FEED_AT:
    return hk_feed_at_write(w, tag, &(struct hk_feed_at){ u(f, "points"), (uint32_t)u(f, "durability") });
  case HK_ACK:
    return hk_ack_write(w, u(f, "points"));
  case HK_RELOADED:
  case HK_OPERATED:
    return hk_reloaded_write(w, type, tag, u(f, "taken") == 1, s(f, "text"));
  case HK_NAMES:
    read_columns(f, &c);
    return hk_names_write(w, c.n, c.handle, c.name);
  case HK_SCORES:
    return write_scores(w, f);
  case HK_EVENTS:
    return write_events(w, f);
  case HK_INCIDENT:
    return write_incident(w, f);
  case HK_GAP:
    return hk_gap_write(w, u(f, "results"), u(f, "events"));
  case HK_ERROR:
    return hk_error_write(w, tag, (uint16_t)u(f, "code"), (uint8_t)u(f, "type"), s(f, "message"));
  case HK_DONE:
    number = cJSON_HasObjectItem(f, "since") ? u(f, "since") : 0;
    return hk_done_write(w, tag, number ? &number : NULL);
  default:
    return hk_empty_write(w, type, tag);
  }
}

static int write_fields(struct hk_writer *w, uint8_t type, uint32_t tag, const cJSON *f)
{
  struct columns c;
  switch (type) {
  case HK_HELLO:
    return hk_hello_write(w, tag, &(struct hk_hello){ s(f, "client"), s(f, "token"), (uint32_t)u(f, "wants") });
  case HK_REGISTER:
    read_columns(f, &c);
    return hk_register_write(w, tag, c.n, c.name);
  case HK_POINTS:
    return write_points(w, tag, f);
  case HK_PICTURE:
    return write_picture(w, tag, f);
  case HK_SUBSCRIBE:
    return hk_subscribe_write(
        w, tag, &(struct hk_subscription){ (uint32_t)u(f, "what"), f32(f, "min_score"), s(f, "glob"), u(f, "since") });
  case HK_PING:
  case HK_PONG:
    return hk_ping_write(w, type, tag, u(f, "token"));
  case HK_BYE:
    return hk_bye_write(w, tag, u(f, "datagrams"), u(f, "points"));
  case HK_FEED:
    return hk_feed_write(w, tag, s(f, "name"));
  case HK_SENSORS:
    return hk_sensors_write(w, tag, &(struct hk_sensors_asked){ u(f, "after"), (uint32_t)u(f, "limit"), s(f, "glob") });
  case HK_OPERATE:
    return hk_operate_write(
        w, tag,
        &(struct hk_operate){ (uint8_t)u(f, "what"), (uint32_t)u(f, "number"), u(f, "duration"), s(f, "subject"), s(f, "by") });
  default:
    return write_answer(w, type, tag, f);
  }
}

/* Reads the lists of a frame, and writes them again. */
static int list_again(struct hk_writer *w, const struct hk_frame *f)
{
  struct columns c = { 0 };
  struct hk_event_message events[MOST];
  struct hk_list list;
  assert_int_equal(f->type == HK_REGISTER     ? hk_register_read(f, &list)
                   : f->type == HK_REGISTERED ? hk_registered_read(f, &list)
                   : f->type == HK_NAMES      ? hk_names_read(f, &list)
                                              : hk_events_read(f, &list),
                   0);
  const uint32_t n = list.n;
  assert_in_range(n, 1, MOST);
  for (uint32_t i = 0; i < n; i++) {
    if (f->type == HK_REGISTER)
      c.name[i] = hk_name_next(&list);
    else if (f->type == HK_REGISTERED)
      hk_registered_next(&list, &c.handle[i], &c.other[i]);
    else if (f->type == HK_NAMES)
      hk_names_next(&list, &c.handle[i], &c.name[i]);
    else
      hk_event_next(&list, &events[i]);
  }
  return f->type == HK_REGISTER     ? hk_register_write(w, f->tag, n, c.name)
         : f->type == HK_REGISTERED ? hk_registered_write(w, f->tag, n, c.handle, c.other)
         : f->type == HK_NAMES      ? hk_names_write(w, n, c.handle, c.name)
                                    : hk_events_write(w, n, events, list.with);
}

static int scores_again(struct hk_writer *w, const struct hk_frame *f)
{
  struct hk_scores scores;
  struct columns c = { 0 };
  assert_int_equal(hk_scores_read(f, &scores), 0);
  assert_in_range(scores.n, 1, MOST);
  hk_scores_times(&scores, c.time);
  memcpy(c.handle, scores.handles, 4 * scores.n);
  memcpy(c.score, scores.scores, 4 * scores.n);
  memset(c.state, HANKEL_OK, sizeof c.state);
  if (scores.values)
    memcpy(c.value, scores.values, 8 * scores.n);
  if (scores.sequences)
    memcpy(c.sequence, scores.sequences, 8 * scores.n);
  if (scores.states)
    memcpy(c.state, scores.states, scores.n);
  return hk_scores_write(w, scores.n, c.time, scores.values ? c.value : NULL, scores.sequences ? c.sequence : NULL, c.handle,
                         c.score, c.state);
}

union message {
  struct hk_hello hello;
  struct hk_welcome welcome;
  struct hk_points points;
  struct hk_picture_message picture;
  struct hk_subscription subscription;
  struct hk_feed_at feed_at;
  struct hk_operate operate;
  struct hk_sensors_asked sensors;
  struct hk_incident_message incident;
  struct hk_error_message error;
  struct hk_string text;
  uint64_t number[2];
};

#define AGAIN(read, write) return assert_int_equal(read, 0), write

/* As read_and_write, of a frame that the daemon sends. */
static int answer_again(struct hk_writer *w, const struct hk_frame *f)
{
  union message m;
  struct hk_string text;
  bool taken;
  switch (f->type) {
  case HK_WELCOME:
    AGAIN(hk_welcome_read(f, &m.welcome), hk_welcome_write(w, f->tag, &m.welcome));
  case HK_DONE:
    AGAIN(hk_done_read(f, m.number), hk_done_write(w, f->tag, f->length ? m.number : NULL));
  case HK_REPORT: /* the payload is the text */
    return hk_report_write(w, f->tag, (struct hk_string){ (const char *)f->payload, f->length });
  case HK_FEED_AT:
    AGAIN(hk_feed_at_read(f, &m.feed_at), hk_feed_at_write(w, f->tag, &m.feed_at));
  case HK_ACK:
    AGAIN(hk_ack_read(f, m.number), hk_ack_write(w, m.number[0]));
  case HK_RELOADED:
  case HK_OPERATED:
    AGAIN(hk_reloaded_read(f, &taken, &text), hk_reloaded_write(w, f->type, f->tag, taken, text));
  case HK_SCORES:
    return scores_again(w, f);
  case HK_INCIDENT:
    AGAIN(hk_incident_read(f, &m.incident), hk_incident_write(w, &m.incident));
  case HK_GAP:
    AGAIN(hk_gap_read(f, &m.number[0], &m.number[1]), hk_gap_write(w, m.number[0], m.number[1]));
  case HK_FAREWELL:
    if (f->length > 0)
      AGAIN(hk_farewell_read(f, &m.number[0], &m.number[1]), hk_farewell_write(w, f->tag, m.number[0], m.number[1]));
    AGAIN(hk_empty_read(f), hk_empty_write(w, f->type, f->tag));
  case HK_ERROR:
    AGAIN(hk_error_read(f, &m.error), hk_error_write(w, f->tag, m.error.code, m.error.type, m.error.message));
  default:
    AGAIN(hk_empty_read(f), hk_empty_write(w, f->type, f->tag));
  }
}

static int read_and_write(struct hk_writer *w, const struct hk_frame *f)
{
  union message m;
  const char *why = NULL;
  switch (f->type) {
  case HK_HELLO:
    AGAIN(hk_hello_read(f, &m.hello), hk_hello_write(w, f->tag, &m.hello));
  case HK_POINTS:
    AGAIN(hk_points_read(f, &m.points), hk_points_write(w, f->tag, &m.points));
  case HK_PICTURE:
    AGAIN(hk_picture_read(f, &m.picture, &why), hk_picture_write(w, f->tag, &m.picture));
  case HK_SUBSCRIBE:
    AGAIN(hk_subscribe_read(f, &m.subscription), hk_subscribe_write(w, f->tag, &m.subscription));
  case HK_PING:
  case HK_PONG:
    AGAIN(hk_ping_read(f, m.number), hk_ping_write(w, f->type, f->tag, m.number[0]));
  case HK_BYE:
    AGAIN(hk_bye_read(f, &m.number[0], &m.number[1]), hk_bye_write(w, f->tag, m.number[0], m.number[1]));
  case HK_FEED:
    AGAIN(hk_feed_read(f, &m.text), hk_feed_write(w, f->tag, m.text));
  case HK_OPERATE:
    AGAIN(hk_operate_read(f, &m.operate), hk_operate_write(w, f->tag, &m.operate));
  case HK_SENSORS:
    AGAIN(hk_sensors_read(f, &m.sensors), hk_sensors_write(w, f->tag, &m.sensors));
  case HK_REGISTER:
  case HK_REGISTERED:
  case HK_NAMES:
  case HK_EVENTS:
    return list_again(w, f);
  default:
    return answer_again(w, f);
  }
}

static size_t read_hex(const cJSON *pieces, uint8_t *out)
{
  const cJSON *piece;
  size_t n = 0;
  cJSON_ArrayForEach(piece, pieces)
  {
    unsigned byte;
    for (const char *p = piece->valuestring; sscanf(p, "%2x", &byte) == 1; p += 2)
      out[n++] = (uint8_t)byte;
  }
  return n;
}

static void expect(const char *name, const char *how, const struct hk_writer *w, const uint8_t *golden, size_t size)
{
  for (size_t i = 0; i < size && i < w->size; i++)
    if (w->data[i] != golden[i])
      fail_msg("%s, %s: byte %zu is %02x, not %02x", name, how, i, w->data[i], golden[i]);
  if (w->size != size)
    fail_msg("%s, %s: %zu bytes, not %zu", name, how, w->size, size);
}

static void every_message_is_its_golden_bytes(void **state)
{
  static char text[1 << 17];
  bool seen[256] = { false };
  (void)state;
  FILE *file = fopen(getenv("VECTORS") ? getenv("VECTORS") : "proto/vectors/frames.json", "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  cJSON *all = cJSON_Parse(text);
  assert_non_null(all);
  const cJSON *v;
  cJSON_ArrayForEach(v, of(all, "frames"))
  {
    const char *name = of(v, "name")->valuestring;
    uint8_t golden[2048], data[2048];
    const size_t size = read_hex(of(v, "bytes"), golden);
    const struct hk_frame f = whole(golden, size);
    assert_int_equal(f.type, u(v, "type"));
    assert_int_equal(f.tag, u(v, "tag"));
    seen[f.type] = true;
    struct hk_writer w = HK_WRITER(data, sizeof data);
    assert_int_equal(write_fields(&w, f.type, f.tag, of(v, "fields")), 0);
    expect(name, "written", &w, golden, size);
    w = (struct hk_writer)HK_WRITER(data, sizeof data);
    assert_int_equal(read_and_write(&w, &f), 0);
    expect(name, "read and written", &w, golden, size);
  }
  cJSON_Delete(all);
  for (unsigned type = 0; type < 256; type++)
    if (strcmp(hk_frame_name((uint8_t)type), "unknown") != 0 && !seen[type])
      fail_msg("%s has no golden bytes", hk_frame_name((uint8_t)type));
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(every_message_is_its_golden_bytes) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
