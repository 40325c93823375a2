/* Five lines, six with models, out of the daemon's counters. What is wrong is gathered in one text, the gravest first. */
#include "daemon/cli/status_summary.h"

#include "daemon/cli/format.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#define ALERTS_SHOWN 3
#define WHY 600

struct summary {
  FILE *out;
  bool coloured;
};

/* The number at a path such as points.in, 0 where there is none. */
static double number(const cJSON *report, const char *object, const char *key)
{
  const cJSON *item = cJSON_GetObjectItem(object ? cJSON_GetObjectItem(report, object) : report, key);
  return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static const char *word(const cJSON *report, const char *object, const char *key)
{
  const cJSON *item = cJSON_GetObjectItem(object ? cJSON_GetObjectItem(report, object) : report, key);
  return cJSON_IsString(item) ? item->valuestring : "";
}

static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *format, ...)
{
  const size_t used = strlen(text);
  va_list arguments;
  if (used > 0 && used + 2 < WHY)
    strcpy(text + used, "; ");
  va_start(arguments, format);
  vsnprintf(text + strlen(text), WHY - strlen(text), format, arguments);
  va_end(arguments);
}

/* What of the daemon itself is not as it should be. */
static void find_faults(const cJSON *report, char *text)
{
  const char *durability = word(report, "durability", "state"), *device = word(report, "device", "state");
  const cJSON *item;
  if (number(report, "batches", "stalled_s") > 0)
    add(text, "stalled for %.0f s: %s", number(report, "batches", "stalled_s"), word(report, "batches", "stalled_because"));
  if (strcmp(device, "lost") == 0)
    add(text, "the device is lost (%s), scoring on %s", word(report, "device", "why"), word(report, NULL, "backend"));
  if (strcmp(durability, "failing") == 0 || strcmp(durability, "degraded") == 0 || strcmp(durability, "recovering") == 0)
    add(text, "durability is %s: %s", durability, word(report, "durability", "why"));
  if (strcmp(word(report, "configuration", "state"), "refused") == 0)
    add(text, "the configuration was refused: %s", word(report, "configuration", "why"));
  if (*word(report, "sensors", "refused_because"))
    add(text, "no room for sensors: %s", word(report, "sensors", "refused_because"));
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(cJSON_GetObjectItem(report, "security"), "certificates"))
  {
    if (strcmp(word(item, NULL, "state"), "expired") == 0 || strcmp(word(item, NULL, "crl"), "expired") == 0)
      add(text, "the certificate of listener %s, or its list of revoked ones, has expired", word(item, NULL, "name"));
  }
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(report, "notify"))
  {
    if (strcmp(word(item, NULL, "state"), "failing") == 0)
      add(text, "alerts do not reach receiver %s: %s", word(item, NULL, "name"), word(item, NULL, "answer"));
  }
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(report, "mqtt"))
  {
    if (strcmp(word(item, NULL, "state"), "failing") == 0)
      add(text, "the broker %s is unreachable: %s", word(item, NULL, "name"), word(item, NULL, "why"));
  }
}

/* A line: a heading, and text in which nothing may move the cursor; colour is of ANSI, NULL: none. */
static void line(const struct summary *s, const char *heading, const char *colour, const char *text)
{
  fprintf(s->out, "%-10s%s", heading, s->coloured && colour ? colour : "");
  hk_print_name(s->out, text);
  fprintf(s->out, "%s\n", s->coloured && colour ? "\033[0m" : "");
}

static void tell_refused(const struct summary *s, const cJSON *report)
{
  char text[WHY] = "";
  const cJSON *item;
  if (number(report, "points", "late") > 0)
    add(text, "%.0f late (not after their sensor's last one)", number(report, "points", "late"));
  if (number(report, "points", "rejected") > 0)
    add(text, "%.0f rejected%s", number(report, "points", "rejected"),
        number(report, "input", "ahead_of_clock") > 0 ? " (some ahead of this machine's clock)"
                                                      : " (not finite, or out of range)");
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(report, "dropped"))
  {
    if (cJSON_IsNumber(item) && item->valuedouble > 0) {
      char name[48];
      snprintf(name, sizeof name, "%s", item->string);
      for (char *p = name; *p; p++)
        *p = *p == '_' ? ' ' : *p;
      add(text, "%.0f dropped (%s)", item->valuedouble, name);
    }
  }
  if (number(report, "lines", "bad") > 0)
    add(text, "%.0f line%s not understood", number(report, "lines", "bad"), number(report, "lines", "bad") == 1 ? "" : "s");
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(report, "mqtt"))
  {
    const cJSON *bad = cJSON_GetObjectItem(item, "bad");
    if (cJSON_IsNumber(bad) && bad->valuedouble > 0)
      add(text, "%.0f message%s of broker %s not understood", bad->valuedouble, bad->valuedouble == 1 ? "" : "s",
          word(item, NULL, "name"));
  }
  if (number(report, "input", "bad_frames") > 0)
    add(text, "%.0f bad frames", number(report, "input", "bad_frames"));
  if (number(report, "sensors", "refused") > 0)
    add(text, "%.0f new sensors turned away", number(report, "sensors", "refused"));
  line(s, "refused", *text ? "\033[33m" : NULL, *text ? text : "nothing");
}

static void tell_alerts(const struct summary *s, const cJSON *report)
{
  char text[WHY] = "";
  const double standing = number(report, "alerts", "standing"), acknowledged = number(report, "alerts", "acknowledged");
  const cJSON *item;
  int shown = 0;
  if (standing == 0) {
    line(s, "alerts", NULL, "none stands");
    return;
  }
  add(text, "%.0f stand%s%s", standing, standing == 1 ? "s" : "", acknowledged > 0 ? "" : ", none acknowledged");
  if (acknowledged > 0)
    add(text, "%.0f acknowledged", acknowledged);
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(cJSON_GetObjectItem(report, "alerts"), "first"))
  {
    if (shown++ < ALERTS_SHOWN)
      add(text, "%.80s:%.0f (%s%s)%s%.40s", word(item, NULL, "sensor"), number(item, NULL, "number"), word(item, NULL, "channel"),
          *word(item, NULL, "stale") ? ", stale" : "", *word(item, NULL, "by") ? " acknowledged by " : "",
          word(item, NULL, "by"));
  }
  line(s, "alerts", standing > acknowledged ? "\033[31m" : "\033[33m", text);
}

/* Nothing where there are no models. */
static void tell_models(const struct summary *s, const cJSON *report)
{
  char text[WHY] = "";
  const double lines = number(report, "models", "lines"), running = number(report, "models", "running"),
               checks = number(report, "models", "checks"), poor = number(report, "models", "poor");
  if (lines == 0)
    return;
  add(text, "%.0f of %.0f line%s run%s", running, lines, lines == 1 ? "" : "s", running == 1 ? "s" : "");
  if (checks > 0)
    add(text, "%.0f check%s, of whose variance the model explains %.1f %% on the average", checks, checks == 1 ? "" : "s",
        100 * number(report, "models", "explained"));
  if (poor > 0)
    add(text, "%.0f of them below a half", poor);
  line(s, "models", running < lines || poor > 0 ? "\033[33m" : NULL, text);
}

bool hk_status_summary(FILE *out, const cJSON *report, const cJSON *before, double seconds, bool coloured)
{
  const struct summary s = { out, coloured };
  char faults[WHY] = "", text[WHY] = "";
  find_faults(report, faults);
  line(&s, *faults ? "WRONG" : "healthy", *faults ? "\033[31m" : "\033[32m", *faults ? faults : "nothing is wrong");
  const double up = number(report, NULL, "uptime_s");
  add(text, "%.0f of at most %.0f; on %s, up for %.0f h %.0f min",
      number(report, "sensors", "count") - number(report, "derived", "sensors"), number(report, "sensors", "max"),
      word(report, NULL, "backend"), (double)(int64_t)(up / 3600), (double)((int64_t)up % 3600 / 60));
  line(&s, "sensors", NULL, text);
  const double fed = number(report, "points", "in") - number(report, "derived", "points");
  const double earlier = before ? number(before, "points", "in") - number(before, "derived", "points") : 0;
  const double over = before ? seconds : up;
  snprintf(text, sizeof text, "%.0f a second as fed, %.0f since the start; %.0f wait", over > 0 ? (fed - earlier) / over : 0, fed,
           number(report, "points", "pending"));
  line(&s, "points", NULL, text);
  tell_refused(&s, report);
  tell_alerts(&s, report);
  tell_models(&s, report);
  return !*faults;
}
