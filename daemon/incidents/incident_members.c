#include "daemon/incidents/incident_members.h"
#include "daemon/incidents/incidents_internal.h"

#include <stdlib.h>
#include <string.h>

const struct hk_fleet_sensor *hk_incident_strongest(const struct hk_incident *i)
{
  const struct hk_fleet_sensor *s = i->members;
  for (const struct hk_fleet_sensor *m = s; m; m = m->next)
    if (m->S > s->S)
      s = m;
  return s;
}

static int members_earlier_first(const void *a, const void *b)
{
  const struct hk_fleet_sensor *x = *(const struct hk_fleet_sensor *const *)a, *y = *(const struct hk_fleet_sensor *const *)b;
  if (x->raised != y->raised)
    return (x->raised > y->raised) - (x->raised < y->raised);
  if (x->instant != y->instant)
    return (x->instant > y->instant) - (x->instant < y->instant);
  return strcmp(x->leaf->name.data, y->leaf->name.data);
}

const struct hk_fleet_sensor **hk_incident_in_order(const struct hk_incident *i)
{
  const struct hk_fleet_sensor **by_time = malloc(i->n * sizeof *by_time);
  uint32_t n = 0;
  if (!by_time)
    return NULL;
  for (const struct hk_fleet_sensor *m = i->members; m; m = m->next)
    by_time[n++] = m;
  qsort(by_time, n, sizeof *by_time, members_earlier_first);
  return by_time;
}

const struct hk_fleet_sensor *hk_incident_first(const struct hk_incidents *all, const struct hk_incident *i,
                                                const struct hk_fleet_sensor **ties, uint32_t most, uint32_t *n_ties)
{
  const struct hk_fleet_sensor **by_time = hk_incident_in_order(i);
  const uint32_t n = i->n;
  uint32_t first = 0, best = 0;
  if (!by_time)
    return NULL;
  for (uint32_t a = 0, end = 0; a < n; a++) {
    while (end < n && by_time[end]->raised <= by_time[a]->raised + HK_INCIDENT_WINDOW * all->rules.interval)
      end++;
    if (end - a > best) {
      best = end - a;
      first = a;
    }
  }
  const struct hk_fleet_sensor *found = by_time[first];
  *n_ties = 0;
  for (uint32_t a = first + 1; a < n && by_time[a]->raised <= found->raised + all->rules.interval; a++) {
    if (*n_ties < most)
      ties[*n_ties] = by_time[a];
    ++*n_ties;
  }
  free(by_time);
  return found;
}
