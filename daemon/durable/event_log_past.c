#include "daemon/durable/event_log_past.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

int hk_past_open(struct hk_past *p)
{
  return getrandom(p->secret, sizeof p->secret, 0) == (ssize_t)sizeof p->secret ? 0 : -EIO;
}

void hk_past_free(struct hk_past *p)
{
  free(p->reached);
  p->reached = NULL;
  p->n = p->size = 0;
}

/* Keyed with a secret, so that no peer can prepare colliding names. */
static uint64_t event_log_past_key_of(const struct hk_past *p, uint32_t handle, struct hk_string name)
{
  const uint64_t both[2] = { XXH3_64bits_withSecret(name.data, name.length, p->secret, sizeof p->secret), handle };
  const uint64_t key = XXH3_64bits_withSecret(both, sizeof both, p->secret, sizeof p->secret);
  return key ? key : 1;
}

static struct hk_past_reached *event_log_past_place_of(const struct hk_past *p, uint64_t key)
{
  uint64_t i = key & (p->size - 1);
  while (p->reached[i].key != 0 && p->reached[i].key != key)
    i = (i + 1) & (p->size - 1);
  return &p->reached[i];
}

int hk_past_reach(struct hk_past *p, const struct hk_logged *e)
{
  if (2 * (p->n + 1) > p->size) {
    struct hk_past grown = { .size = p->size ? 2 * p->size : 256 };
    if (!(grown.reached = calloc(grown.size, sizeof *grown.reached)))
      return -ENOMEM;
    for (uint64_t i = 0; i < p->size; i++)
      if (p->reached[i].key != 0)
        *event_log_past_place_of(&grown, p->reached[i].key) = p->reached[i];
    free(p->reached);
    p->reached = grown.reached;
    p->size = grown.size;
  }
  struct hk_past_reached *r = event_log_past_place_of(p, event_log_past_key_of(p, e->handle, e->name));
  p->n += r->key == 0;
  r->key = event_log_past_key_of(p, e->handle, e->name);
  r->sequence = e->sequence;
  if (e->event.kind != HK_EVENT_ACKNOWLEDGED) {
    r->number = e->event.number;
    r->time = e->event.time;
    r->open = e->event.kind == HK_EVENT_RAISED || e->event.kind == HK_EVENT_CORRECTED ? e->position : 0;
  } else {
    r->noted = e->event.number;
    r->when = e->event.time;
    snprintf(r->by, sizeof r->by, "%.*s", (int)e->by.length, e->by.data);
  }
  return 0;
}

bool hk_past_noted(const struct hk_past *p, uint32_t handle, struct hk_string name, struct hk_logged *out)
{
  const struct hk_past_reached *r = p->reached ? event_log_past_place_of(p, event_log_past_key_of(p, handle, name)) : NULL;
  if (!r || r->noted == 0)
    return false;
  *out = (struct hk_logged){ .by = hk_string(r->by), .event = { .number = r->noted, .time = r->when } };
  return true;
}

const struct hk_past_reached *hk_past_look(const struct hk_past *p, uint32_t handle, struct hk_string name)
{
  const struct hk_past_reached *r = p->reached ? event_log_past_place_of(p, event_log_past_key_of(p, handle, name)) : NULL;
  return r && r->key != 0 ? r : NULL;
}

struct hk_eventlog_past hk_past_find(const struct hk_past *p, uint32_t handle, struct hk_string name)
{
  if (!p->reached)
    return (struct hk_eventlog_past){ 0 };
  const struct hk_past_reached *r = event_log_past_place_of(p, event_log_past_key_of(p, handle, name));
  return (struct hk_eventlog_past){ r->sequence, r->open, r->number };
}
