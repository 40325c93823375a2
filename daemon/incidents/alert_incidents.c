#include "daemon/incidents/alert_incidents.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 64u

void hk_alert_incidents_free(struct hk_alert_incidents *a)
{
  free(a->place);
  *a = (struct hk_alert_incidents){ 0 };
}

/* Where an alert is, or would be. */
static uint32_t alert_incidents_place_of(const struct hk_alert_incidents *a, uint64_t alert)
{
  uint32_t i = (uint32_t)((alert * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (a->size - 1);
  while (a->place[i].alert != 0 && a->place[i].alert != alert)
    i = (i + 1) & (a->size - 1);
  return i;
}

static bool alert_incidents_grow(struct hk_alert_incidents *a)
{
  struct hk_alert_incidents grown = { .n = a->n, .size = a->size ? 2 * a->size : LEAST };
  if (a->n >= HK_ALERT_INCIDENTS_MOST || !(grown.place = calloc(grown.size, sizeof *grown.place)))
    return false;
  for (uint32_t i = 0; i < a->size; i++)
    if (a->place[i].alert != 0)
      grown.place[alert_incidents_place_of(&grown, a->place[i].alert)] = a->place[i];
  free(a->place);
  *a = grown;
  return true;
}

void hk_alert_incidents_put(struct hk_alert_incidents *a, uint64_t alert, uint64_t incident)
{
  if (2 * (a->n + 1) > a->size && !alert_incidents_grow(a) && a->n + 1 >= a->size)
    return;
  struct hk_alert_incident *p = &a->place[alert_incidents_place_of(a, alert)];
  a->n += p->alert == 0;
  *p = (struct hk_alert_incident){ alert, incident };
}

uint64_t hk_alert_incidents_take(struct hk_alert_incidents *a, uint64_t alert)
{
  if (a->n == 0 || alert == 0)
    return 0;
  uint32_t free_one = alert_incidents_place_of(a, alert);
  const uint64_t incident = a->place[free_one].incident;
  if (a->place[free_one].alert == 0)
    return 0;
  a->place[free_one] = (struct hk_alert_incident){ 0 };
  a->n--;
  for (uint32_t i = (free_one + 1) & (a->size - 1); a->place[i].alert != 0; i = (i + 1) & (a->size - 1)) {
    const struct hk_alert_incident moved = a->place[i]; /* those behind it are looked for from where they belong */
    a->place[i] = (struct hk_alert_incident){ 0 };
    a->place[alert_incidents_place_of(a, moved.alert)] = moved;
  }
  return incident;
}

static int by_incident(const void *x, const void *y)
{
  const struct hk_incident_merge *a = x, *b = y;
  return (a->incident > b->incident) - (a->incident < b->incident);
}

void hk_merges_sort(struct hk_incident_merge *merges, uint32_t n)
{
  if (n > 1)
    qsort(merges, n, sizeof *merges, by_incident);
}

uint64_t hk_merges_resolve(const struct hk_incident_merge *merges, uint32_t n, uint64_t incident)
{
  struct hk_incident_merge key = { incident, 0 };
  const struct hk_incident_merge *found;
  while (n > 0 && (found = bsearch(&key, merges, n, sizeof *merges, by_incident)) != NULL)
    key.incident = found->into; /* an older one, always */
  return key.incident;
}

void hk_alert_incidents_merge(struct hk_alert_incidents *a, const struct hk_incident_merge *merges, uint32_t n)
{
  for (uint32_t i = 0; n > 0 && i < a->size; i++)
    if (a->place[i].alert != 0)
      a->place[i].incident = hk_merges_resolve(merges, n, a->place[i].incident);
}

static int by_alert(const void *x, const void *y)
{
  const struct hk_alert_incident *a = x, *b = y;
  return (a->alert > b->alert) - (a->alert < b->alert);
}

/* By alert, so that the image is that of what is in it. */
void hk_alert_incidents_write(const struct hk_alert_incidents *a, struct hk_buffer *out)
{
  const uint64_t n = a->n;
  hk_buffer_put(out, (const char *)&n, sizeof n);
  const size_t begin = out->size;
  for (uint32_t i = 0; i < a->size; i++)
    if (a->place[i].alert != 0)
      hk_buffer_put(out, (const char *)&a->place[i], sizeof a->place[i]);
  if (n > 1 && !out->failed)
    qsort(out->data + begin, n, sizeof *a->place, by_alert);
}

size_t hk_alert_incidents_read(struct hk_alert_incidents *a, const char *image, size_t size)
{
  uint64_t n, before = 0;
  if (size < sizeof n)
    return 0;
  memcpy(&n, image, sizeof n);
  if (n > (size - sizeof n) / sizeof *a->place || n > HK_ALERT_INCIDENTS_MOST)
    return 0;
  for (uint64_t i = 0; i < n; i++) {
    struct hk_alert_incident one;
    memcpy(&one, image + sizeof n + i * sizeof one, sizeof one);
    if (one.alert <= before || one.incident == 0)
      return 0;
    before = one.alert;
    hk_alert_incidents_put(a, one.alert, one.incident);
  }
  return sizeof n + n * sizeof *a->place;
}
