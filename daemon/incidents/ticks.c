#include "daemon/incidents/ticks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct waiting {
  int64_t time, instant;
  double severity;
  uint32_t channel, length;
  char *name;
};

struct hk_ticks {
  struct hk_incidents *incidents;
  struct waiting *list;
  uint32_t n, room;
  int64_t earliest; /* of the list */
};

int hk_ticks_new(struct hk_ticks **out, struct hk_incidents *incidents)
{
  struct hk_ticks *t = calloc(1, sizeof *t);
  if (!t)
    return -ENOMEM;
  t->incidents = incidents;
  *out = t;
  return 0;
}

void hk_ticks_free(struct hk_ticks *t)
{
  if (!t)
    return;
  for (uint32_t i = 0; i < t->n; i++)
    free(t->list[i].name);
  free(t->list);
  free(t);
}

static bool has_room(struct hk_ticks *t)
{
  if (t->n < t->room)
    return true;
  const uint32_t room = t->room ? 2 * t->room : 64;
  struct waiting *list = realloc(t->list, room * sizeof *list);
  if (!list)
    return false;
  t->list = list;
  t->room = room;
  return true;
}

int hk_ticks_event(struct hk_ticks *t, int64_t time, struct hk_string name, uint32_t channel, double severity, int64_t instant)
{
  char *copy = malloc(name.length + 1);
  if (!copy || !has_room(t)) {
    free(copy);
    return -ENOMEM;
  }
  memcpy(copy, name.data, name.length);
  copy[name.length] = 0;
  t->list[t->n++] = (struct waiting){ time, instant, severity, channel, (uint32_t)name.length, copy };
  t->earliest = t->n == 1 || time < t->earliest ? time : t->earliest;
  return 0;
}

static int earlier_first(const void *a, const void *b)
{
  const struct waiting *x = a, *y = b;
  if (x->time != y->time)
    return (x->time > y->time) - (x->time < y->time);
  const int names = strcmp(x->name, y->name);
  if (names != 0)
    return names;
  if (x->channel != y->channel)
    return (x->channel > y->channel) - (x->channel < y->channel);
  if (x->instant != y->instant)
    return (x->instant > y->instant) - (x->instant < y->instant);
  return (x->severity > y->severity) - (x->severity < y->severity);
}

/* Tells the incidents of the first n that wait. Returns how many were lost. */
static uint32_t tell(struct hk_ticks *t, uint32_t n)
{
  uint32_t lost = 0;
  for (uint32_t i = 0; i < n; i++) {
    const struct waiting *w = &t->list[i];
    const struct hk_string name = { w->name, w->length };
    lost += hk_incidents_event(t->incidents, w->time, name, w->channel, w->severity, w->instant) != 0;
    free(w->name);
  }
  t->n -= n;
  memmove(t->list, t->list + n, t->n * sizeof *t->list);
  t->earliest = t->n > 0 ? t->list[0].time : 0;
  return lost;
}

uint32_t hk_ticks_reach(struct hk_ticks *t, int64_t time)
{
  uint32_t n = 0, lost = 0;
  if (t->n > 0 && t->earliest < time) {
    qsort(t->list, t->n, sizeof *t->list, earlier_first);
    while (n < t->n && t->list[n].time < time)
      n++;
    lost = tell(t, n);
  }
  hk_incidents_reach(t->incidents, time);
  return lost;
}

uint32_t hk_ticks_finish(struct hk_ticks *t)
{
  if (t->n > 0)
    qsort(t->list, t->n, sizeof *t->list, earlier_first);
  const uint32_t lost = t->n > 0 ? tell(t, t->n) : 0;
  hk_incidents_finish(t->incidents);
  return lost;
}

uint32_t hk_ticks_waiting(const struct hk_ticks *t)
{
  return t->n;
}

int64_t hk_ticks_newest(const struct hk_ticks *t)
{
  int64_t newest = INT64_MIN;
  for (uint32_t i = 0; i < t->n; i++)
    newest = t->list[i].time > newest ? t->list[i].time : newest;
  return newest;
}

/* --- image: of each event this, then its name; the machine is little-endian ------------------------------------------------ */

struct written {
  int64_t time, instant;
  double severity;
  uint32_t channel, length;
};

void hk_ticks_write(const struct hk_ticks *t, struct hk_buffer *out)
{
  for (uint32_t i = 0; i < t->n; i++) {
    const struct waiting *e = &t->list[i];
    const struct written w = { e->time, e->instant, e->severity, e->channel, e->length };
    hk_buffer_put(out, (const char *)&w, sizeof w);
    hk_buffer_put(out, e->name, e->length);
  }
}

int hk_ticks_read(struct hk_ticks *t, const char *image, size_t size)
{
  while (size > 0) {
    struct written w;
    if (size < sizeof w)
      return -EBADMSG;
    memcpy(&w, image, sizeof w);
    image += sizeof w;
    size -= sizeof w;
    if (w.length == 0 || w.length > HK_FLEET_NAME_MOST || w.length > size || memchr(image, 0, w.length))
      return -EBADMSG;
    const struct hk_string name = { image, w.length };
    const int status = hk_ticks_event(t, w.time, name, w.channel, w.severity, w.instant);
    if (status != 0)
      return status;
    image += w.length;
    size -= w.length;
  }
  return 0;
}
