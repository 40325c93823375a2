#include "daemon/incidents/incidents_internal.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define REPEATED 1.0 /* R by which what was told is to be exceeded to be told again */
#define GRAVER 2.0   /* R by which a message is to be exceeded for an update, */
#define MORE 3u      /* or so many times its sensors */
#define UPDATES 3u
#define QUIET (7 * HK_DAY) /* that people's words keep a sensor silent */

int hk_incidents_new(struct hk_incidents **out, const struct hk_incidents_rules *rules, hk_incident_decided *decided, void *arg)
{
  if (!(rules->a_day >= 0) || !isfinite(rules->a_day) || rules->interval <= 0 || rules->interval > HK_DAY)
    return -EINVAL;
  struct hk_incidents *all = calloc(1, sizeof *all);
  if (!all)
    return -ENOMEM;
  const int status = hk_fleet_names_init(&all->names, rules->most_names);
  if (status != 0) {
    free(all);
    return status;
  }
  all->rules = *rules;
  if (all->rules.most_members == 0)
    all->rules.most_members = HK_INCIDENT_MEMBERS;
  all->decided = decided;
  all->arg = arg;
  hk_tail_init(&all->tail, rules->interval);
  hk_budget_init(&all->budget, rules->a_day);
  *out = all;
  return 0;
}

void hk_incidents_free(struct hk_incidents *all)
{
  if (!all)
    return;
  for (struct hk_incident *i = all->oldest, *next; i; i = next) {
    next = i->newer;
    free(i);
  }
  free(all->ends.of);
  free(all->judged);
  free(all->log_factorials);
  hk_fleet_names_free(&all->names);
  free(all);
}

void hk_incidents_each(const struct hk_incidents *all, void (*one)(void *arg, const struct hk_incident *incident), void *arg)
{
  for (const struct hk_incident *i = all->oldest; i; i = i->newer)
    one(arg, i);
}

/* --- open ones ---------------------------------------------------------------------------------------------------------- */

void hk_incident_link(struct hk_incidents *all, struct hk_incident *i)
{
  i->newer = NULL;
  i->older = all->newest;
  *(all->newest ? &all->newest->newer : &all->oldest) = i;
  all->newest = i;
  hk_ends_put(&all->ends, &i->over, i->heard);
  all->counts.open++;
}

void hk_incident_unlink(struct hk_incidents *all, struct hk_incident *i)
{
  *(i->older ? &i->older->newer : &all->oldest) = i->newer;
  *(i->newer ? &i->newer->older : &all->newest) = i->older;
  hk_ends_take(&all->ends, &i->over);
  all->counts.open--;
}

void hk_incident_add(struct hk_incident *i, struct hk_fleet_sensor *m)
{
  m->incident = i;
  m->next = NULL;
  *i->end = m;
  i->end = &m->next;
  i->n++;
}

static struct hk_incident *open_one(struct hk_incidents *all, int64_t time)
{
  struct hk_incident *i = hk_ends_reserve(&all->ends) ? calloc(1, sizeof *i) : NULL;
  if (!i)
    return NULL;
  i->id = ++all->last_id;
  i->open = i->last = i->heard = time;
  i->own = -HK_INCIDENT_TIME_MOST;
  i->end = &i->members;
  i->counted = -1;
  hk_incident_link(all, i);
  all->counts.opened++;
  return i;
}

/* Its end is where the data had nothing more of it for so long, whenever that is noticed; at most this. */
static void close_one(struct hk_incidents *all, struct hk_incident *i, int64_t most)
{
  const int64_t over = i->last + HK_INCIDENT_HOLD * all->rules.interval, end = over < most ? over : most;
  hk_incident_unlink(all, i);
  all->counts.withheld += !i->told;
  all->decided(all->arg, end, HK_INCIDENT_CLOSED, i, NULL, 0);
  for (struct hk_fleet_sensor *m = i->members; m; m = m->next) {
    m->incident = NULL;
    free(m->what);
    m->what = NULL;
    all->counts.members--;
  }
  free(i);
}

/* --- judging ------------------------------------------------------------------------------------------------------------ */

static double scored(const struct hk_incidents *all)
{
  const uint32_t n = all->sensors > 0 ? all->sensors : all->names.n_sensors;
  return n > 0 ? n : 1;
}

static double incidents_rank(const struct hk_incident *i)
{
  return fmax(i->R, i->S + fmin(HK_INCIDENT_BONUS, fmax(0, i->company + HK_INCIDENT_ALPHA)));
}

/* Whether half of its sensors were told not long ago, with nearly as high a rank. */
static bool was_told(const struct hk_incident *i, int64_t time)
{
  double R = 0;
  uint32_t n = 0;
  for (const struct hk_fleet_sensor *m = i->members; m; m = m->next)
    if (m->told_R >= 0 && time < m->told_until) {
      R = n++ == 0 ? m->told_R : fmax(R, m->told_R);
    }
  return n > 0 && 2 * (uint64_t)n >= i->n && i->R < R + REPEATED;
}

static void incidents_tell(struct hk_incidents *all, struct hk_incident *i, double threshold)
{
  hk_budget_pay(&all->budget);
  i->told = true;
  i->told_at = all->time;
  i->told_R = i->R;
  i->told_n = i->n;
  for (struct hk_fleet_sensor *m = i->members; m; m = m->next) {
    m->told_until = all->time + HK_INCIDENT_REPEAT * all->rules.interval;
    m->told_R = i->R;
  }
  all->counts.told++;
  all->decided(all->arg, all->time, HK_INCIDENT_TOLD, i, NULL, threshold);
}

static void incidents_judge(struct hk_incidents *all, struct hk_incident *i)
{
  const double R = incidents_rank(i);
  i->touched = false;
  if (R > i->R || i->counted < 0) { /* a peak counts once in the tail, and moves up as it grows */
    if (i->counted >= 0)
      hk_tail_add(&all->tail, i->counted, -i->weight);
    i->R = i->counted = R;
    i->weight = all->tail.weight;
    hk_tail_add(&all->tail, R, i->weight);
  }
  if (i->told) {
    if ((i->R >= i->told_R + GRAVER || i->n >= MORE * (uint64_t)i->told_n) && i->updates < UPDATES) {
      i->told_R = i->R;
      i->told_n = i->n;
      i->updates++;
      all->counts.updates++;
      all->decided(all->arg, all->time, HK_INCIDENT_UPDATE, i, NULL, 0);
    }
    return;
  }
  const double threshold = hk_budget_threshold(&all->budget, &all->tail, scored(all));
  if (i->R >= threshold && !was_told(i, all->time))
    incidents_tell(all, i, threshold);
}

static int graver_first(const void *a, const void *b)
{
  const struct hk_incident *x = *(struct hk_incident *const *)a, *y = *(struct hk_incident *const *)b;
  const double rx = incidents_rank(x), ry = incidents_rank(y);
  return rx != ry ? (rx < ry) - (rx > ry) : (x->id > y->id) - (x->id < y->id);
}

/* The end of a tick. Those that it touched are the newest. */
static void end_tick(struct hk_incidents *all)
{
  uint32_t n = 0;
  for (struct hk_incident *i = all->newest; i && i->last == all->time; i = i->older)
    n += i->touched;
  if (n > all->judged_room) {
    struct hk_incident **judged = realloc(all->judged, 2 * (size_t)n * sizeof *judged);
    if (judged) {
      all->judged = judged;
      all->judged_room = 2 * n;
    }
  }
  const uint32_t most = all->judged_room;
  n = 0;
  for (struct hk_incident *i = all->newest; i && i->last == all->time && n < most; i = i->older) {
    if (i->touched)
      all->judged[n++] = i;
  }
  if (n > 1)
    qsort(all->judged, n, sizeof *all->judged, graver_first);
  for (uint32_t i = 0; i < n; i++)
    incidents_judge(all, all->judged[i]);
}

static int64_t incidents_within(int64_t time)
{
  return time > HK_INCIDENT_TIME_MOST ? HK_INCIDENT_TIME_MOST : time < -HK_INCIDENT_TIME_MOST ? -HK_INCIDENT_TIME_MOST : time;
}

/* The open incident that is over first, if it is by a time; NULL: none is. */
static struct hk_incident *incidents_over(const struct hk_incidents *all, int64_t time)
{
  struct hk_incident_end *first = hk_ends_first(&all->ends);
  const bool over = first && first->time < incidents_within(time) - HK_INCIDENT_HOLD * all->rules.interval;
  return over ? (struct hk_incident *)(void *)((char *)first - offsetof(struct hk_incident, over)) : NULL;
}

bool hk_incidents_expired(const struct hk_incidents *all, int64_t time)
{
  return incidents_over(all, time) != NULL;
}

void hk_incidents_expire(struct hk_incidents *all, int64_t time)
{
  for (struct hk_incident *i; (i = incidents_over(all, time)) != NULL;)
    close_one(all, i, INT64_MAX);
}

void hk_incidents_close(struct hk_incidents *all, uint64_t id)
{
  struct hk_incident *i = all->oldest;
  while (i && i->id != id)
    i = i->newer;
  if (i)
    close_one(all, i, INT64_MAX);
}

static void clock_to(struct hk_incidents *all, int64_t time)
{
  const double scale = hk_tail_clock(&all->tail, time, scored(all));
  for (struct hk_incident *i = all->oldest; i && scale > 1; i = i->newer)
    i->weight /= scale;
  hk_budget_clock(&all->budget, time);
  all->time = time;
  all->begun = true;
  hk_incidents_expire(all, time);
}

/* --- events ------------------------------------------------------------------------------------------------------------- */

int hk_incidents_learn(struct hk_incidents *all, struct hk_string name, const struct hk_string *groups, uint32_t n_groups)
{
  struct hk_fleet_sensor *s;
  return hk_fleet_learn(&all->names, name, groups, n_groups, &s);
}

void hk_incidents_sensors(struct hk_incidents *all, uint32_t sensors)
{
  all->sensors = sensors;
}

int64_t hk_incidents_silence(struct hk_incidents *all, struct hk_string name, double R)
{
  struct hk_fleet_sensor *s = hk_fleet_find(&all->names, name);
  if (!s || !isfinite(R))
    return 0;
  s->told_R = s->told_R >= 0 && all->time < s->told_until ? fmax(s->told_R, R) : R;
  s->told_until = (all->begun ? all->time : 0) + QUIET;
  return s->told_until;
}

void hk_incidents_speak(struct hk_incidents *all, struct hk_string name)
{
  struct hk_fleet_sensor *s = hk_fleet_find(&all->names, name);
  if (!s)
    return;
  s->told_R = -1;
  s->told_until = 0;
}

int64_t hk_incidents_time(const struct hk_incidents *all)
{
  return all->begun ? all->time : INT64_MIN;
}

const struct hk_incident *hk_incidents_open(const struct hk_incidents *all, struct hk_string name, uint64_t id)
{
  if (name.length > 0) {
    const struct hk_fleet_sensor *s = hk_fleet_find(&all->names, name);
    return s ? s->incident : NULL;
  }
  const struct hk_incident *i = all->oldest;
  while (i && i->id != id)
    i = i->newer;
  return i;
}

void hk_incidents_budget(struct hk_incidents *all, double a_day)
{
  all->rules.a_day = a_day;
  hk_budget_change(&all->budget, a_day);
}

/* The sensor begins an incident. 0, -ENOMEM or -ENOSPC. */
static int begin(struct hk_incidents *all, struct hk_fleet_sensor *s, int64_t instant)
{
  all->tail.raises += all->tail.weight;
  if (all->counts.members >= all->rules.most_members)
    return -ENOSPC;
  struct hk_incident *i = open_one(all, all->time);
  if (!i)
    return -ENOMEM;
  all->counts.members++;
  s->S = 0;
  s->raised = all->time;
  s->instant = incidents_within(instant);
  s->channels = 0;
  hk_incident_add(i, s);
  return 0;
}

void hk_incidents_hear(struct hk_incidents *all, int64_t reached)
{
  all->reached = reached;
}

/* A sensor's event of this time joins its incident, if it has one that its own data have not passed by a hold, whatever the time
 * of others' events. It ends no later than the present tick: an alert of others may have been after its last. */
static void leave_passed(struct hk_incidents *all, const struct hk_fleet_sensor *s, int64_t time)
{
  if (s->incident && time - s->incident->own > HK_INCIDENT_HOLD * all->rules.interval)
    close_one(all, s->incident, all->time);
}

/* An incident has an event of this time. */
static void incidents_joined(struct hk_incidents *all, struct hk_incident *i, int64_t time, int64_t reached)
{
  const bool late = reached != 0 && reached - time > HK_INCIDENT_WINDOW * all->rules.interval;
  const int64_t own = late ? time : all->time;
  i->last = all->time;
  i->own = own > i->own ? own : i->own;
  i->heard = late && reached > i->heard ? reached : i->heard;
  i->heard = i->last > i->heard ? i->last : i->heard;
  hk_incident_unlink(all, i);
  hk_incident_link(all, i);
  i->touched = true;
}

int hk_incidents_event(struct hk_incidents *all, int64_t time, struct hk_string name, uint32_t channel, double S, int64_t instant)
{
  const int64_t reached = incidents_within(all->reached);
  time = incidents_within(time);
  all->reached = 0;
  all->joined = 0;
  all->graver = NULL;
  if (!isfinite(S) || channel >= HK_INCIDENT_CHANNELS) {
    all->counts.not_finite++;
    return 0;
  }
  if (S < HK_TAIL_WEAKEST)
    return 0;
  const bool later = !all->begun || time > all->time;
  struct hk_fleet_sensor *s;
  if (later)
    end_tick(all);
  int status = hk_fleet_learn(&all->names, name, NULL, 0, &s);
  if (later)
    clock_to(all, time);
  if (status == 0)
    leave_passed(all, s, time);
  if (status == 0 && !s->incident)
    status = begin(all, s, instant);
  if (status != 0) {
    all->counts.unlisted++;
    return status;
  }
  S = fmin(S, HK_SEVERITY_MOST);
  all->counts.events++;
  s->channels |= 1u << channel;
  if (S > s->S) {
    s->S = S;
    s->strongest = (uint8_t)channel;
    all->graver = s;
    free(s->what); /* it was about a weaker one */
    s->what = NULL;
  }
  s->incident->S = fmax(s->incident->S, S);
  incidents_joined(all, s->incident, time, reached);
  if (s->raised >= all->time - HK_INCIDENT_WINDOW * all->rules.interval)
    hk_company_look(all, s);
  all->joined = s->incident->id;
  return 0;
}

void hk_incidents_said(struct hk_incidents *all, struct hk_string what)
{
  const size_t n = what.length < HK_INCIDENT_SAID ? what.length : HK_INCIDENT_SAID;
  if (!all->graver || n == 0)
    return;
  free(all->graver->what);
  all->graver->what = strndup(what.data, n);
}

uint64_t hk_incidents_joined(const struct hk_incidents *all)
{
  return all->joined;
}

uint64_t hk_incidents_last(const struct hk_incidents *all)
{
  return all->last_id;
}

void hk_incidents_go_on(struct hk_incidents *all, uint64_t id)
{
  all->last_id = id > all->last_id ? id : all->last_id;
}

void hk_incidents_reach(struct hk_incidents *all, int64_t time)
{
  if (all->begun && time > all->time)
    end_tick(all);
}

void hk_incidents_finish(struct hk_incidents *all)
{
  end_tick(all);
  while (all->oldest)
    close_one(all, all->oldest, INT64_MAX);
}

struct hk_incidents_counts hk_incidents_count(const struct hk_incidents *all)
{
  return all->counts;
}
