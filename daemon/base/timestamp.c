/* Times as text. */
#include "daemon/base/timestamp.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS 1000000000

bool hk_timestamp_is_date(const char *text)
{
  return strnlen(text, 8) == 8 && text[4] == '-' && text[7] == '-';
}

/* Takes exactly n digits. */
static bool timestamp_take(const char **p, int n, int *out)
{
  *out = 0;
  for (int i = 0; i < n; i++, (*p)++) {
    if (!isdigit((unsigned char)**p))
      return false;
    *out = 10 * *out + (**p - '0');
  }
  return true;
}

/* Takes a fraction's digits; those past the ninth are read and cut off. */
static bool take_fraction(const char **p, int *ns)
{
  int scale = NS / 10;
  *ns = 0;
  if (!isdigit((unsigned char)**p))
    return false;
  for (; isdigit((unsigned char)**p); (*p)++, scale /= 10)
    *ns += (**p - '0') * scale;
  return true;
}

/* Takes nothing, Z, +hh, +hhmm or +hh:mm; seconds east of UTC. */
static bool take_offset(const char **p, int *seconds)
{
  int hours, minutes = 0;
  *seconds = 0;
  if (**p == 'Z' || **p == 'z') {
    (*p)++;
    return true;
  }
  if (**p != '+' && **p != '-')
    return true;
  const int sign = *(*p)++ == '-' ? -1 : 1;
  if (!timestamp_take(p, 2, &hours))
    return false;
  if (**p == ':')
    (*p)++;
  if (**p && !timestamp_take(p, 2, &minutes))
    return false;
  *seconds = sign * (hours * 3600 + minutes * 60);
  return hours <= 23 && minutes <= 59;
}

int hk_timestamp_days(int year, int month, int day, int64_t *days)
{
  static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
  if (month < 1 || month > 12 || day < 1)
    return -EINVAL;
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  if (day > lengths[month - 1] + (leap && month == 2))
    return -EINVAL;
  const int64_t y = year - (month <= 2), m = (month + 9) % 12; /* from March on, so that leap days end a year */
  *days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 719469;
  return 0;
}

int hk_timestamp_parse_date(const char *text, int64_t *ns)
{
  int year, month, day, hour = 0, minute = 0, second = 0, fraction = 0, offset = 0;
  int64_t days;
  const char *p = text;
  if (!timestamp_take(&p, 4, &year) || *p++ != '-' || !timestamp_take(&p, 2, &month) || *p++ != '-' ||
      !timestamp_take(&p, 2, &day))
    return -EINVAL;
  if (*p == 'T' || *p == 't' || *p == ' ') {
    p++;
    if (!timestamp_take(&p, 2, &hour) || *p++ != ':' || !timestamp_take(&p, 2, &minute))
      return -EINVAL;
    if (*p == ':') {
      p++;
      if (!timestamp_take(&p, 2, &second))
        return -EINVAL;
      if (*p == '.' || *p == ',') {
        p++;
        if (!take_fraction(&p, &fraction))
          return -EINVAL;
      }
    }
    while (*p == ' ')
      p++;
    if (!take_offset(&p, &offset))
      return -EINVAL;
  }
  if (*p || hour > 23 || minute > 59 || second > 60)
    return -EINVAL;
  if (year < 1678 || year > 2261)
    return -ERANGE;
  if (hk_timestamp_days(year, month, day, &days) < 0)
    return -EINVAL;
  *ns = (((days * 24 + hour) * 60 + minute) * 60 + second - offset) * NS + fraction;
  return 0;
}

int64_t hk_timestamp_guess_unit(const char *text)
{
  const double size = fabs(strtod(text, NULL));
  return size < 1e11 ? NS : size < 1e14 ? 1000000 : size < 1e17 ? 1000 : 1;
}

int hk_timestamp_parse_epoch(const char *text, int64_t unit, int64_t *ns)
{
  const char *p = text;
  const bool minus = *p == '-';
  if (*p == '-' || *p == '+')
    p++;
  if (!isdigit((unsigned char)*p))
    return -EINVAL;
  int64_t whole = 0, part = 0, scale = unit;
  bool over = false;
  for (; isdigit((unsigned char)*p); p++)
    over = over || __builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, *p - '0', &whole);
  if (*p == '.')
    for (p++; isdigit((unsigned char)*p); p++) {
      scale /= 10;
      part += (*p - '0') * scale;
    }
  if (*p == 'e' || *p == 'E') { /* rare, as some programs write large numbers: exact as far as long double goes */
    char *end;
    const long double number = strtold(text, &end) * (long double)unit;
    if (*end)
      return -EINVAL;
    if (!(fabsl(number) < 9.2e18L))
      return -ERANGE;
    *ns = (int64_t)llroundl(number);
    return 0;
  }
  if (*p)
    return -EINVAL;
  if (over || __builtin_mul_overflow(whole, unit, &whole) || __builtin_add_overflow(whole, part, &whole))
    return -ERANGE;
  *ns = minus ? -whole : whole;
  return 0;
}
