/* Parses numbers of tables. Numbers without commas and groups take a fast path. */
#include "daemon/cli/csv_number.h"
#include "proto/line/number.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LONGEST 64 /* bytes of a grouped number, without separators */

unsigned hk_decimal_seen(const char *cell)
{
  const char *p = cell + (*cell == '-' || *cell == '+'), *first = NULL, *last = NULL;
  const size_t length = strcspn(p, "eE"), before = strcspn(p, ".,");
  unsigned marks = 0;
  for (size_t i = 0; i < length; i++)
    if (p[i] == '.' || p[i] == ',') {
      first = first ? first : p + i;
      last = p + i;
      marks++;
    }
  if (marks == 0)
    return 0;
  const bool comma = *last == ',';
  if (*first != *last)
    return comma ? HK_SEEN_COMMA : HK_SEEN_POINT;
  if (marks > 1) /* only a thousands separator occurs twice */
    return comma ? HK_SEEN_POINT : HK_SEEN_COMMA;
  if ((size_t)(p + length - last) != 4 || before == 0 || before > 3 || *p == '0')
    return comma ? HK_SEEN_COMMA : HK_SEEN_POINT;
  return comma ? HK_SEEN_EITHER : 0;
}

/* Size of the thousands separator at p other than comma or point; 0: none. */
static size_t group_sign(const char *p)
{
  static const char *const signs[] = { "'", " ", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x99" };
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (strncmp(p, signs[i], strlen(signs[i])) == 0)
      return strlen(signs[i]);
  return 0;
}

/* Copies a number without separators, with a point before the fraction. False if a group does not have three digits. */
static bool csv_number_plain(const char *cell, char point, char *out)
{
  const char group = point == '.' ? ',' : '.';
  size_t used = 0, digits = 0, groups = 0;
  bool fraction = false;
  const char *p = cell;
  if (*p == '-' || *p == '+')
    out[used++] = *p++;
  for (; *p; p++) {
    const size_t sign = fraction ? 0 : *p == group ? 1 : group_sign(p);
    if (used + 2 >= LONGEST)
      return false;
    if (sign > 0) {
      if (groups > 0 ? digits != 3 : digits < 1 || digits > 3)
        return false;
      groups++;
      digits = 0;
      p += sign - 1;
    } else if (*p == point && !fraction) {
      fraction = true;
      out[used++] = '.';
      if (groups > 0 && digits != 3)
        return false;
    } else if (isdigit((unsigned char)*p)) {
      digits++;
      out[used++] = *p;
    } else if ((*p == 'e' || *p == 'E') && groups == 0) {
      strcpy(out + used, strlen(p) < LONGEST - used ? p : "");
      return strlen(p) < LONGEST - used;
    } else {
      return false;
    }
  }
  out[used] = 0;
  return fraction || groups == 0 || digits == 3;
}

static bool csv_number_whole(const char *text, double *out)
{
  size_t used;
  if (hk_number_parse(text, strlen(text), out, &used) == 0 && !text[used])
    return true;
  char *end;
  *out = strtod(text, &end);
  return end != text && !*end && !isfinite(*out);
}

bool hk_csv_number(const char *cell, enum hk_decimal decimal, bool apart, double *out)
{
  char text[LONGEST];
  if (decimal != HK_DECIMAL_COMMA && csv_number_whole(cell, out))
    return true;
  if (decimal == HK_DECIMAL_AUTO) {
    const unsigned seen = hk_decimal_seen(cell);
    decimal = seen == HK_SEEN_COMMA || (seen == HK_SEEN_EITHER && !apart) ? HK_DECIMAL_COMMA : HK_DECIMAL_POINT;
  }
  if (csv_number_plain(cell, decimal == HK_DECIMAL_COMMA ? ',' : '.', text))
    return csv_number_whole(text, out);
  return decimal == HK_DECIMAL_COMMA && !strpbrk(cell, ".,") && csv_number_whole(cell, out); /* nan and inf */
}

bool hk_csv_missing(const char *cell)
{
  static const char *const words[] = { "null", "na", "n/a", "none", "-", "--" };
  if ((unsigned char)(*cell - '0') < 10) /* most cells; none of the words begins with a digit */
    return false;
  if (!*cell)
    return true;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcasecmp(cell, words[i]) == 0)
      return true;
  return false;
}
