#include "daemon/cli/incident_report.h"

#include "daemon/cli/format.h"
#include "daemon/cli/options.h"
#include "daemon/config/incidents_rule.h"
#include "daemon/incidents/fleet_tail.h"
#include "daemon/incidents/incident_text.h"
#include "daemon/incidents/ticks.h"
#include "daemon/sensors/event_sentence.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 33 /* between times of lines, of which the interval is the median */
#define SECOND INT64_C(1000000000)

struct hk_report {
  char **argv;
  const struct hk_recordings *csv;
  struct hk_incidents_rules rules; /* interval 0: not known */
  struct hk_incidents *incidents;  /* NULL before the first event */
  struct hk_ticks *ticks;
  struct hk_incident_day day;
  struct hk_buffer line;
  int64_t steps[STEPS], last;
  uint32_t n_steps, lost;
  double gravest; /* of those that were withheld */
  bool json, begun;
};

int hk_report_budget(char **argv, const char *text, struct hk_report_rules *rules)
{
  rules->wanted = true;
  if (hk_budget_parse(text, &rules->a_day) != 0)
    return hk_usage(argv, "--budget %s is no number of messages a day from 0 to 1000000, such as 10/day", text);
  return 0;
}

int hk_report_interval(char **argv, const char *text, struct hk_report_rules *rules)
{
  double seconds = 0;
  const int code = hk_option_real(argv, "--interval", text, 1e-6, 86400, &seconds);
  rules->interval = (int64_t)llround(seconds * (double)SECOND);
  return code;
}

int hk_report_new(struct hk_report **out, char **argv, const struct hk_report_rules *rules, const struct hk_recordings *csv,
                  bool json)
{
  struct hk_report *r = calloc(1, sizeof *r);
  if (!r)
    return hk_failed(argv, "out of memory");
  r->argv = argv;
  r->csv = csv;
  r->rules = (struct hk_incidents_rules){ .a_day = rules->a_day, .interval = rules->interval };
  r->json = json;
  *out = r;
  return 0;
}

void hk_report_free(struct hk_report *r)
{
  if (!r)
    return;
  hk_ticks_free(r->ticks);
  hk_incidents_free(r->incidents);
  hk_buffer_free(&r->line);
  free(r);
}

/* --- decisions ---------------------------------------------------------------------------------------------------------- */

static void incident_report_print(struct hk_report *r, const struct hk_incident_news *news)
{
  r->line.size = 0;
  (r->json ? hk_incident_json : hk_incident_sentence)(&r->line, news);
  hk_buffer_put(&r->line, "", 1);
  if (r->line.failed) {
    fprintf(stderr, "hankel %s: no memory to publish that incident %" PRIu64 "\n", r->argv[0], news->incident->id);
    hk_buffer_free(&r->line);
  } else if (r->json) {
    fputs(r->line.data, stdout);
  } else {
    hk_print_name(stdout, r->line.data);
    putchar('\n');
  }
}

static void incident_report_decided(void *arg, int64_t time, enum hk_incident_decision decision,
                                    const struct hk_incident *incident, const struct hk_incident *into, double threshold)
{
  struct hk_report *r = arg;
  const bool over = decision == HK_INCIDENT_CLOSED;
  hk_incident_day_count(&r->day, time, decision, incident);
  if (over && !incident->told)
    r->gravest = fmax(r->gravest, incident->R);
  if ((over && !r->json) || decision == HK_INCIDENT_ABSORBED)
    return;
  const struct hk_incident_news news = { r->incidents, incident, into, &r->day, time, threshold, decision, { "", 0 } };
  incident_report_print(r, &news);
}

/* --- the interval ------------------------------------------------------------------------------------------------------- */

void hk_report_row(struct hk_report *r, int64_t time)
{
  if (r->begun && time > r->last && r->n_steps < STEPS)
    r->steps[r->n_steps++] = time - r->last;
  if (!r->begun || time > r->last)
    r->last = time;
  r->begun = true;
}

static int shorter_first(const void *a, const void *b)
{
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t usual_step(struct hk_report *r)
{
  if (r->n_steps == 0)
    return SECOND;
  qsort(r->steps, r->n_steps, sizeof *r->steps, shorter_first);
  const int64_t step = r->steps[r->n_steps / 2];
  return step < HK_DAY ? step : HK_DAY;
}

/* --- events ------------------------------------------------------------------------------------------------------------- */

/* 0 or a negative errno. */
static int incident_report_begin(struct hk_report *r)
{
  const uint32_t sensors = hk_recording_sensors(r->csv);
  if (r->rules.interval == 0)
    r->rules.interval = usual_step(r);
  int status = hk_incidents_new(&r->incidents, &r->rules, incident_report_decided, r);
  for (uint32_t s = 0; s < sensors && status == 0; s++)
    status = hk_incidents_learn(r->incidents, hk_string(hk_recording_sensor(r->csv, s)), NULL, 0);
  if (status != 0)
    return status;
  hk_incidents_sensors(r->incidents, sensors);
  return hk_ticks_new(&r->ticks, r->incidents, NULL, NULL);
}

void hk_report_reach(struct hk_report *r, int64_t time)
{
  if (r->ticks)
    r->lost += hk_ticks_reach(r->ticks, time, UINT64_MAX);
}

int hk_report_event(struct hk_report *r, const char *sensor, const struct hk_event *e)
{
  if (e->kind != HK_EVENT_RAISED && e->kind != HK_EVENT_CORRECTED)
    return 0;
  const int status = r->ticks ? 0 : incident_report_begin(r);
  char what[HK_EVENT_SAID];
  const struct hk_tick_event of = { .time = e->time,
                                    .instant = e->instant,
                                    .severity = (double)e->severity,
                                    .channel = e->channel,
                                    .name = hk_string(sensor),
                                    .what = { what, hk_event_said(e, "", what) } };
  return status != 0 ? status : hk_ticks_event(r->ticks, &of);
}

void hk_report_finish(struct hk_report *r)
{
  struct hk_incidents_counts c = { 0 };
  if (r->ticks) {
    r->lost += hk_ticks_finish(r->ticks);
    c = hk_incidents_count(r->incidents);
  }
  fprintf(stderr, "hankel %s: %" PRIu64 " event%s; incidents: %" PRIu64 " told, %" PRIu64 " withheld", r->argv[0], c.events,
          c.events == 1 ? "" : "s", c.told, c.withheld);
  if (c.withheld > 0)
    fprintf(stderr, " (gravest R %.2f)", r->gravest);
  if (r->lost > 0)
    fprintf(stderr, "; %u events are left out for lack of room", r->lost);
  fputc('\n', stderr);
}
