#include "daemon/incidents/ticks.h"
#include "daemon/base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hk_ticks {
  struct hk_incidents *incidents;
  hk_tick_joined *joined;
  void *arg;
  struct hk_tick_event *list; /* names are the list's own */
  uint32_t n, room;
  int64_t earliest; /* of the list */
  struct hk_alert_incidents alerts;
};

int hk_ticks_new(struct hk_ticks **out, struct hk_incidents *incidents, hk_tick_joined *joined, void *arg)
{
  struct hk_ticks *t = calloc(1, sizeof *t);
  if (!t)
    return -ENOMEM;
  t->incidents = incidents;
  t->joined = joined;
  t->arg = arg;
  *out = t;
  return 0;
}

void hk_ticks_free(struct hk_ticks *t)
{
  if (!t)
    return;
  for (uint32_t i = 0; i < t->n; i++)
    free((char *)(uintptr_t)t->list[i].name.data);
  free(t->list);
  hk_alert_incidents_free(&t->alerts);
  free(t);
}

static bool ticks_has_room(struct hk_ticks *t)
{
  struct hk_tick_event *list = hk_grow(t->list, t->n, &t->room, sizeof *list, 64);
  if (!list)
    return false;
  t->list = list;
  return true;
}

int hk_ticks_event(struct hk_ticks *t, const struct hk_tick_event *e)
{
  char *copy = malloc(e->name.length + 1 + e->what.length);
  if (!copy || !ticks_has_room(t)) {
    free(copy);
    return -ENOMEM;
  }
  memcpy(copy, e->name.data, e->name.length);
  copy[e->name.length] = 0;
  t->list[t->n] = *e;
  if (e->what.length > 0)
    memcpy(copy + e->name.length + 1, e->what.data, e->what.length);
  t->list[t->n].what.data = copy + e->name.length + 1;
  t->list[t->n++].name.data = copy;
  t->earliest = t->n == 1 || e->time < t->earliest ? e->time : t->earliest;
  return 0;
}

static int ticks_earlier_first(const void *a, const void *b)
{
  const struct hk_tick_event *x = a, *y = b;
  if (x->time != y->time)
    return (x->time > y->time) - (x->time < y->time);
  const int names = strcmp(x->name.data, y->name.data);
  if (names != 0)
    return names;
  if (x->channel != y->channel)
    return (x->channel > y->channel) - (x->channel < y->channel);
  if (x->ends != y->ends) /* one alert of a channel may end and the next begin with one point, or the other way round */
    return x->position != y->position ? (x->position > y->position) - (x->position < y->position) : x->ends - y->ends;
  if (x->instant != y->instant)
    return (x->instant > y->instant) - (x->instant < y->instant);
  return (x->severity > y->severity) - (x->severity < y->severity);
}

/* Tells the incidents of an event. False: it is lost there. */
static bool tell_one(struct hk_ticks *t, const struct hk_tick_event *e)
{
  uint64_t incident = 0;
  bool good = true;
  if (e->ends) {
    incident = hk_alert_incidents_take(&t->alerts, e->alert);
  } else {
    hk_incidents_hear(t->incidents, e->reached);
    good = hk_incidents_event(t->incidents, e->time, e->name, e->channel, e->severity, e->instant) == 0;
    incident = good ? hk_incidents_joined(t->incidents) : 0;
    hk_incidents_said(t->incidents, e->what);
    if (incident != 0 && e->alert != 0)
      hk_alert_incidents_put(&t->alerts, e->alert, incident);
  }
  if (incident != 0 && e->position != 0 && t->joined)
    t->joined(t->arg, e->position, incident);
  return good;
}

/* Tells the incidents of the first n that wait, but of those behind `seen`. Returns how many were lost. */
static uint32_t ticks_tell(struct hk_ticks *t, uint32_t n, uint64_t seen)
{
  uint32_t lost = 0, kept = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (t->list[i].position > seen) {
      t->list[kept++] = t->list[i];
      continue;
    }
    lost += !tell_one(t, &t->list[i]);
    free((char *)(uintptr_t)t->list[i].name.data);
  }
  memmove(t->list + kept, t->list + n, (t->n - n) * sizeof *t->list);
  t->n -= n - kept;
  t->earliest = t->n > 0 ? t->list[0].time : 0;
  return lost;
}

uint32_t hk_ticks_reach(struct hk_ticks *t, int64_t time, uint64_t seen)
{
  uint32_t n = 0, lost = 0;
  if (t->n > 0 && t->earliest < time) {
    qsort(t->list, t->n, sizeof *t->list, ticks_earlier_first);
    while (n < t->n && t->list[n].time < time)
      n++;
    lost = ticks_tell(t, n, seen);
  }
  hk_incidents_reach(t->incidents, time);
  return lost;
}

uint32_t hk_ticks_finish(struct hk_ticks *t)
{
  if (t->n > 0)
    qsort(t->list, t->n, sizeof *t->list, ticks_earlier_first);
  const uint32_t lost = t->n > 0 ? ticks_tell(t, t->n, UINT64_MAX) : 0;
  hk_incidents_finish(t->incidents);
  return lost;
}

/* Only the first `kept` of the list are left. */
static void ticks_keep(struct hk_ticks *t, uint32_t kept)
{
  t->n = kept;
  t->earliest = INT64_MAX;
  for (uint32_t i = 0; i < kept; i++)
    t->earliest = t->list[i].time < t->earliest ? t->list[i].time : t->earliest;
}

void hk_ticks_drop(struct hk_ticks *t, uint64_t upto)
{
  uint32_t kept = 0;
  for (uint32_t i = 0; i < t->n; i++) {
    if (t->list[i].position > upto)
      t->list[kept++] = t->list[i];
    else
      free((char *)(uintptr_t)t->list[i].name.data);
  }
  ticks_keep(t, kept);
}

bool hk_ticks_pass(struct hk_ticks *t, struct hk_ticks *to, hk_tick_named *named, void *arg)
{
  uint32_t kept = 0;
  bool good = true;
  for (uint32_t i = 0; i < t->n; i++) {
    if (!named(arg, t->list[i].position)) {
      t->list[kept++] = t->list[i];
      continue;
    }
    good &= hk_ticks_event(to, &t->list[i]) == 0;
    free((char *)(uintptr_t)t->list[i].name.data);
  }
  ticks_keep(t, kept);
  return good;
}

void hk_ticks_merged(struct hk_ticks *t, const struct hk_incident_merge *merges, uint32_t n)
{
  hk_alert_incidents_merge(&t->alerts, merges, n);
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

int64_t hk_ticks_earliest(const struct hk_ticks *t)
{
  return t->n > 0 ? t->earliest : INT64_MAX;
}

uint64_t hk_ticks_first(const struct hk_ticks *t)
{
  uint64_t first = UINT64_MAX;
  for (uint32_t i = 0; i < t->n; i++)
    first = t->list[i].position < first ? t->list[i].position : first;
  return first;
}

/* --- image: the alerts, then of each event this, its name, what it says, and `reached`; the machine is little-endian ---------
 */

struct written {
  uint64_t position, alert;
  int64_t time, instant;
  double severity;
  uint32_t channel, length, flags, said;
};
enum {
  ENDS = 1,
  REACHED = 2
}; /* flags; `reached` is there with the second alone, so it is not in images from before it existed */

void hk_ticks_write(const struct hk_ticks *t, struct hk_buffer *out)
{
  hk_alert_incidents_write(&t->alerts, out);
  for (uint32_t i = 0; i < t->n; i++) {
    const struct hk_tick_event *e = &t->list[i];
    const struct written w = { e->position,
                               e->alert,
                               e->time,
                               e->instant,
                               e->severity,
                               e->channel,
                               (uint32_t)e->name.length,
                               (e->ends ? ENDS : 0) | (e->reached != 0 ? REACHED : 0),
                               (uint32_t)e->what.length };
    hk_buffer_put(out, (const char *)&w, sizeof w);
    hk_buffer_put(out, e->name.data, e->name.length);
    hk_buffer_put(out, e->what.data, e->what.length);
    hk_buffer_put(out, (const char *)&e->reached, e->reached != 0 ? sizeof e->reached : 0);
  }
}

int hk_ticks_read(struct hk_ticks *t, const char *image, size_t size)
{
  const size_t alerts = hk_alert_incidents_read(&t->alerts, image, size);
  if (alerts == 0)
    return -EBADMSG;
  image += alerts;
  size -= alerts;
  while (size > 0) {
    struct written w;
    if (size < sizeof w)
      return -EBADMSG;
    memcpy(&w, image, sizeof w);
    image += sizeof w;
    size -= sizeof w;
    if (w.length == 0 || w.length > HK_FLEET_NAME_MOST || w.length > size || memchr(image, 0, w.length) ||
        w.flags > (ENDS | REACHED) || w.said > HK_INCIDENT_SAID || w.said > size - w.length)
      return -EBADMSG;
    const size_t text = w.length + w.said;
    int64_t reached = 0;
    const size_t of_reached = w.flags & REACHED ? sizeof reached : 0;
    if (of_reached > size - text)
      return -EBADMSG;
    memcpy(&reached, image + text, of_reached);
    const struct hk_tick_event e = { w.position,
                                     w.alert,
                                     w.time,
                                     w.instant,
                                     reached,
                                     w.severity,
                                     w.channel,
                                     (w.flags & ENDS) != 0,
                                     { image, w.length },
                                     { image + w.length, w.said } };
    const int status = hk_ticks_event(t, &e);
    if (status != 0)
      return status;
    image += text + of_reached;
    size -= text + of_reached;
  }
  return 0;
}
