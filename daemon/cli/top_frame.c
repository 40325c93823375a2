/* See top_frame.h. Names are others': characters that act on a terminal are shown as `?`. */
#include "daemon/cli/top_frame.h"

#include "daemon/cli/status_summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROOM 1024
#define FAULT_LINES 4
#define FAULT_HEAD 7 /* columns before what is wrong */

#define RED "31"
#define GREEN "32"
#define YELLOW "33"
#define BOLD "1"
#define DIM "2"

/* Cuts a text to so many columns, and takes out what acts on a terminal. A byte that begins a character is a column. */
static void top_frame_plain(char *text, int columns)
{
  char *to = text;
  int used = 0;
  for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
    const bool goes_on = (*p & 0xc0) == 0x80;
    if (!goes_on && ++used > columns)
      break;
    const bool acts = *p < 0x20 || *p == 0x7f || (goes_on && p > (const unsigned char *)text && p[-1] == 0xc2 && *p < 0xa0);
    *to++ = acts ? '?' : (char)*p;
  }
  *to = 0;
}

static void top_frame_line(FILE *out, const struct hk_top_frame *f, const char *colour, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void top_frame_line(FILE *out, const struct hk_top_frame *f, const char *colour, const char *format, ...)
{
  char text[ROOM];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  top_frame_plain(text, f->columns);
  if (f->ansi && colour)
    fprintf(out, "\033[%sm%s\033[0m\033[K\n", colour, text);
  else
    fprintf(out, "%s%s\n", text, f->ansi ? "\033[K" : "");
}

/* --- the report --------------------------------------------------------------------------------------------------------- */

static const cJSON *in(const cJSON *report, const char *section, const char *name)
{
  return cJSON_GetObjectItem(cJSON_GetObjectItem(report, section), name);
}

static double top_frame_number(const cJSON *report, const char *section, const char *name)
{
  const cJSON *item = in(report, section, name);
  return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static const char *string(const cJSON *object, const char *name)
{
  const cJSON *item = cJSON_GetObjectItem(object, name);
  return cJSON_IsString(item) ? item->valuestring : "";
}

static double real(const cJSON *object, const char *name)
{
  const cJSON *item = cJSON_GetObjectItem(object, name);
  return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* How long ago a time such as 2026-11-25T19:35:30Z was. */
static void ago(char *out, size_t size, const char *text, int64_t now)
{
  struct tm tm = { 0 };
  out[0] = 0;
  if (sscanf(text, "%d-%d-%dT%d:%d:%d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec) != 6)
    return;
  tm.tm_year -= 1900;
  tm.tm_mon -= 1;
  const int64_t s = now - (int64_t)timegm(&tm);
  if (s < 120)
    snprintf(out, size, "%" PRId64 " s", s < 0 ? 0 : s);
  else if (s < 7200)
    snprintf(out, size, "%" PRId64 " min", s / 60);
  else if (s < 172800)
    snprintf(out, size, "%" PRId64 " h", s / 3600);
  else
    snprintf(out, size, "%" PRId64 " d", s / 86400);
}

/* --- parts -------------------------------------------------------------------------------------------------------------- */

/* How many bytes of a text go into a line: up to its last blank, if that is not too early, and no part of a character. */
static int top_frame_fits(const char *text, int room)
{
  int length = (int)strlen(text), blank = room;
  if (length <= room)
    return length;
  while (blank > room / 2 && text[blank] != ' ')
    blank--;
  for (length = room; length > 1 && ((unsigned char)text[length] & 0xc0) == 0x80;)
    length--;
  return blank > room / 2 ? blank : length;
}

/* What is wrong, in up to FAULT_LINES lines. Returns their number. */
static int top_frame_faults(FILE *out, const struct hk_top_frame *f, const cJSON *report)
{
  char faults[HK_STATUS_FAULTS_MAX];
  int n = 0;
  hk_status_faults(report, faults);
  for (const char *rest = faults; *rest && n < FAULT_LINES; n++) {
    const int room = f->columns > FAULT_HEAD ? f->columns - FAULT_HEAD : 1;
    const int length = top_frame_fits(rest, room);
    top_frame_line(out, f, RED, "%-*s%.*s", FAULT_HEAD, n == 0 ? "WRONG" : "", length, rest);
    for (rest += length; *rest == ' ';)
      rest++;
  }
  return n;
}

/* Returns the number of lines that say what is wrong. */
static int top_frame_head(FILE *out, const struct hk_top_frame *f, const cJSON *report)
{
  const double standing = top_frame_number(report, "alerts", "standing"),
               acknowledged = top_frame_number(report, "alerts", "acknowledged");
  const double open = standing - acknowledged;
  top_frame_line(out, f, BOLD, "hankeld %s  %s  up %.0f min", string(report, "version"), f->address,
                 floor(cJSON_GetNumberValue(cJSON_GetObjectItem(report, "uptime_s")) / 60));
  if (f->lost)
    top_frame_line(out, f, RED, "No connection: %s. Trying again; the last known state follows.", f->lost);
  const int faults = top_frame_faults(out, f, report);
  if (top_frame_number(report, "points", "in") == 0)
    top_frame_line(out, f, NULL, "No data yet. Send something: hankel feed recording.csv");
  else if (open > 0)
    top_frame_line(out, f, YELLOW, "%.0f to look at, %.0f acknowledged", open, acknowledged);
  else if (acknowledged > 0 || faults == 0)
    top_frame_line(out, f, faults == 0 ? GREEN : NULL, acknowledged > 0 ? "Nothing new, %.0f acknowledged" : "All is well",
                   acknowledged);
  else
    top_frame_line(out, f, NULL, "No alert stands");
  return faults;
}

static void top_frame_health(FILE *out, const struct hk_top_frame *f, const cJSON *report)
{
  const double dropped = top_frame_number(report, "points", "dropped"), lost = top_frame_number(report, "udp", "lost_points");
  const double stalled = top_frame_number(report, "batches", "stalled_s");
  const char *disk = string(cJSON_GetObjectItem(report, "durability"), "state");
  const char *device = string(cJSON_GetObjectItem(report, "device"), "state");
  const bool bad_disk = strcmp(disk, "ok") != 0 && strcmp(disk, "none") != 0;
  char rate[32] = "...";
  if (f->points >= 0)
    snprintf(rate, sizeof rate, "%.0f", f->points);
  const double series = top_frame_number(report, "sensors", "count"), derived = top_frame_number(report, "derived", "sensors");
  char all[48] = "";
  if (derived > 0)
    snprintf(all, sizeof all, " (%.0f series)", series);
  top_frame_line(out, f, NULL, "points %s/s  fed %.0f  waiting %.0f  sensors %.0f%s  scores %.0f  subscribers %.0f", rate,
                 top_frame_number(report, "points", "in") - top_frame_number(report, "derived", "points"),
                 top_frame_number(report, "points", "pending"), series - derived, all,
                 top_frame_number(report, "points", "scored"), top_frame_number(report, "subscribers", "count"));
  top_frame_line(out, f, dropped > 0 || lost > 0 ? RED : NULL,
                 "dropped %.0f  late %.0f  lost on the way (UDP) %.0f  left out for slow subscribers %.0f", dropped,
                 top_frame_number(report, "points", "late") - top_frame_number(report, "derived", "late"), lost,
                 top_frame_number(report, "subscribers", "gap_results"));
  top_frame_line(out, f, bad_disk || stalled > 0 || strcmp(device, "lost") == 0 ? RED : NULL, "device %s%s  durability %s  %s%s",
                 string(report, "backend"), strcmp(device, "lost") == 0 ? " (one was lost)" : "",
                 string(cJSON_GetObjectItem(report, "durability"), "mode"), bad_disk ? disk : "",
                 stalled > 0 ? " scoring has stalled" : "");
}

static int top_frame_graver(const void *left, const void *right)
{
  const cJSON *a = *(const cJSON *const *)left, *b = *(const cJSON *const *)right;
  const bool noted_a = cJSON_GetObjectItem(a, "by") != NULL, noted_b = cJSON_GetObjectItem(b, "by") != NULL;
  if (noted_a != noted_b)
    return noted_a ? 1 : -1;
  const double x = real(a, "severity"), y = real(b, "severity");
  return x < y ? 1 : x > y ? -1 : 0;
}

static void top_frame_alert(FILE *out, const struct hk_top_frame *f, const cJSON *a)
{
  char since[32], levels[64] = "";
  const char *level = string(a, "level"), *by = string(a, "by");
  const double before = real(a, "before"), after = real(a, "after");
  ago(since, sizeof since, string(a, "instant"), f->now);
  if (strcmp(string(a, "novelty"), "shape") == 0)
    snprintf(levels, sizeof levels, "a new shape"); /* its numbers are distances */
  else if (isfinite(before) && isfinite(after))
    snprintf(levels, sizeof levels, "%.4g -> %.4g", before, after);
  top_frame_line(out, f,
                 *by                             ? DIM
                 : strcmp(level, "severe") == 0  ? RED
                 : strcmp(level, "warning") == 0 ? YELLOW
                                                 : NULL,
                 "%-8s %8s  %-8s %-22s %s%s%s", level, since, string(a, "channel"), levels, string(a, "sensor"),
                 *by ? "  acknowledged by " : "", by);
}

static void top_frame_alerts(FILE *out, const struct hk_top_frame *f, const cJSON *report, int used)
{
  const cJSON *first = in(report, "alerts", "first"), *item;
  const int n = cJSON_GetArraySize(first);
  const cJSON **sorted = n > 0 ? malloc((size_t)n * sizeof *sorted) : NULL;
  int k = 0, shown = 0;
  if (!sorted)
    return;
  cJSON_ArrayForEach(item, first) sorted[k++] = item;
  qsort(sorted, (size_t)n, sizeof *sorted, top_frame_graver);
  top_frame_line(out, f, BOLD, "%-8s %8s  %-8s %-22s %s", "SEVERITY", "SINCE", "CHANNEL", "BEFORE -> AFTER", "SENSOR");
  for (; shown < n && (f->lines == 0 || used + shown + 2 < f->lines); shown++)
    top_frame_alert(out, f, sorted[shown]);
  if (top_frame_number(report, "alerts", "standing") > shown)
    top_frame_line(out, f, DIM, "and %.0f more", top_frame_number(report, "alerts", "standing") - shown);
  free(sorted);
}

void hk_top_print(FILE *out, const struct hk_top_frame *f, const cJSON *report)
{
  if (f->ansi)
    fputs("\033[H", out);
  if (!report) {
    top_frame_line(out, f, NULL, "%s: %s", f->address, f->lost ? f->lost : "asking");
  } else {
    const int faults = top_frame_head(out, f, report);
    top_frame_health(out, f, report);
    top_frame_line(out, f, NULL, "%s", "");
    top_frame_alerts(out, f, report, 7 + (f->lost != NULL) + faults);
  }
  if (f->ansi)
    fputs("\033[J", out);
}
