/* Results and events as text for people, JSON lines and CSV. */
#include "daemon/cli/format.h"
#include "daemon/cli/timestamp.h"
#include "proto/hankel.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *state_name(uint8_t state)
{
  static const char *const names[] = { "warming", "ok", "gap", "late", "rejected" };
  return state < sizeof names / sizeof *names ? names[state] : "?";
}

static bool is_notice(uint8_t kind)
{
  return kind == HANKEL_STALE || kind == HANKEL_BACK;
}

void hk_number_text(double value, char *out)
{
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(out, 32, "%.*g", digits, value);
    if (!isfinite(value) || strtod(out, NULL) == value)
      return;
  }
}

/* Length of the UTF-8 sequence at p (Unicode 15, table 3-7); 0 when there is none. */
static int utf8_length(const unsigned char *p)
{
  const int n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
  for (int i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80)
      return 0;
  const bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
  const bool outside = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
  return overlong || outside ? 0 : n;
}

void hk_print_json_string(FILE *out, const char *text)
{
  fputc('"', out);
  for (const unsigned char *p = (const unsigned char *)text; *p;) {
    const int n = utf8_length(p);
    if (n == 0)
      fputs("\\ufffd", out);
    else if (*p < 0x20 || *p == 0x7f)
      fprintf(out, "\\u%04x", *p);
    else if (*p == '"' || *p == '\\')
      fprintf(out, "\\%c", *p);
    else
      fwrite(p, 1, (size_t)n, out);
    p += n ? n : 1;
  }
  fputc('"', out);
}

void hk_print_csv_string(FILE *out, const char *text)
{
  fputc('"', out);
  for (; *text; text++) {
    if (*text == '"')
      fputc('"', out);
    fputc(*text, out);
  }
  fputc('"', out);
}

/* A CSV cell, quoted where it has to be. */
static void print_cell(FILE *out, const char *text)
{
  if (!strpbrk(text, ",;\"\r\n") && *text != '#' && *text != ' ')
    fputs(text, out);
  else
    hk_print_csv_string(out, text);
}

/* A name for a terminal: control characters become `?`. */
static void print_safe(FILE *out, const char *text)
{
  for (; *text; text++)
    fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, out);
}

static void print_json_number(FILE *out, const char *key, double value, const char *text)
{
  fprintf(out, ",\"%s\":%s", key, isfinite(value) ? text : "null");
}

static void print_json_real(FILE *out, const char *key, double value)
{
  char text[32];
  hk_number_text(value, text);
  print_json_number(out, key, value, text);
}

static void print_json_score(FILE *out, const char *key, float score)
{
  char text[32];
  snprintf(text, sizeof text, "%.9g", (double)score);
  print_json_number(out, key, (double)score, text);
}

void hk_print_header(FILE *out, enum hk_format format, bool has_value, const struct hk_shown_further *further, uint32_t n)
{
  if (format != HK_FORMAT_CSV)
    return;
  fputs(has_value ? "sensor,time,value,score,state" : "sensor,time,score,state", out);
  for (uint32_t i = 0; i < n; i++)
    fprintf(out, ",score_%s,state_%s", further[i].algorithm, further[i].algorithm);
  fputc('\n', out);
}

static void print_further_json(FILE *out, const struct hk_shown_further *f)
{
  char key[32];
  snprintf(key, sizeof key, "score_%s", f->algorithm);
  print_json_score(out, key, f->score);
  fprintf(out, ",\"state_%s\":\"%s\"", f->algorithm, state_name(f->state));
}

void hk_print_result(FILE *out, enum hk_format format, const struct hk_shown_result *result,
                     const struct hk_shown_further *further, uint32_t n)
{
  const double score = (double)result->score;
  char text[HK_TIMESTAMP_SIZE];
  switch (format) {
  case HK_FORMAT_CSV:
    print_cell(out, result->sensor);
    fprintf(out, ",%" PRId64 ",", result->time);
    if (result->has_value) {
      hk_number_text(result->value, text);
      fprintf(out, "%s,", text);
    }
    if (!isnan(score))
      fprintf(out, "%.9g", score);
    fprintf(out, ",%s", state_name(result->state));
    for (uint32_t i = 0; i < n; i++) {
      fputc(',', out);
      if (!isnan((double)further[i].score))
        fprintf(out, "%.9g", (double)further[i].score);
      fprintf(out, ",%s", state_name(further[i].state));
    }
    fputc('\n', out);
    break;
  case HK_FORMAT_JSONL:
    fputs("{\"sensor\":", out);
    hk_print_json_string(out, result->sensor);
    fprintf(out, ",\"time\":%" PRId64, result->time);
    if (result->has_value)
      print_json_real(out, "value", result->value);
    print_json_score(out, "score", result->score);
    fprintf(out, ",\"state\":\"%s\"", state_name(result->state));
    for (uint32_t i = 0; i < n; i++)
      print_further_json(out, &further[i]);
    fputs("}\n", out);
    break;
  case HK_FORMAT_TEXT:
    hk_timestamp_format(result->time, text);
    fprintf(out, "%-19s  ", text);
    if (isnan(score))
      fputs("     -", out);
    else
      fprintf(out, "%6.4f", score);
    fprintf(out, "  %-8s  ", state_name(result->state));
    if (result->has_value) {
      hk_number_text(result->value, text);
      fprintf(out, "%12s  ", text);
    }
    print_safe(out, result->sensor);
    fputc('\n', out);
    break;
  }
}

/* `#event,id,sensor,kind,time,instant,score,before,after`; a notice is `#notice,sensor,kind,time`. */
static void print_event_csv(FILE *out, const struct hankel_event *event)
{
  char id[1024], before[32], after[32];
  if (is_notice(event->kind)) {
    fputs("#notice,", out);
    print_cell(out, event->name);
    fprintf(out, ",%s,%" PRId64 "\n", hankel_event_name(event->kind), event->time);
    return;
  }
  snprintf(id, sizeof id, "%s:%" PRIu32, event->name, event->number);
  hk_number_text(event->before, before);
  hk_number_text(event->after, after);
  fputs("#event,", out);
  print_cell(out, id);
  fputc(',', out);
  print_cell(out, event->name);
  fprintf(out, ",%s,%" PRId64 ",%" PRId64 ",%.9g,%s,%s", hankel_event_name(event->kind), event->time, event->instant,
          (double)event->score, before, after);
  if (event->position > 0)
    fprintf(out, ",%" PRIu64 ",%" PRIu64, event->position, event->sequence);
  fputc('\n', out);
}

static void print_event_json(FILE *out, const struct hankel_event *event)
{
  char id[1024];
  if (is_notice(event->kind)) {
    fprintf(out, "{\"notice\":\"%s\",\"sensor\":", hankel_event_name(event->kind));
    hk_print_json_string(out, event->name);
    fprintf(out, ",\"time\":%" PRId64 "}\n", event->time);
    return;
  }
  snprintf(id, sizeof id, "%s:%" PRIu32, event->name, event->number);
  fprintf(out, "{\"event\":\"%s\",\"id\":", hankel_event_name(event->kind));
  hk_print_json_string(out, id);
  fputs(",\"sensor\":", out);
  hk_print_json_string(out, event->name);
  fprintf(out, ",\"time\":%" PRId64 ",\"from\":%" PRId64 ",\"instant\":%" PRId64, event->time, event->from, event->instant);
  print_json_score(out, "score", event->score);
  print_json_real(out, "before", event->before);
  print_json_real(out, "after", event->after);
  fprintf(out, ",\"channel\":\"%s\",\"confidence\":%.3g,\"margin\":%.6g", hankel_channel_name(event->channel),
          (double)event->confidence, (double)event->margin);
  fprintf(out, ",\"spread_before\":%.9g,\"spread_after\":%.9g", (double)event->spread_before, (double)event->spread_after);
  if (event->marks & HANKEL_MAINTENANCE)
    fputs(",\"maintenance\":true", out);
  if (event->held > 0)
    fprintf(out, ",\"held\":%" PRIu32, event->held);
  if (event->likeness > 0)
    fprintf(out, ",\"similar\":%" PRIu32 ",\"similar_from\":%" PRId64 ",\"likeness\":%.3g", event->similar, event->similar_from,
            (double)event->likeness);
  if (event->by[0]) {
    fputs(",\"by\":", out);
    hk_print_json_string(out, event->by);
  }
  if (event->position > 0)
    fprintf(out, ",\"position\":%" PRIu64 ",\"sequence\":%" PRIu64, event->position, event->sequence);
  fputs("}\n", out);
}

static void print_event_text(FILE *out, const struct hankel_event *event)
{
  char time[HK_TIMESTAMP_SIZE], instant[HK_TIMESTAMP_SIZE];
  hk_timestamp_format(event->time, time);
  if (is_notice(event->kind)) {
    fprintf(out, "%-19s  %s  ", time, event->kind == 4 ? "NO MORE POINTS from" : "POINTS AGAIN from");
    print_safe(out, event->name);
    fputc('\n', out);
    return;
  }
  hk_timestamp_format(event->instant, instant);
  fprintf(out, "%-19s  %6.4f  %-9s ", time, (double)event->score,
          event->kind == HANKEL_RAISED         ? "RAISED"
          : event->kind == HANKEL_CORRECTED    ? "CORRECTED"
          : event->kind == HANKEL_FLAPPING     ? "FLAPPING"
          : event->kind == HANKEL_ACKNOWLEDGED ? "TAKEN"
                                               : "CLEARED");
  print_safe(out, event->name);
  fprintf(out, ":%" PRIu32 "  changed %s, level %.6g +- %.3g -> %.6g +- %.3g, %s %.0f %%", event->number, instant, event->before,
          (double)event->spread_before, event->after, (double)event->spread_after, hankel_channel_name(event->channel),
          100 * (double)event->confidence);
  if (event->marks & HANKEL_MAINTENANCE)
    fputs(", in maintenance", out);
  if (event->held > 0)
    fprintf(out, ", %" PRIu32 " held back before", event->held);
  if (event->likeness > 0) {
    hk_timestamp_format(event->similar_from, instant);
    fprintf(out, ", now as from %s on (%.0f %%)", instant, 100 * (double)event->likeness);
  }
  if (event->by[0]) {
    fputs(", by ", out);
    print_safe(out, event->by);
  }
  if (event->position > 0)
    fprintf(out, "  [%" PRIu64 "]", event->position);
  fputc('\n', out);
}

void hk_print_event(FILE *out, enum hk_format format, const struct hankel_event *event)
{
  if (format == HK_FORMAT_CSV)
    print_event_csv(out, event);
  else if (format == HK_FORMAT_JSONL)
    print_event_json(out, event);
  else
    print_event_text(out, event);
}
