/* Makes sentences without control characters, because they contain text of the file. */
#include "daemon/cli/csv_tell.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void csv_tell_say(struct hk_csv *csv, char *text)
{
  for (char *p = text; *p; p++)
    if (iscntrl((unsigned char)*p))
      *p = '?';
  if (csv->config.tell && !csv->quiet)
    csv->config.tell(csv->config.arg, text);
}

void hk_csv_tell(struct hk_csv *csv, const char *format, ...)
{
  char text[768];
  va_list arguments;
  const int used = snprintf(text, sizeof text, "%.300s: ", csv->path);
  va_start(arguments, format);
  vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
  va_end(arguments);
  csv_tell_say(csv, text);
}

void hk_csv_tell_wrong(struct hk_csv *csv, const char *error)
{
  char text[768];
  snprintf(text, sizeof text, "%.700s: left out", error);
  csv_tell_say(csv, text);
}

int hk_csv_wrong_time(const struct hk_csv *csv, int status, const char *cell, char *error, size_t size)
{
  const uint64_t line = hk_csv_lines_number(csv->lines);
  if (status == -ERANGE)
    return hk_csv_wrong(csv->lines, line, error, size, "the time %.40s is out of range", cell);
  if (csv->times.format)
    return hk_csv_wrong(csv->lines, line, error, size, "\"%.40s\" is no time of --time-format %.40s", cell, csv->times.format);
  return hk_csv_wrong(csv->lines, line, error, size,
                      "\"%.40s\" is no time: want YYYY-MM-DD hh:mm:ss, ISO 8601, or an epoch number, or say --time-format", cell);
}

/* The format of a cell such as 01/02/2024 03:04 PM for --time-format, as far as there is room. */
static void format_of(const char *cell, bool day_first, char out[64])
{
  const char *parts = day_first ? "dmYHMS" : "mdYHMS";
  const bool half = strpbrk(cell, "AaPp") != NULL;
  size_t n = 0;
  for (const char *at = cell; *at && *parts && n + 4 < 64;) {
    const size_t digits = strspn(at, "0123456789");
    if (digits > 0) {
      const char part = *parts++;
      n += (size_t)snprintf(out + n, 64 - n, "%%%c", part == 'Y' && digits == 2 ? 'y' : part == 'H' && half ? 'I' : part);
      at += digits;
    } else if (strchr("AaPp", *at)) {
      break;
    } else {
      out[n++] = *at++;
    }
  }
  while (n > 0 && out[n - 1] == ' ')
    n--;
  snprintf(out + n, 64 - n, "%s", half ? " %p" : "");
}

int hk_csv_ask_order(const struct hk_csv *csv, const struct hk_csv_votes *votes, char *error, size_t size)
{
  char day[64], month[64];
  format_of(votes->shown, true, day);
  format_of(votes->shown, false, month);
  return hk_csv_wrong(csv->lines, votes->line, error, size,
                      "%.40s: the day may be first, or the month: say --time-format, as in '%s' or '%s'", votes->shown, day,
                      month);
}

void hk_csv_tell_times(struct hk_csv *csv, const struct hk_csv_votes *votes)
{
  static const char *const orders[] = { "year, month, day", "day, month, year", "month, day, year" };
  if (votes->times > 0)
    hk_csv_tell(csv, "times such as %s are taken as %s, in UTC (--time-format says otherwise)", votes->shown,
                orders[csv->times.order]);
  if (csv->config.unit > 0 && !csv->times.numbers && !csv->config.now)
    hk_csv_tell(csv, "--unit is not used: %s",
                csv->columns.time == HK_NO_COLUMN ? "there is no column of times" : "the times are dates");
}
