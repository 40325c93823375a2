/* Cells of a line. Quotes count only if a cell begins with one. */
#include "daemon/cli/csv_cells.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool csv_cells_is_blank(char c, char separator)
{
  return (c == ' ' || c == '\t') && c != separator;
}

/* Cuts the next cell from *rest, which becomes NULL after the last one. Returns NULL if a quote is not closed or text follows
 * it. */
static char *next_cell(char **rest, char separator)
{
  char *p = *rest, *cell, *end;
  while (csv_cells_is_blank(*p, separator))
    p++;
  if (*p == '"') {
    cell = end = ++p;
    for (; *p != '"' || p[1] == '"'; p++) {
      if (!*p)
        return NULL;
      p += *p == '"';
      *end++ = *p;
    }
    do
      p++;
    while (csv_cells_is_blank(*p, separator));
    if (*p && *p != separator)
      return NULL;
  } else {
    cell = p;
    p = strchrnul(p, separator);
    end = p;
    while (end > cell && csv_cells_is_blank(end[-1], separator))
      end--;
  }
  *rest = *p ? p + 1 : NULL;
  *end = 0;
  return cell;
}

int hk_cells_split(char *line, char separator, char **cell, uint32_t most, uint32_t *bad)
{
  uint32_t n = 0;
  for (char *rest = line; rest; n++) {
    *bad = n + 1;
    if (n == most && *rest == 0) /* a separator at the end of the line */
      break;
    if (n == most)
      return HK_CELLS_MANY;
    cell[n] = next_cell(&rest, separator);
    if (!cell[n])
      return HK_CELLS_QUOTES;
  }
  return (int)n;
}

uint32_t hk_cells_count(const char *line, char separator)
{
  uint32_t n = 1;
  bool quoted = false;
  for (const char *p = line; *p; p++) {
    quoted ^= *p == '"';
    n += !quoted && *p == separator;
  }
  return n;
}

char hk_cells_separator(const char *header, const char *data)
{
  static const char separators[] = ",;\t|";
  char best = ',';
  uint32_t most = 0;
  bool same = false;
  for (const char *s = separators; *s; s++) {
    const uint32_t n = hk_cells_count(header, *s);
    const bool as_often = data && n > 1 && hk_cells_count(data, *s) == n;
    if (n > 1 && (as_often > same || (as_often == same && n > most))) {
      best = *s;
      most = n;
      same = as_often;
    }
  }
  return best;
}

bool hk_csv_marks(const char *name)
{
  name += strspn(name, "'");
  return *name && strchr("=+-@#", *name);
}
