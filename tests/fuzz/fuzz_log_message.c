/* Fuzz target: messages of a cluster's logs, of points and of scores. Checksums are corrected first, so that the code after them
 * is reached. A message that was read has handles below its number of names, no more points than allowed, and is the same when it
 * is written and read again. */
#include "proto/wire/columns.h"
#include "proto/wire/log_message.h"
#include "proto/wire/score_message.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 4096 };

static void require(bool good)
{
  if (!good)
    abort();
}

/* The bytes as one frame after the other, each with a header that fits: 2 bytes say how long its payload is, and of what type. */
static size_t framed(const uint8_t *data, size_t size, uint8_t *out)
{
  struct hk_writer w = HK_WRITER(out, MOST);
  while (size > 2 && !w.full) {
    const size_t wanted = data[0] | (data[1] & 15u) << 8, length = wanted < size - 2 ? wanted : size - 2;
    static const uint8_t types[16] = { HK_REGISTER, HK_POINTS, HK_PING, HK_NAMES, HK_SCORES };
    const uint8_t type = types[data[1] >> 4];
    const size_t place = hk_frame_begin(&w, type ? type : HK_POINTS, 0);
    hk_put(&w, data + 2, length);
    (void)hk_frame_end(&w, place);
    data += 2 + length;
    size -= 2 + length;
  }
  return w.size;
}

static void again(struct hk_list names, const struct hk_points *p)
{
  static uint8_t bytes[1 << 18];
  static struct hk_string name[HK_REGISTER_MAX];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  struct hk_list second;
  struct hk_points points;
  const char *why;
  const uint32_t n = names.n;
  for (uint32_t i = 0; i < n; i++)
    name[i] = hk_name_next(&names);
  require(hk_log_message_write(&w, n, name, p) == 0);
  require(hk_log_message_read(bytes, w.size, &second, &points, &why) == 0);
  require(second.n == n && points.n == p->n && points.time_kind == p->time_kind && points.base == p->base);
  require(memcmp(points.values, p->values, p->n * (p->value_kind == HK_VALUE_F64 ? 8 : 4)) == 0);
  for (uint32_t i = 0; i < n; i++) {
    const struct hk_string s = hk_name_next(&second);
    require(s.length == name[i].length && memcmp(s.data, name[i].data, s.length) == 0);
  }
}

static void look(const uint8_t *data, size_t size)
{
  struct hk_list names;
  struct hk_points p;
  const char *why = NULL;
  if (hk_log_message_read(data, size, &names, &p, &why) != 0) {
    require(why && why[0]);
    return;
  }
  require(p.n >= 1 && p.n <= HK_LOG_POINTS_MAX && names.n <= HK_REGISTER_MAX);
  for (uint32_t i = 0; i < p.n; i++) {
    uint32_t handle;
    int64_t time;
    double value;
    hk_points_handles(&p, i, 1, &handle);
    hk_points_times(&p, i, 1, 0, &time);
    hk_points_values(&p, i, 1, &value);
    require(handle < names.n);
  }
  again(names, &p);
}

/* Checks a message that was read: its handles count its names, and its states are valid. */
static void look_at_scores(const uint8_t *data, size_t size)
{
  struct hk_score_message m;
  int64_t times[HK_SCORE_MESSAGE_MAX];
  const char *why = NULL;
  if (hk_score_message_read(data, size, &m, &why) != 0) {
    require(why && why[0]);
    return;
  }
  require(m.scores.n <= HK_SCORE_MESSAGE_MAX && m.names.n <= HK_SCORE_MESSAGE_MAX && m.scores.values);
  hk_scores_times(&m.scores, times);
  for (uint32_t i = 0; i < m.scores.n; i++) {
    uint32_t handle;
    memcpy(&handle, (const uint8_t *)m.scores.handles + i * sizeof handle, sizeof handle);
    require(handle < m.names.n && (!m.scores.states || ((const uint8_t *)m.scores.states)[i] <= HANKEL_PROVISIONAL_SCORE));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static uint8_t frames[MOST];
  look(data, size);
  const size_t n = framed(data, size, frames);
  look(frames, n);
  look_at_scores(data, size);
  look_at_scores(frames, n);
  return 0;
}
