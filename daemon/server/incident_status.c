#include "daemon/server/incident_status.h"

#include <inttypes.h>

static void put_counts(struct hk_buffer *out, const struct hk_watch_counts *c)
{
  hk_buffer_print(out, "\"budget\":%.10g,\"alerts\":%" PRIu64 ",\"open\":%" PRIu32 ",\"sensors\":%" PRIu32, c->budget, c->events,
                  c->open, c->members);
  hk_buffer_print(out, ",\"of\":%" PRIu32, c->scored);
  hk_buffer_print(out, ",\"told\":%" PRIu64 ",\"updates\":%" PRIu64 ",\"merged\":%" PRIu64 ",\"withheld\":%" PRIu64, c->told,
                  c->updates, c->merged, c->withheld);
  hk_buffer_print(out, ",\"told_today\":%" PRIu32 ",\"withheld_today\":%" PRIu32 ",\"gravest_today\":%.2f,\"unlisted\":%" PRIu64,
                  c->told_today, c->withheld_today, c->gravest_today, c->unlisted);
}

void hk_incident_status(struct hk_incident_watch *watch, struct hk_buffer *out)
{
  struct hk_watch_status w;
  hk_watch_status(watch, &w);
  hk_buffer_print(out, ",\"incidents\":{");
  put_counts(out, &w.all);
  hk_buffer_print(out, ",\"position\":%" PRIu64 ",\"sections\":[", w.position);
  for (uint32_t i = 0; i < w.n; i++) {
    hk_buffer_print(out, "%s{\"section\":\"%s\",\"gone\":%s,", i > 0 ? "," : "", w.section[i].name,
                    w.section[i].gone ? "true" : "false");
    put_counts(out, &w.section[i].counts);
    hk_buffer_put(out, "}", 1);
  }
  hk_buffer_print(out, "],\"feedback\":[");
  hk_watch_feedback(watch, out);
  hk_buffer_print(out, "]}");
}

/* A value of a section's counts. */
struct family {
  const char *name, *help;
  double (*value)(const struct hk_watch_counts *counts);
  bool counter;
};

static double count_told(const struct hk_watch_counts *c)
{
  return (double)c->told;
}

static double count_withheld(const struct hk_watch_counts *c)
{
  return (double)c->withheld;
}

static double count_open(const struct hk_watch_counts *c)
{
  return c->open;
}

static double count_budget(const struct hk_watch_counts *c)
{
  return c->budget;
}

void hk_incident_metrics(struct hk_incident_watch *watch, const char *total, struct hk_buffer *out)
{
  static const struct family families[] = {
    { "hankel_incidents_told", "Incidents that were reported, by section.", count_told, true },
    { "hankel_incidents_withheld", "Incidents that ended without having been reported, by section.", count_withheld, true },
    { "hankel_incidents_open", "Open incidents, by section.", count_open, false },
    { "hankel_incidents_budget", "Messages a day that may be reported, by section.", count_budget, false },
  };
  struct hk_watch_status w;
  hk_watch_status(watch, &w);
  for (size_t f = 0; watch && f < sizeof families / sizeof *families; f++) {
    const struct family *of = &families[f];
    const char *end = of->counter ? total : "";
    hk_buffer_print(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", of->name, end, of->help, of->name, end,
                    of->counter ? "counter" : "gauge");
    for (uint32_t i = 0; i < w.n; i++)
      hk_buffer_print(out, "%s%s{section=\"%s\"} %.15g\n", of->name, of->counter ? "_total" : "", w.section[i].name,
                      of->value(&w.section[i].counts));
  }
}
