/* Formats results and events as text for people, JSON lines and CSV. */
#include "daemon/cli/format.h"
#include "daemon/base/decimal.h"
#include "daemon/base/focus_sentence.h"
#include "daemon/base/limit_sentence.h"
#include "daemon/base/novelty_sentence.h"
#include "daemon/base/timestamp.h"
#include "daemon/cli/csv_cells.h"
#include "proto/hankel.h"
#include "proto/wire/name.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_notice(uint8_t kind)
{
  return kind == HANKEL_STALE || kind == HANKEL_BACK;
}

void hk_number_text(double value, char *out)
{
  if (hk_decimal_short(out, value) > 0)
    return;
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(out, 32, "%.*g", digits, value);
    if (!isfinite(value) || strtod(out, NULL) == value)
      return;
  }
}

void hk_print_json_string(FILE *out, const char *text)
{
  fputc('"', out);
  for (size_t left = strlen(text); left > 0;) {
    uint32_t code;
    const size_t n = hk_text_character(text, left, &code);
    if (code != HK_SHOWN_AS_IT_IS)
      fprintf(out, "\\u%04x", code);
    else if (*text == '"' || *text == '\\')
      fprintf(out, "\\%c", *text);
    else
      fwrite(text, 1, n, out);
    text += n;
    left -= n;
  }
  fputc('"', out);
}

void hk_print_csv_string(FILE *out, const char *text)
{
  fputs(hk_csv_marks(text) ? "\"'" : "\"", out);
  for (; *text; text++) {
    if (*text == '"')
      fputc('"', out);
    fputc(*text, out);
  }
  fputc('"', out);
}

/* Writes a CSV cell, quoted if necessary. */
static void print_cell(FILE *out, const char *text)
{
  const size_t length = strlen(text);
  if (strpbrk(text, ",;\"\r\n") || *text == ' ' || (length > 0 && text[length - 1] == ' ')) {
    hk_print_csv_string(out, text);
    return;
  }
  if (hk_csv_marks(text))
    fputc('\'', out);
  fwrite(text, 1, length, out);
}

void hk_print_name(FILE *out, const char *name)
{
  for (size_t left = strlen(name); left > 0;) {
    uint32_t code;
    const size_t n = hk_text_character(name, left, &code);
    if (code == HK_SHOWN_AS_IT_IS)
      fwrite(name, 1, n, out);
    else if (n == 1)
      fputc('?', out);
    else
      fprintf(out, "<U+%04X>", code);
    name += n;
    left -= n;
  }
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
  (void)hk_decimal_nine(text, score);
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
  fprintf(out, ",\"state_%s\":\"%s\"", f->algorithm, hankel_state_name(f->state));
}

#define CSV_NUMBER 32
#define CSV_SCORE (CSV_NUMBER + 16) /* with its state, and the end of the line */

/* Appends ,score,state to a line of CSV; the score of NaN is empty. Returns its end. */
static char *csv_score(char *at, float score, uint8_t state)
{
  *at++ = ',';
  at += isnan(score) ? 0 : hk_decimal_nine(at, score);
  *at++ = ',';
  return stpcpy(at, hankel_state_name(state));
}

/* Appends ,time. */
static char *csv_time(char *at, int64_t time)
{
  *at++ = ',';
  if (time < 0)
    *at++ = '-';
  return at + hk_decimal_whole(at, time < 0 ? -(uint64_t)time : (uint64_t)time, 1);
}

/* A line is made in few pieces, as each call that writes takes longer than a number. */
static void print_result_csv(FILE *out, const struct hk_shown_result *result, const struct hk_shown_further *further, uint32_t n)
{
  char text[2 * CSV_NUMBER + CSV_SCORE], *at = csv_time(text, result->time);
  if (result->has_value) {
    *at++ = ',';
    hk_number_text(result->value, at);
    at += strlen(at);
  }
  at = csv_score(at, result->score, result->state);
  print_cell(out, result->sensor);
  for (uint32_t i = 0; i < n; i++) {
    fwrite(text, 1, (size_t)(at - text), out);
    at = csv_score(text, further[i].score, further[i].state);
  }
  *at++ = '\n';
  fwrite(text, 1, (size_t)(at - text), out);
}

void hk_print_result(FILE *out, enum hk_format format, const struct hk_shown_result *result,
                     const struct hk_shown_further *further, uint32_t n)
{
  const double score = (double)result->score;
  char text[HK_TIMESTAMP_SIZE];
  switch (format) {
  case HK_FORMAT_CSV:
    print_result_csv(out, result, further, n);
    break;
  case HK_FORMAT_JSONL:
    fputs("{\"sensor\":", out);
    hk_print_json_string(out, result->sensor);
    fprintf(out, ",\"time\":%" PRId64, result->time);
    if (result->has_value)
      print_json_real(out, "value", result->value);
    print_json_score(out, "score", result->score);
    fprintf(out, ",\"state\":\"%s\"", hankel_state_name(result->state));
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
    fprintf(out, "  %-8s  ", hankel_state_name(result->state));
    if (result->has_value) {
      hk_number_text(result->value, text);
      fprintf(out, "%12s  ", text);
    }
    hk_print_name(out, result->sensor);
    fputc('\n', out);
    break;
  }
}

/* What is new, in a separate line after the event's, so that the event's columns stay the same. The sentence is the last cell. */
static void print_novelty_csv(FILE *out, const char *id, const struct hankel_event *event)
{
  const struct hankel_novelty *n = &event->novelty;
  char expected[32], low[32], high[32];
  hk_number_text(event->before, expected);
  hk_number_text(n->low, low);
  hk_number_text(n->high, high);
  fputs("#novelty,", out);
  print_cell(out, id);
  fprintf(out, ",%s,%s,%.9g,%" PRId64 ",%" PRId64 ",%s,%s,%" PRIu32 ",%u,\"", hankel_novelty_name(n->kind), expected,
          (double)event->spread_before, n->nearest, n->oldest, low, high, n->compared, n->reach);
  hk_novelty_sentence(out, event);
  fputs("\"\n", out);
}

/* When a limit is reached, in a separate line, too. `latest` is empty for never. */
static void print_limit_csv(FILE *out, const char *id, const struct hankel_event *event)
{
  const struct hankel_limit *l = &event->limit;
  char limit[32];
  hk_number_text(l->limit, limit);
  fputs("#limit,", out);
  print_cell(out, id);
  fprintf(out, ",%s,%.9g,%" PRId64 ",%" PRId64 ",", limit, (double)l->slope, l->earliest, l->reached);
  if (l->latest < INT64_MAX)
    fprintf(out, "%" PRId64, l->latest);
  fprintf(out, ",%u,\"", l->blocks);
  hk_limit_sentence(out, event);
  fputs("\"\n", out);
}

/* `#event,id,sensor,kind,time,instant,score,before,after,position,sequence,severity`; a notice is `#notice,sensor,kind,time`. */
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
  else
    fputs(",,", out);
  fprintf(out, ",%.3f\n", (double)event->severity);
  if (event->novelty.kind != HANKEL_NO_NOVELTY)
    print_novelty_csv(out, id, event);
  if (event->limit.blocks > 0)
    print_limit_csv(out, id, event);
}

/* What is new, as a member of the JSON object of an event of the channel novelty. */
static void print_novelty_json(FILE *out, const struct hankel_event *event)
{
  const struct hankel_novelty *n = &event->novelty;
  fprintf(out, ",\"novelty\":{\"kind\":\"%s\"", hankel_novelty_name(n->kind));
  print_json_real(out, "expected", event->before);
  fprintf(out, ",\"tolerance\":%.9g,\"nearest\":%" PRId64 ",\"oldest\":%" PRId64, (double)event->spread_before, n->nearest,
          n->oldest);
  print_json_real(out, "low", n->low);
  print_json_real(out, "high", n->high);
  fprintf(out, ",\"compared\":%" PRIu32 ",\"reach\":%u}", n->compared, n->reach);
}

static void print_limit_json(FILE *out, const struct hankel_event *event)
{
  const struct hankel_limit *l = &event->limit;
  char limit[32];
  hk_number_text(l->limit, limit);
  fprintf(out, ",\"limit\":{\"limit\":%s", limit);
  fprintf(out, ",\"slope\":%.9g,\"earliest\":%" PRId64 ",\"reached\":%" PRId64, (double)l->slope, l->earliest, l->reached);
  if (l->latest < INT64_MAX)
    fprintf(out, ",\"latest\":%" PRId64, l->latest);
  else
    fputs(",\"latest\":null", out);
  fprintf(out, ",\"blocks\":%u}", l->blocks);
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
  fprintf(out, ",\"channel\":\"%s\",\"severity\":%.3f,\"level\":\"%s\",\"margin\":%.6g", hankel_channel_name(event->channel),
          (double)event->severity, hankel_severity_name(event->severity), (double)event->margin);
  fprintf(out, ",\"spread_before\":%.9g,\"spread_after\":%.9g", (double)event->spread_before, (double)event->spread_after);
  if (event->marks & HANKEL_MAINTENANCE)
    fputs(",\"maintenance\":true", out);
  if (event->marks & HANKEL_SECONDARY)
    fputs(",\"secondary\":true", out);
  if (event->marks & HANKEL_PROVISIONAL)
    fputs(",\"provisional\":true", out);
  if (event->marks & HANKEL_TRAVELS)
    fputs(",\"travels\":true", out);
  if (event->held > 0)
    fprintf(out, ",\"held\":%" PRIu32, event->held);
  if (event->likeness > 0)
    fprintf(out, ",\"similar\":%" PRIu32 ",\"similar_from\":%" PRId64 ",\"likeness\":%.3g", event->similar, event->similar_from,
            (double)event->likeness);
  if (event->novelty.kind != HANKEL_NO_NOVELTY)
    print_novelty_json(out, event);
  if (event->limit.blocks > 0)
    print_limit_json(out, event);
  if (event->by[0]) {
    fputs(",\"by\":", out);
    hk_print_json_string(out, event->by);
  }
  if (event->position > 0)
    fprintf(out, ",\"position\":%" PRIu64 ",\"sequence\":%" PRIu64, event->position, event->sequence);
  if (event->incident > 0)
    fprintf(out, ",\"incident\":%" PRIu64, event->incident);
  fputs("}\n", out);
}

/* A change on a line; `by` is the nearest sensor only in the event `raised`. */
static void print_travelling(FILE *out, const struct hankel_event *event)
{
  char *near = NULL;
  size_t size;
  FILE *name = event->kind == HANKEL_RAISED && event->by[0] ? open_memstream(&near, &size) : NULL;
  if (name) {
    hk_print_name(name, event->by);
    (void)fclose(name);
  }
  hk_focus_sentence(out, event, near ? near : "");
  free(near);
}

static void print_event_text(FILE *out, const struct hankel_event *event)
{
  char time[HK_TIMESTAMP_SIZE], instant[HK_TIMESTAMP_SIZE];
  hk_timestamp_format(event->time, time);
  if (is_notice(event->kind)) {
    fprintf(out, "%-19s  %s  ", time, event->kind == 4 ? "NO MORE POINTS from" : "POINTS AGAIN from");
    hk_print_name(out, event->name);
    fputc('\n', out);
    return;
  }
  hk_timestamp_format(event->instant, instant);
  fprintf(out, "%-19s  %6.4f  %-9s ", time, (double)event->score,
          event->kind == HANKEL_RAISED         ? "RAISED"
          : event->kind == HANKEL_CORRECTED    ? "CORRECTED"
          : event->kind == HANKEL_FLAPPING     ? "FLAPPING"
          : event->kind == HANKEL_ACKNOWLEDGED ? "ACKED"
                                               : "CLEARED");
  hk_print_name(out, event->name);
  fprintf(out, ":%" PRIu32 "  ", event->number);
  if (event->novelty.kind != HANKEL_NO_NOVELTY)
    hk_novelty_sentence(out, event);
  else if (event->marks & HANKEL_TRAVELS)
    print_travelling(out, event);
  else if (event->limit.blocks > 0 && event->kind != HANKEL_CLEARED)
    hk_limit_sentence(out, event);
  else if (event->limit.blocks > 0)
    fprintf(out, "the limit %.6g is no longer near", event->limit.limit);
  else
    fprintf(out, "changed %s, level %.6g +- %.3g -> %.6g +- %.3g", instant, event->before, (double)event->spread_before,
            event->after, (double)event->spread_after);
  fprintf(out, ", %s %.3g times its threshold", hankel_channel_name(event->channel), (double)event->margin);
  if (event->severity > 0)
    fprintf(out, ", severity %.1f (%s)", (double)event->severity, hankel_severity_name(event->severity));
  if (event->marks & HANKEL_MAINTENANCE)
    fputs(", in maintenance", out);
  if (event->marks & HANKEL_SECONDARY)
    fputs(", secondary", out);
  if (event->marks & HANKEL_PROVISIONAL)
    fputs(", provisional", out);
  if (event->held > 0)
    fprintf(out, ", %" PRIu32 " held back before", event->held);
  if (event->likeness > 0) {
    hk_timestamp_format(event->similar_from, instant);
    fprintf(out, ", now as from %s on (%.0f %%)", instant, 100 * (double)event->likeness);
  }
  if (event->by[0] && !((event->marks & HANKEL_TRAVELS) && event->kind == HANKEL_RAISED)) {
    fputs(", by ", out);
    hk_print_name(out, event->by);
  }
  if (event->incident > 0)
    fprintf(out, ", incident #%" PRIu64, event->incident);
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

void hk_print_incident(FILE *out, enum hk_format format, const struct hankel_incident *i)
{
  const size_t length = strlen(i->about);
  if (format == HK_FORMAT_JSONL) {
    fprintf(out, "%.*s", (int)length - 1, i->about); /* without the bracket at the end */
    if (i->position > 0)
      fprintf(out, ",\"position\":%" PRIu64, i->position);
    fputs("}\n", out);
  } else if (format == HK_FORMAT_CSV) {
    fprintf(out, "#incident,%" PRIu64 ",%s,%" PRId64 ",%.3f,%.3f,%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",", i->id,
            hankel_incident_name(i->kind), i->time, i->rank, i->severity, i->count, i->into, i->position);
    hk_print_csv_string(out, i->text);
    fputc('\n', out);
  } else {
    hk_print_name(out, i->text);
    if (i->position > 0)
      fprintf(out, "  [%" PRIu64 "]", i->position);
    fputc('\n', out);
  }
}
