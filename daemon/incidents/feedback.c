#include "daemon/incidents/feedback.h"
#include "daemon/base/grow.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MOST (1u << 18) /* of the strings of one */

static void feedback_drop(struct hk_feedback *f, uint32_t i)
{
  free((char *)(uintptr_t)f->list[i].sensors.data);
  memmove(&f->list[i], &f->list[i + 1], (--f->n - i) * sizeof *f->list);
}

void hk_feedback_free(struct hk_feedback *f)
{
  while (f->n > 0)
    feedback_drop(f, f->n - 1);
  free(f->list);
  *f = (struct hk_feedback){ 0 };
}

int hk_feedback_put(struct hk_feedback *f, const struct hk_feedback_said *said)
{
  struct hk_feedback_said *list = hk_grow(f->list, f->n, &f->room, sizeof *list, 16);
  if (!list)
    return -ENOMEM;
  f->list = list;
  char *strings = malloc(said->sensors.length + said->text.length + 1);
  if (!strings)
    return -ENOMEM;
  memcpy(strings, said->sensors.data, said->sensors.length);
  memcpy(strings + said->sensors.length, said->text.data, said->text.length);
  struct hk_feedback_said *s = &f->list[f->n++];
  *s = *said;
  s->sensors.data = strings;
  s->text.data = strings + said->sensors.length;
  return 0;
}

/* Sensors are silent until then, or what was said of the incident is undone. */
static int64_t in_force(struct hk_incidents *all, const struct hk_feedback_said *s)
{
  const char *name = s->sensors.data, *end = name + s->sensors.length;
  int64_t until = 0;
  for (; name < end; name += strlen(name) + 1) {
    if (s->kind == HK_FEEDBACK_UNDONE)
      hk_incidents_speak(all, hk_string(name));
    else
      until = hk_incidents_silence(all, hk_string(name), s->rank);
  }
  return until;
}

/* What was said of an incident before another word about it. */
static void feedback_forget(struct hk_feedback *f, uint64_t incident, uint32_t before)
{
  for (uint32_t i = before; i-- > 0;)
    if (f->list[i].incident == incident && f->list[i].until != 0)
      feedback_drop(f, i);
}

void hk_feedback_apply(struct hk_feedback *f, struct hk_incidents *all, uint64_t seen)
{
  const int64_t now = hk_incidents_time(all);
  for (uint32_t i = 0; i < f->n;) {
    struct hk_feedback_said *s = &f->list[i];
    if (s->until == 0 && s->position <= seen) {
      const uint32_t was = f->n;
      s->until = in_force(all, s);
      if (s->until == 0) /* it was undone, or no sensor of it is known */
        s->until = INT64_MIN;
      feedback_forget(f, s->incident, i);
      i -= was - f->n;
      s = &f->list[i];
    }
    if (s->until != 0 && s->until <= now)
      feedback_drop(f, i);
    else
      i++;
  }
  while (f->n > HK_FEEDBACK_MOST)
    feedback_drop(f, 0);
}

const struct hk_feedback_said *hk_feedback_of(const struct hk_feedback *f, uint64_t incident)
{
  for (uint32_t i = f->n; i-- > 0;)
    if (f->list[i].incident == incident)
      return f->list[i].kind != HK_FEEDBACK_UNDONE ? &f->list[i] : NULL;
  return NULL;
}

const char *hk_feedback_word(uint32_t kind)
{
  static const char *const words[] = { "", "expected", "false", "undone" };
  return words[kind];
}

static uint32_t feedback_count(struct hk_string names)
{
  uint32_t n = 0;
  for (size_t i = 0; i < names.length; i++)
    n += names.data[i] == 0;
  return n;
}

void hk_feedback_show(const struct hk_feedback *f, struct hk_buffer *out)
{
  bool first = true;
  for (uint32_t i = f->n; i-- > 0;) {
    const struct hk_feedback_said *s = &f->list[i];
    if (s->until <= 0)
      continue;
    hk_buffer_print(out, "%s{\"incident\":%" PRIu64 ",\"kind\":\"%s\",\"rank\":%.3f,\"until\":%" PRId64 ",\"sensor\":",
                    first ? "" : ",", s->incident, hk_feedback_word(s->kind), s->rank, s->until);
    hk_json_string(out, s->sensors.data, strlen(s->sensors.data));
    hk_buffer_print(out, ",\"count\":%" PRIu32 ",\"text\":", feedback_count(s->sensors));
    hk_json_string(out, s->text.data, s->text.length);
    hk_buffer_put(out, "}", 1);
    first = false;
  }
}

/* --- image: how many, then of each this and its strings; the machine is little-endian -------------------------------------- */

struct written {
  uint64_t position, incident;
  int64_t until;
  double rank;
  uint32_t kind, sensors, text, zero;
};

void hk_feedback_write(const struct hk_feedback *f, struct hk_buffer *out)
{
  const uint64_t n = f->n;
  hk_buffer_put(out, (const char *)&n, sizeof n);
  for (uint32_t i = 0; i < f->n; i++) {
    const struct hk_feedback_said *s = &f->list[i];
    const struct written w = {
      s->position, s->incident, s->until, s->rank, s->kind, (uint32_t)s->sensors.length, (uint32_t)s->text.length, 0
    };
    hk_buffer_put(out, (const char *)&w, sizeof w);
    hk_buffer_put(out, s->sensors.data, s->sensors.length + s->text.length);
  }
}

size_t hk_feedback_read(struct hk_feedback *f, const char *image, size_t size)
{
  uint64_t n;
  size_t at = sizeof n;
  if (size < sizeof n)
    return 0;
  memcpy(&n, image, sizeof n);
  for (uint64_t i = 0; i < n; i++) {
    struct written w;
    if (size - at < sizeof w)
      return 0;
    memcpy(&w, image + at, sizeof w);
    at += sizeof w;
    const uint64_t bytes = (uint64_t)w.sensors + w.text;
    const char *strings = image + at;
    if (bytes > size - at || bytes > BYTES_MOST || w.sensors == 0 || strings[w.sensors - 1] != 0 || strings[0] == 0 ||
        !isfinite(w.rank) || w.kind < HK_FEEDBACK_EXPECTED || w.kind > HK_FEEDBACK_UNDONE || w.incident == 0 || w.zero != 0)
      return 0;
    const struct hk_feedback_said s = { .position = w.position,
                                        .incident = w.incident,
                                        .until = w.until,
                                        .rank = w.rank,
                                        .kind = w.kind,
                                        .sensors = { strings, w.sensors },
                                        .text = { strings + w.sensors, w.text } };
    if (hk_feedback_put(f, &s) != 0)
      return 0;
    at += bytes;
  }
  return at;
}
