/* Durations: numbers and units, summed up. */
#include "cpu/duration.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The unit of a name of `length` bytes, in ns; 0: there is none of that name. M is no month here, so only m is a minute. */
static double unit_of(const char *name, size_t length)
{
  static const struct {
    const char *name;
    double ns;
  } units[] = { { "ns", 1 },
                { "nsec", 1 },
                { "us", 1e3 },
                { "\xc2\xb5s", 1e3 },
                { "\xce\xbcs", 1e3 },
                { "usec", 1e3 },
                { "ms", 1e6 },
                { "msec", 1e6 },
                { "s", 1e9 },
                { "sec", 1e9 },
                { "secs", 1e9 },
                { "second", 1e9 },
                { "seconds", 1e9 },
                { "m", 60e9 },
                { "min", 60e9 },
                { "mins", 60e9 },
                { "minute", 60e9 },
                { "minutes", 60e9 },
                { "h", 3600e9 },
                { "hr", 3600e9 },
                { "hrs", 3600e9 },
                { "hour", 3600e9 },
                { "hours", 3600e9 },
                { "d", 86400e9 },
                { "day", 86400e9 },
                { "days", 86400e9 },
                { "w", 7 * 86400e9 },
                { "week", 7 * 86400e9 },
                { "weeks", 7 * 86400e9 } };
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strlen(units[i].name) == length && strncmp(units[i].name, name, length) == 0)
      return units[i].ns;
  return 0;
}

/* Skips blanks, and what may stand between two parts. */
static const char *skip(const char *p)
{
  p += strspn(p, " \t");
  if (*p == ',')
    p += 1 + strspn(p + 1, " \t");
  if (strncmp(p, "and ", 4) == 0)
    p += 4 + strspn(p + 4, " ");
  return p;
}

int hk_duration_parse(const char *text, int64_t *ns)
{
  double total = 0, last = INFINITY;
  const char *p = text + strspn(text, " \t");
  while (last > 0) {
    char *end;
    if (!isdigit((unsigned char)*p) && *p != '.')
      return -EINVAL;
    errno = 0;
    const double number = strtod(p, &end);
    if (end == p || errno != 0 || strncmp(p, "0x", 2) == 0 || strncmp(p, "0X", 2) == 0)
      return -EINVAL;
    p = end + strspn(end, " \t");
    const size_t length = strcspn(p, " \t,.0123456789");
    double unit = unit_of(p, length);
    if (length == 0 && !*p && last == INFINITY)
      unit = 1e9;
    if (unit == 0 || unit >= last)
      return -EINVAL;
    total += number * unit;
    last = unit;
    p += length;
    if (!*(p + strspn(p, " \t")))
      break;
    p = skip(p);
  }
  if (!(total >= 1 && total <= 9e18))
    return -EINVAL;
  *ns = (int64_t)llround(total);
  return 0;
}
