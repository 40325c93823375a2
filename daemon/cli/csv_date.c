/* Parses times as people write them. A date that does not exist (30 February) is an error. */
#include "daemon/cli/csv_date.h"
#include "daemon/base/timestamp.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define NS 1000000000

struct field {
  int number, digits; /* 0 digits: the month has a name */
};

/* Skips blanks, including no-break spaces. */
static const char *csv_date_skip(const char *p)
{
  for (;;)
    if (*p == ' ' || *p == '\t')
      p++;
    else if (strncmp(p, "\xc2\xa0", 2) == 0)
      p += 2;
    else if (strncmp(p, "\xe2\x80\xaf", 3) == 0)
      p += 3;
    else
      return p;
}

/* Reads the digits at *p, at most nine. Returns their count. */
static int digits(const char **p, int *number)
{
  int n = 0;
  for (*number = 0; isdigit((unsigned char)**p) && n < 9; (*p)++, n++)
    *number = 10 * *number + (**p - '0');
  return n;
}

/* Reads the name of a month, or its first three letters. Returns its number, or 0. */
static int month(const char **p)
{
  static const char *const names[] = { "january", "february", "march",     "april",   "may",      "june",
                                       "july",    "august",   "september", "october", "november", "december" };
  size_t n = 0;
  while (isalpha((unsigned char)(*p)[n]))
    n++;
  for (int i = 0; i < 12 && n >= 3; i++)
    if (strncasecmp(names[i], *p, n) == 0 || (i == 8 && n == 4 && strncasecmp("sept", *p, 4) == 0)) {
      *p += n;
      return i + 1;
    }
  return 0;
}

static bool weekday(const char **p)
{
  static const char *const names[] = { "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday" };
  size_t n = 0;
  while (isalpha((unsigned char)(*p)[n]))
    n++;
  for (int i = 0; i < 7 && n >= 3; i++)
    if (strncasecmp(names[i], *p, n) == 0) {
      *p += n;
      *p += **p == ',' || **p == '.';
      *p = csv_date_skip(*p);
      return true;
    }
  return false;
}

/* Reads AM or PM, which may have points. Returns 1, 2, or 0 for neither. */
static int half(const char **p)
{
  const char *q = csv_date_skip(*p);
  const int which = toupper((unsigned char)*q) == 'A' ? 1 : toupper((unsigned char)*q) == 'P' ? 2 : 0;
  if (which == 0)
    return 0;
  q++;
  q += *q == '.';
  if (toupper((unsigned char)*q) != 'M')
    return 0;
  q++;
  *p = q + (*q == '.');
  return which;
}

/* Reads an optional fraction of a second after a point or comma; ignores digits after the ninth. */
static bool fraction(const char **p, int64_t *ns)
{
  *ns = 0;
  if (**p != '.' && **p != ',')
    return true;
  if (!isdigit((unsigned char)*++*p))
    return false;
  for (int64_t scale = NS / 10; isdigit((unsigned char)**p); (*p)++, scale /= 10)
    *ns += (**p - '0') * scale;
  return true;
}

/* Reads a time of day: h:mm, h:mm:ss and a fraction, or h alone with AM or PM, or hhmm and hhmmss. */
static bool csv_date_time_of_day(const char **p, struct tm *tm, int64_t *ns)
{
  int number;
  const int n = digits(p, &number);
  *ns = 0;
  if (n == 4 || n == 6) {
    tm->tm_hour = n == 4 ? number / 100 : number / 10000;
    tm->tm_min = n == 4 ? number % 100 : number / 100 % 100;
    tm->tm_sec = n == 4 ? 0 : number % 100;
    return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60 && fraction(p, ns);
  }
  if (n < 1 || n > 2)
    return false;
  tm->tm_hour = number;
  const bool minutes = **p == ':';
  if (minutes) {
    (*p)++;
    if (digits(p, &tm->tm_min) != 2)
      return false;
    if (**p == ':') {
      (*p)++;
      if (digits(p, &tm->tm_sec) != 2 || !fraction(p, ns))
        return false;
    }
  }
  const int which = half(p);
  if (which > 0) {
    if (tm->tm_hour < 1 || tm->tm_hour > 12)
      return false;
    tm->tm_hour = tm->tm_hour % 12 + (which == 2 ? 12 : 0);
  }
  return (minutes || which > 0) && tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

/* Reads Z, UTC, GMT, +hh, +hhmm, +hh:mm or nothing; returns seconds east of UTC. */
static bool offset(const char **p, int *seconds)
{
  int hours, minutes = 0;
  const char *q = csv_date_skip(*p);
  *seconds = 0;
  if (strcasecmp(q, "Z") == 0 || strcasecmp(q, "UTC") == 0 || strcasecmp(q, "GMT") == 0)
    q += strlen(q);
  if (*q == '+' || *q == '-') {
    const int sign = *q++ == '-' ? -1 : 1;
    const int n = digits(&q, &hours);
    if (n == 4) {
      minutes = hours % 100;
      hours /= 100;
    } else if (n != 2 || (*q == ':' && (q++, digits(&q, &minutes) != 2))) {
      return false;
    }
    *seconds = sign * (hours * 3600 + minutes * 60);
    if (hours > 23 || minutes > 59)
      return false;
  }
  *p = q;
  return true;
}

static int csv_date_whole(const struct tm *tm, int year, int64_t fraction_ns, int seconds, int64_t *ns)
{
  if (year < 1678 || year > 2261)
    return -ERANGE;
  int64_t days;
  if (hk_timestamp_days(year, tm->tm_mon + 1, tm->tm_mday, &days) < 0)
    return -EINVAL;
  *ns = (((days * 24 + tm->tm_hour) * 60 + tm->tm_min) * 60 + tm->tm_sec - seconds) * NS + fraction_ns;
  return 0;
}

/* Assigns the three numbers of a date to year, month and day. Returns the year, or -1 if this order does not fit. */
static int arrange(const struct field *field, int named, char between, enum hk_date_order order, struct tm *tm)
{
  int year = 2, day = order == HK_DATE_MDY ? 1 : 0, mon = 1 - day;
  if (field[0].digits == 4) {
    if (named < 0 && order != HK_DATE_YMD)
      return -1;
    year = 0;
    mon = named > 0 ? named : 1;
    day = 3 - mon;
  } else if (named >= 0) {
    mon = named;
    day = named == 0 ? 1 : 0;
  } else if (order == HK_DATE_YMD || (order == HK_DATE_MDY && between == '.')) {
    return -1;
  }
  if (mon == year || field[year].digits == 0 || (field[year].digits != 4 && field[year].digits != 2) || field[day].digits > 2 ||
      field[day].digits == 0 || field[mon].digits > 2 || field[mon].number < 1 || field[mon].number > 12)
    return -1;
  tm->tm_mon = field[mon].number - 1;
  tm->tm_mday = field[day].number;
  const int number = field[year].number;
  return field[year].digits == 4 ? number : number < 70 ? 2000 + number : 1900 + number;
}

/* Reads the three fields of a date. False: not a date. */
static bool fields(const char **p, struct field *field, int *named, char *between)
{
  *named = -1;
  *between = 0;
  for (int i = 0; i < 3; i++) {
    field[i].digits = digits(p, &field[i].number);
    if (field[i].digits == 0) {
      field[i].number = month(p);
      if (field[i].number == 0 || *named >= 0)
        return false;
      *named = i;
    }
    if (i == 2)
      break;
    const char sign = **p;
    if (sign != '.' && sign != '/' && sign != '-' && sign != ' ' && sign != ',')
      return false;
    if (*between && *named < 0 && sign != *between)
      return false;
    *between = sign;
    *p = csv_date_skip(*p + 1);
  }
  return true;
}

/* Reads yyyymmdd, optionally followed by hhmm or hhmmss. */
static bool compact(const char **p, struct tm *tm, int *year, bool *timed)
{
  const size_t n = strspn(*p, "0123456789");
  int number;
  const char *q = *p;
  if (n != 14 && (n != 8 || (q[8] != ' ' && q[8] != 'T')))
    return false;
  for (int i = 0; i < 3; i++) {
    number = 0;
    for (int k = i == 0 ? 4 : 2; k > 0; k--)
      number = 10 * number + (*q++ - '0');
    *(i == 0 ? year : i == 1 ? &tm->tm_mon : &tm->tm_mday) = number - (i == 1);
  }
  *timed = n == 14;
  *p = q;
  return tm->tm_mon >= 0 && tm->tm_mon < 12 && tm->tm_mday >= 1;
}

int hk_date_read(const char *text, enum hk_date_order order, int64_t *ns)
{
  struct tm tm = { 0 };
  struct field field[3];
  const char *p = csv_date_skip(text);
  int named, year, seconds = 0;
  int64_t fraction_ns = 0;
  char between;
  bool timed = false;
  if (weekday(&p) && !*p)
    return -EINVAL;
  if (compact(&p, &tm, &year, &timed)) {
    if (order != HK_DATE_YMD)
      return -EINVAL;
  } else if (!fields(&p, field, &named, &between) || (year = arrange(field, named, between, order, &tm)) < 0) {
    return -EINVAL;
  }
  if (*p == 'T' || *p == 't')
    p++;
  else
    p += *p == ',';
  p = csv_date_skip(p);
  if (isdigit((unsigned char)*p) && !csv_date_time_of_day(&p, &tm, &fraction_ns))
    return -EINVAL;
  if (!offset(&p, &seconds) || *csv_date_skip(p))
    return -EINVAL;
  return csv_date_whole(&tm, year, fraction_ns, seconds, ns);
}

int hk_date_by_format(const char *text, const char *format, int64_t *ns)
{
  char piece[128];
  struct tm tm = { .tm_mday = 1, .tm_year = 70 };
  int64_t fraction_ns = 0;
  const char *p = text;
  while (*format) {
    const char *f = strstr(format, "%f");
    const size_t n = f ? (size_t)(f - format) : strlen(format);
    if (n >= sizeof piece)
      return -EINVAL;
    memcpy(piece, format, n);
    piece[n] = 0;
    p = strptime(p, piece, &tm);
    format += n;
    if (!p)
      return -EINVAL;
    if (f) {
      if (!isdigit((unsigned char)*p))
        return -EINVAL;
      fraction_ns = 0;
      for (int64_t scale = NS / 10; isdigit((unsigned char)*p); p++, scale /= 10)
        fraction_ns += (*p - '0') * scale;
      format += 2;
    }
  }
  if (*csv_date_skip(p))
    return -EINVAL;
  const int east = (int)tm.tm_gmtoff;
  tm.tm_gmtoff = 0;
  return csv_date_whole(&tm, tm.tm_year + 1900, fraction_ns, east, ns);
}

bool hk_date_is_time_of_day(const char *text)
{
  struct tm tm = { 0 };
  int64_t ns;
  const char *p = csv_date_skip(text);
  return strchr(p, ':') && csv_date_time_of_day(&p, &tm, &ns) && !*csv_date_skip(p);
}
