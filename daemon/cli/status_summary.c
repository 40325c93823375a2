/* Five lines, and one each for incidents, undelivered alerts, fields, models and pictures if there are any, out of the daemon's
 * counters. What is wrong is gathered in one text, the gravest first. */
#include "daemon/cli/status_summary.h"

#include "daemon/cli/format.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#define ALERTS_SHOWN 3
#define WHY HK_STATUS_FAULTS_MAX

struct summary {
  FILE *out;
  bool coloured;
};

/* The number at a path such as points.in, 0 where there is none. */
static double status_summary_number(const cJSON *report, const char *object, const char *key)
{
  const cJSON *item = cJSON_GetObjectItem(object ? cJSON_GetObjectItem(report, object) : report, key);
  return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static const char *status_summary_word(const cJSON *report, const char *object, const char *key)
{
  const cJSON *item = cJSON_GetObjectItem(object ? cJSON_GetObjectItem(report, object) : report, key);
  return cJSON_IsString(item) ? item->valuestring : "";
}

static void status_summary_add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void status_summary_add(char *text, const char *format, ...)
{
  const size_t used = strlen(text);
  va_list arguments;
  if (used > 0 && used + 2 < WHY)
    strcpy(text + used, "; ");
  va_start(arguments, format);
  vsnprintf(text + strlen(text), WHY - strlen(text), format, arguments);
  va_end(arguments);
}

/* Of a daemon of a cluster: the broker. */
static void find_cluster_faults(const cJSON *cluster, char *text)
{
  const cJSON *publishing = cJSON_GetObjectItem(cluster, "publishing"); /* with role = all */
  const cJSON *failing[] = { cluster, publishing };
  for (int i = 0; i < 2; i++) {
    const char *state = status_summary_word(failing[i], NULL, "state");
    if (strcmp(state, "failing") != 0 && strcmp(state, "blocked") != 0)
      continue;
    status_summary_add(text, "the broker of the cluster %s: %s",
                       strcmp(state, "failing") == 0 ? "is unreachable" : "takes no messages",
                       status_summary_word(failing[i], NULL, "why"));
    return;
  }
}

void hk_status_faults(const cJSON *report, char text[HK_STATUS_FAULTS_MAX])
{
  text[0] = 0;
  const char *durability = status_summary_word(report, "durability", "state"),
             *device = status_summary_word(report, "device", "state");
  const cJSON *item;
  if (status_summary_number(report, "batches", "stalled_s") > 0)
    status_summary_add(text, "stalled for %.0f s: %s", status_summary_number(report, "batches", "stalled_s"),
                       status_summary_word(report, "batches", "stalled_because"));
  if (strcmp(device, "lost") == 0)
    status_summary_add(text, "the device is lost (%s), scoring on %s", status_summary_word(report, "device", "why"),
                       status_summary_word(report, NULL, "backend"));
  if (strcmp(durability, "failing") == 0 || strcmp(durability, "degraded") == 0 || strcmp(durability, "recovering") == 0)
    status_summary_add(text, "durability is %s: %s", durability, status_summary_word(report, "durability", "why"));
  if (strcmp(status_summary_word(report, "configuration", "state"), "refused") == 0)
    status_summary_add(text, "the configuration was refused: %s", status_summary_word(report, "configuration", "why"));
  if (*status_summary_word(report, "points", "late_sensor"))
    status_summary_add(text, "most points are late and ignored, all of sensor %.100s: look at the sender's clock",
                       status_summary_word(report, "points", "late_sensor"));
  if (*status_summary_word(report, "sensors", "refused_because"))
    status_summary_add(text, "no room for sensors: %s", status_summary_word(report, "sensors", "refused_because"));
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(cJSON_GetObjectItem(report, "security"), "certificates"))
  {
    if (strcmp(status_summary_word(item, NULL, "state"), "expired") == 0 ||
        strcmp(status_summary_word(item, NULL, "crl"), "expired") == 0)
      status_summary_add(text, "the certificate of listener %s, or its list of revoked ones, has expired",
                         status_summary_word(item, NULL, "name"));
  }
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(report, "notify"))
  {
    if (strcmp(status_summary_word(item, NULL, "state"), "failing") == 0)
      status_summary_add(text, "alerts do not reach receiver %s: %s", status_summary_word(item, NULL, "name"),
                         status_summary_word(item, NULL, "answer"));
  }
  find_cluster_faults(cJSON_GetObjectItem(report, "cluster"), text);
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(report, "mqtt"))
  {
    if (strcmp(status_summary_word(item, NULL, "state"), "failing") == 0)
      status_summary_add(text, "the broker %s is unreachable: %s", status_summary_word(item, NULL, "name"),
                         status_summary_word(item, NULL, "why"));
  }
}

/* A line: a heading, and text in which nothing may move the cursor; colour is of ANSI, NULL: none. */
static void status_summary_line(const struct summary *s, const char *heading, const char *colour, const char *text)
{
  fprintf(s->out, "%-10s%s", heading, s->coloured && colour ? colour : "");
  hk_print_name(s->out, text);
  fprintf(s->out, "%s\n", s->coloured && colour ? "\033[0m" : "");
}

static void tell_refused(const struct summary *s, const cJSON *report)
{
  char text[WHY] = "";
  const cJSON *item;
  const double late = status_summary_number(report, "points", "late") - status_summary_number(report, "derived", "late");
  if (late > 0) /* as fed: once, however many series its sensor has */
    status_summary_add(text, "%.0f late (not after their sensor's last one)", late);
  const double rejected =
      status_summary_number(report, "points", "rejected") - status_summary_number(report, "derived", "rejected");
  if (rejected > 0)
    status_summary_add(text, "%.0f rejected%s", rejected,
                       status_summary_number(report, "input", "ahead_of_clock") > 0 ? " (some ahead of this machine's clock)"
                                                                                    : " (not finite, or out of range)");
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(report, "dropped"))
  {
    if (cJSON_IsNumber(item) && item->valuedouble > 0) {
      char name[48];
      snprintf(name, sizeof name, "%s", item->string);
      for (char *p = name; *p; p++)
        *p = *p == '_' ? ' ' : *p;
      status_summary_add(text, "%.0f dropped (%s)", item->valuedouble, name);
    }
  }
  if (status_summary_number(report, "lines", "bad") > 0)
    status_summary_add(text, "%.0f line%s not understood", status_summary_number(report, "lines", "bad"),
                       status_summary_number(report, "lines", "bad") == 1 ? "" : "s");
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(report, "mqtt"))
  {
    const cJSON *bad = cJSON_GetObjectItem(item, "bad");
    if (cJSON_IsNumber(bad) && bad->valuedouble > 0)
      status_summary_add(text, "%.0f message%s of broker %s not understood", bad->valuedouble, bad->valuedouble == 1 ? "" : "s",
                         status_summary_word(item, NULL, "name"));
  }
  if (status_summary_number(report, "input", "bad_frames") > 0)
    status_summary_add(text, "%.0f bad frames", status_summary_number(report, "input", "bad_frames"));
  if (status_summary_number(report, "sensors", "refused") > 0)
    status_summary_add(text, "%.0f new sensors turned away", status_summary_number(report, "sensors", "refused"));
  status_summary_line(s, "refused", *text ? "\033[33m" : NULL, *text ? text : "nothing");
}

/* The maintenance windows in force: why alerts reach nobody. */
static void add_windows(const cJSON *report, char *text)
{
  const cJSON *item;
  int open = 0;
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(report, "maintenance")) open += cJSON_IsTrue(cJSON_GetObjectItem(item, "now"));
  if (open > 0)
    status_summary_add(text, "%d maintenance window%s open", open, open == 1 ? " is" : "s are");
}

static void tell_alerts(const struct summary *s, const cJSON *report)
{
  char text[WHY] = "";
  const double standing = status_summary_number(report, "alerts", "standing"),
               acknowledged = status_summary_number(report, "alerts", "acknowledged");
  const cJSON *item;
  int shown = 0;
  if (standing == 0) {
    status_summary_add(text, "none stands");
    add_windows(report, text);
    status_summary_line(s, "alerts", NULL, text);
    return;
  }
  status_summary_add(text, "%.0f stand%s%s", standing, standing == 1 ? "s" : "", acknowledged > 0 ? "" : ", none acknowledged");
  if (acknowledged > 0)
    status_summary_add(text, "%.0f acknowledged", acknowledged);
  add_windows(report, text);
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(cJSON_GetObjectItem(report, "alerts"), "first"))
  {
    if (shown++ < ALERTS_SHOWN)
      status_summary_add(text, "%.80s:%.0f (%s%s)%s%.40s", status_summary_word(item, NULL, "sensor"),
                         status_summary_number(item, NULL, "number"), status_summary_word(item, NULL, "channel"),
                         *status_summary_word(item, NULL, "stale") ? ", stale" : "",
                         *status_summary_word(item, NULL, "by") ? " acknowledged by " : "",
                         status_summary_word(item, NULL, "by"));
  }
  status_summary_line(s, "alerts", standing > acknowledged ? "\033[31m" : "\033[33m", text);
}

/* Nothing where no incidents are made. */
static void tell_incidents(const struct summary *s, const cJSON *report)
{
  char text[WHY] = "";
  const cJSON *incidents = cJSON_GetObjectItem(report, "incidents");
  const double budget = status_summary_number(incidents, NULL, "budget"),
               withheld = status_summary_number(incidents, NULL, "withheld_today");
  const int marks = cJSON_GetArraySize(cJSON_GetObjectItem(incidents, "feedback"));
  if (cJSON_GetArraySize(cJSON_GetObjectItem(incidents, "sections")) == 0)
    return;
  status_summary_add(text, "%.0f open", status_summary_number(incidents, NULL, "open"));
  status_summary_add(text, "of the data's last day %.0f reported, %.0f withheld",
                     status_summary_number(incidents, NULL, "told_today"), withheld);
  if (withheld > 0)
    snprintf(text + strlen(text), WHY - strlen(text), " (gravest R %.1f)",
             status_summary_number(incidents, NULL, "gravest_today"));
  status_summary_add(text, budget > 0 ? "budget %.4g a day" : "the budget is off, so none is reported", budget);
  if (marks > 0)
    status_summary_add(text, "%d said to be expected or false", marks);
  status_summary_line(s, "incidents", NULL, text);
}

/* Nothing where every receiver has got all. */
static void tell_undelivered(const struct summary *s, const cJSON *report)
{
  char text[WHY] = "";
  const cJSON *item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(report, "notify"))
  {
    const double given_up = status_summary_number(item, NULL, "given_up"), aside = status_summary_number(item, NULL, "aside"),
                 forgotten = status_summary_number(item, NULL, "forgotten"), lost = status_summary_number(item, NULL, "lost");
    const char *name = status_summary_word(item, NULL, "name");
    if (aside > 0)
      status_summary_add(text, "%.0f alerts or ends wait to be sent to %s again: their messages are in notify-%s.undelivered",
                         aside, name, name);
    else if (given_up > 0)
      status_summary_add(text,
                         "%.0f events were set aside in notify-%s.undelivered since the start, and %s has nothing left to get",
                         given_up, name, name);
    if (forgotten > 0)
      status_summary_add(text, "%.0f alerts or ends that were set aside are not sent to %s again: read notify-%s.undelivered",
                         forgotten, name, name);
    if (lost > 0)
      status_summary_add(text, "%.0f events were deleted from the event log before %s got them", lost, name);
  }
  if (*text)
    status_summary_line(s, "receivers", "\033[33m", text);
}

/* Nothing where there are no models. */
static void tell_models(const struct summary *s, const cJSON *report)
{
  char text[WHY] = "";
  const double lines = status_summary_number(report, "models", "lines"),
               running = status_summary_number(report, "models", "running"),
               checks = status_summary_number(report, "models", "checks"), poor = status_summary_number(report, "models", "poor");
  if (lines == 0)
    return;
  status_summary_add(text, "%.0f of %.0f line%s run%s", running, lines, lines == 1 ? "" : "s", running == 1 ? "s" : "");
  if (checks > 0)
    status_summary_add(text, "%.0f check%s, of whose variance the model explains %.1f %% on the average", checks,
                       checks == 1 ? "" : "s", 100 * status_summary_number(report, "models", "explained"));
  if (poor > 0)
    status_summary_add(text, "%.0f of them below a half", poor);
  status_summary_line(s, "models", running < lines || poor > 0 ? "\033[33m" : NULL, text);
}

/* Nothing where there are no fields. */
static void tell_fields(const struct summary *s, const cJSON *report)
{
  char text[WHY] = "";
  const double fields = status_summary_number(report, "fields", "fields"),
               members = status_summary_number(report, "fields", "members"),
               spikes = status_summary_number(report, "derived", "spikes");
  if (fields == 0)
    return;
  status_summary_add(text, "%.0f with %.0f sensor%s, of which the daemon makes series", fields, members, members == 1 ? "" : "s");
  if (spikes > 0)
    status_summary_add(text, "%.0f spike%s replaced", spikes, spikes == 1 ? "" : "s");
  status_summary_line(s, "fields", NULL, text);
}

/* Nothing where no picture came. */
static void tell_pictures(const struct summary *s, const cJSON *report)
{
  char text[WHY] = "";
  const double taken = status_summary_number(report, "input", "pictures"),
               bad = status_summary_number(report, "input", "bad_pictures");
  if (taken + bad == 0)
    return;
  status_summary_add(text, "%.0f taken", taken);
  if (bad > 0)
    status_summary_add(text, "%.0f dropped, whose senders were told why", bad);
  status_summary_line(s, "pictures", bad > 0 ? "\033[33m" : NULL, text);
}

bool hk_status_summary(FILE *out, const cJSON *report, const cJSON *before, double seconds, bool coloured)
{
  const struct summary s = { out, coloured };
  char faults[WHY] = "", text[WHY] = "";
  hk_status_faults(report, faults);
  status_summary_line(&s, *faults ? "WRONG" : "healthy", *faults ? "\033[31m" : "\033[32m",
                      *faults ? faults : "nothing is wrong");
  const double up = status_summary_number(report, NULL, "uptime_s");
  status_summary_add(text, "%.0f of at most %.0f; on %s, up for %.0f h %.0f min",
                     status_summary_number(report, "sensors", "count") - status_summary_number(report, "derived", "sensors"),
                     status_summary_number(report, "sensors", "max"), status_summary_word(report, NULL, "backend"),
                     (double)(int64_t)(up / 3600), (double)((int64_t)up % 3600 / 60));
  status_summary_line(&s, "sensors", NULL, text);
  const double fed = status_summary_number(report, "points", "in") - status_summary_number(report, "derived", "points");
  const double earlier =
      before ? status_summary_number(before, "points", "in") - status_summary_number(before, "derived", "points") : 0;
  const double over = before ? seconds : up, average = up > 0 ? fed / up : 0;
  snprintf(text, sizeof text, "%.0f a second as fed, %.0f since the start (%.*f a second on average); %.0f wait",
           over > 0 ? (fed - earlier) / over : 0, fed, average < 10 ? 2 : 0, average,
           status_summary_number(report, "points", "pending"));
  status_summary_line(&s, "points", NULL, text);
  tell_refused(&s, report);
  tell_alerts(&s, report);
  tell_incidents(&s, report);
  tell_undelivered(&s, report);
  tell_fields(&s, report);
  tell_models(&s, report);
  tell_pictures(&s, report);
  return !*faults;
}
