/* Finds the header: the first line of only words with as many cells as the next line, which must hold data, or as the line
 * after a row of units. */
#include "daemon/cli/csv_header.h"
#include "daemon/cli/csv_cells.h"
#include "daemon/cli/csv_number.h"
#include "daemon/cli/csv_time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LOOKED_AT 60 /* lines */

/* What a line is made of. */
struct kind {
  uint32_t cells, data, words, times; /* data: cells with numbers or times; times: cells that name a time */
};

struct looked {
  char *text[LOOKED_AT];
  uint64_t number[LOOKED_AT];
  uint32_t n;
};

bool hk_csv_names_time(const char *name)
{
  static const char *const begins[] = { "time", "date", "datum", "zeit", "uhrzeit", "fecha", "hora", "heure" };
  static const char *const whole[] = { "ts", "t", "epoch" };
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
    if (strncasecmp(name, begins[i], strlen(begins[i])) == 0)
      return true;
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
    if (strcasecmp(name, whole[i]) == 0)
      return true;
  return false;
}

bool hk_csv_is_data(const char *cell)
{
  double number;
  return hk_csv_number(cell, HK_DECIMAL_AUTO, true, &number) || hk_csv_time_is_date(cell) || hk_date_is_time_of_day(cell);
}

/* Returns 0 or -ENOMEM; a line with an unclosed quote counts as having no cells. */
static int csv_header_look_at(const char *line, char separator, struct kind *kind)
{
  *kind = (struct kind){ .cells = hk_cells_count(line, separator) };
  char *copy = strdup(line), **cell = calloc(kind->cells, sizeof *cell);
  uint32_t bad;
  const int n = copy && cell ? hk_cells_split(copy, separator, cell, kind->cells, &bad) : 0;
  const int status = copy && cell ? 0 : -ENOMEM;
  if (n < 0)
    kind->cells = 0;
  for (int i = 0; i < n; i++) {
    kind->data += hk_csv_is_data(cell[i]);
    kind->words += *cell[i] && !hk_csv_is_data(cell[i]);
    kind->times += hk_csv_names_time(cell[i]);
  }
  if (n > 1 && !*cell[n - 1]) /* a separator at the end */
    kind->cells--;
  free(cell);
  free(copy);
  return status;
}

/* Whether line i is a header; *units: whether a row of units follows it. Returns 1, 0 or -ENOMEM. */
static int is_header(const struct looked *looked, uint32_t i, bool *units, char *separator)
{
  struct kind header, next, after = { 0 };
  if (i + 1 >= looked->n)
    return 0;
  *separator = hk_cells_separator(looked->text[i], looked->text[i + 1]);
  if (csv_header_look_at(looked->text[i], *separator, &header) < 0 ||
      csv_header_look_at(looked->text[i + 1], *separator, &next) < 0 ||
      (i + 2 < looked->n && csv_header_look_at(looked->text[i + 2], *separator, &after) < 0))
    return -ENOMEM;
  if (header.data > 0 || header.words == 0 || next.cells == 0 || next.cells > header.cells ||
      (header.cells > 1 && next.cells == 1))
    return 0;
  *units = next.data == 0 && header.cells > 1;
  if (*units)
    return next.words > 0 && after.data > 0 && after.cells <= header.cells && (next.times == 0 || header.times > 0);
  return next.data > 0;
}

static int csv_header_keep(struct hk_csv_header *out, const char *text, uint64_t line, char separator)
{
  out->text = strdup(text);
  out->line = line;
  out->separator = separator;
  return out->text ? 0 : -ENOMEM;
}

/* The text of a comment without its sign. */
static const char *bare(const char *line)
{
  return line + strspn(line, "# \t");
}

/* Whether a comment is the header of a line of data. Returns 1, 0 or -ENOMEM. */
static int is_commented_header(const char *comment, const char *data, char *separator)
{
  struct kind header, first;
  *separator = hk_cells_separator(bare(comment), data);
  if (csv_header_look_at(bare(comment), *separator, &header) < 0 || csv_header_look_at(data, *separator, &first) < 0)
    return -ENOMEM;
  return header.cells > 1 && header.cells == first.cells && header.data == 0 && first.words == 0;
}

static int csv_header_choose(const struct looked *looked, const struct looked *comments, struct hk_csv_header *out)
{
  bool units = false;
  char separator = ',';
  int status = 0;
  for (uint32_t k = comments->n; k > 0 && comments->number[k - 1] + 1 >= looked->number[0]; k = 0)
    if ((status = is_commented_header(comments->text[k - 1], looked->text[0], &separator)) != 0)
      return status < 0 ? status : csv_header_keep(out, bare(comments->text[k - 1]), comments->number[k - 1], separator);
  struct kind first;
  separator = hk_cells_separator(looked->text[0], looked->n > 1 ? looked->text[1] : NULL);
  if (csv_header_look_at(looked->text[0], separator, &first) < 0)
    return -ENOMEM;
  for (uint32_t i = 0; i < looked->n && !(first.cells == 1 && first.data == 1); i++) {
    char other;
    if ((status = is_header(looked, i, &units, &other)) < 0)
      return status;
    if (status == 0)
      continue;
    out->left_out = i;
    out->units_line = units ? looked->number[i + 1] : 0;
    return csv_header_keep(out, looked->text[i], looked->number[i], other);
  }
  return csv_header_keep(out, looked->text[0], looked->number[0], separator);
}

int hk_csv_header_find(struct hk_csv_lines *lines, struct hk_csv_header *out, char *error, size_t size)
{
  struct looked looked = { .n = 0 }, comments = { .n = 0 };
  char *line;
  int status = 1;
  while (looked.n < LOOKED_AT && (status = hk_csv_lines_next(lines, &line, error, size)) == 1) {
    struct looked *to = *line == '#' ? &comments : &looked;
    if (to->n == LOOKED_AT) /* comments: the first ones are not needed */
      free(to->text[--to->n]);
    to->number[to->n] = hk_csv_lines_number(lines);
    to->text[to->n] = strdup(line);
    if (!to->text[to->n++])
      status = -ENOMEM;
    if (status < 0)
      break;
  }
  const bool wrong_line = status < 0 && status != -ENOMEM;
  if ((status >= 0 || wrong_line) && looked.n > 0) /* an unreadable line is reported when it is reached */
    status = csv_header_choose(&looked, &comments, out);
  if (status == -ENOMEM)
    snprintf(error, size, "out of memory");
  for (uint32_t i = 0; i < looked.n; i++)
    free(looked.text[i]);
  for (uint32_t i = 0; i < comments.n; i++)
    free(comments.text[i]);
  return status < 0 ? status : 0;
}

int hk_csv_header_take(struct hk_csv_lines *lines, struct hk_csv_header *out, char *error, size_t size)
{
  char *line, *comment = NULL, separator;
  uint64_t comment_line = 0;
  int status;
  while ((status = hk_csv_lines_next(lines, &line, error, size)) == 1 && *line == '#') {
    free(comment);
    comment = strdup(line);
    comment_line = hk_csv_lines_number(lines);
    if (!comment) {
      status = -ENOMEM;
      break;
    }
  }
  const int commented = status == 1 && comment ? is_commented_header(comment, line, &separator) : 0;
  if (commented > 0) {
    status = csv_header_keep(out, bare(comment), comment_line, separator);
    out->ahead = line;
  } else if (status == 1) {
    status = commented < 0 ? commented : csv_header_keep(out, line, hk_csv_lines_number(lines), hk_cells_separator(line, NULL));
  }
  free(comment);
  if (status == -ENOMEM)
    snprintf(error, size, "out of memory");
  return status < 0 ? status : 0;
}

void hk_csv_header_free(struct hk_csv_header *header)
{
  free(header->text);
  header->text = NULL;
}
