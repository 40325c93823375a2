#include "daemon/base/novelty_sentence.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS 1000000000
#define MS 1000000

void hk_timestamp_format(int64_t ns, char *out)
{
  struct tm tm;
  int64_t seconds = ns / NS, rest = ns % NS;
  if (rest < 0) {
    rest += NS;
    seconds--;
  }
  const time_t time = (time_t)seconds;
  gmtime_r(&time, &tm);
  size_t used = strftime(out, HK_TIMESTAMP_SIZE, "%Y-%m-%d %H:%M:%S", &tm);
  if (rest > 0) {
    used += (size_t)snprintf(out + used, HK_TIMESTAMP_SIZE - used, ".%09d", (int)rest);
    for (int i = 0; i < 2 && strcmp(out + used - 3, "000") == 0; i++)
      out[used -= 3] = 0;
  }
}

void hk_timestamp_say(int64_t ns, char *out)
{
  const int64_t part = ns % MS;
  hk_timestamp_format(ns - part - (part < 0 ? MS : 0), out);
}

/* n, with a comma before each three digits but the first. */
static void put_count(FILE *out, uint32_t n)
{
  if (n >= 1000000)
    fprintf(out, "%" PRIu32 ",%03" PRIu32 ",%03" PRIu32, n / 1000000, n / 1000 % 1000, n % 1000);
  else if (n >= 1000)
    fprintf(out, "%" PRIu32 ",%03" PRIu32, n / 1000, n % 1000);
  else
    fprintf(out, "%" PRIu32, n);
}

/* So many points, and how long they took: in the largest unit of which there are two. */
static void put_extent(FILE *out, uint32_t points, int64_t ns)
{
  static const struct {
    int64_t ns;
    const char *name;
  } units[] = { { 86400000000000, "days" }, { 3600000000000, "hours" }, { 60000000000, "minutes" },
                { 1000000000, "seconds" },  { 1000000, "ms" },          { 1, "ns" } };
  size_t i = 0;
  while (i + 1 < sizeof units / sizeof *units && ns / units[i].ns < 2)
    i++;
  put_count(out, points);
  fprintf(out, " points (%" PRId64 " %s)", ns / units[i].ns, units[i].name);
}

/* A number with so many digits at most, or more of them where it needs an exponent otherwise. */
static void put_number(FILE *out, double x, int digits)
{
  const bool whole = fabs(x) >= (digits == 3 ? 1e3 : 1e6) && fabs(x) < 1e15;
  fprintf(out, whole ? "%.0f" : digits == 3 ? "%.3g" : "%.6g", x);
}

/* Text with numbers at %v (six digits) and %u (three). */
static void put_numbers(FILE *out, const char *text, ...)
{
  va_list numbers;
  va_start(numbers, text);
  for (; *text; text++)
    if (*text == '%')
      put_number(out, va_arg(numbers, double), *++text == 'u' ? 3 : 6);
    else
      putc(*text, out);
  va_end(numbers);
}

void hk_novelty_sentence(FILE *out, const struct hankel_event *event)
{
  const struct hankel_novelty *n = &event->novelty;
  const double now = event->after, usual = (double)event->spread_before;
  char nearest[HK_TIMESTAMP_SIZE];
  hk_timestamp_say(n->nearest, nearest);
  if (n->kind == HANKEL_NOVELTY_VALUE) {
    put_numbers(out, "value %v ", now);
    fputs(now > n->high ? "is the highest in " : now < n->low ? "is the lowest in " : "was not seen in ", out);
  } else {
    fputs(n->kind == HANKEL_NOVELTY_CONTEXT ? "no such state in " : "shape not seen in ", out);
  }
  put_extent(out, n->compared, event->from - n->oldest);
  if (n->kind == HANKEL_NOVELTY_VALUE) {
    put_numbers(out, ": nearest %v at ", event->before);
    fputs(nearest, out);
    put_numbers(out, ", usual gap under %u, range %v to %v", usual, n->low, n->high);
  } else if (n->kind == HANKEL_NOVELTY_CONTEXT) {
    fprintf(out, ": mean of the last %u is ", n->reach);
    put_numbers(out, "%v, expected %v +- %u (nearest state at ", now, event->before, usual);
    fprintf(out, "%s)", nearest);
  } else {
    fprintf(out, ": differs from the nearest (%s) by ", nearest);
    put_numbers(out, "%u rms, usually under %u", now, usual);
  }
}
