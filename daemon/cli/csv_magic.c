/* See csv_magic.h. */
#include "daemon/cli/csv_magic.h"

#include <string.h>

bool hk_magic_packed(const unsigned char *head, size_t n, bool *more)
{
  static const struct {
    const char *bytes;
    size_t n;
  } kinds[] = { { "\x1f\x8b", 2 }, { "\x28\xb5\x2f\xfd", 4 }, { "\xfd\x37zXZ", 5 }, { "BZh", 3 } };
  *more = false;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const size_t compared = n < kinds[i].n ? n : kinds[i].n;
    if (memcmp(head, kinds[i].bytes, compared) != 0)
      continue;
    if (n >= kinds[i].n)
      return true;
    *more = true;
  }
  return false;
}

const char *hk_magic_other(const char *head, size_t n)
{
  if (n > 4 && memcmp(head, "PAR1", 4) == 0 && (unsigned char)head[4] < ' ') /* no header of a column has such a byte */
    return "this is Parquet, which is not read: convert it to CSV, as with duckdb -c \"copy (from 'x.parquet') to 'x.csv'\"";
  if (n >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "\xd0\xcf\x11\xe0", 4) == 0))
    return "this is a workbook of Excel or LibreOffice, or a zip, which is not read: save the sheet as CSV, or unpack it";
  return NULL;
}
