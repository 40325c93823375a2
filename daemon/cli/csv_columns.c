/* Columns of a recording, by its header. */
#include "daemon/cli/csv_columns.h"
#include "daemon/cli/csv_cells.h"
#include "daemon/cli/csv_header.h"
#include "proto/wire/name.h"

#include "cpu/suggest.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Begins a message with its place in the file. */
struct place {
  const struct hk_csv_lines *lines;
  uint64_t line;
  char *error;
  size_t size;
};

#define WRONG(place, ...) hk_csv_wrong((place)->lines, (place)->line, (place)->error, (place)->size, __VA_ARGS__)

static int csv_columns_no_memory(const struct place *place)
{
  snprintf(place->error, place->size, "out of memory");
  return -ENOMEM;
}

static bool csv_columns_is_wanted(const struct hk_csv_config *config, const char *header)
{
  bool wanted = config->n_columns == 0;
  for (uint32_t i = 0; i < config->n_columns && !wanted; i++)
    wanted = strcmp(config->columns[i], header) == 0;
  return wanted;
}

static uint32_t csv_columns_find(const struct hk_csv_columns *columns, const char *header)
{
  uint32_t at = 0;
  while (at < columns->n && strcmp(columns->header[at], header) != 0)
    at++;
  return at < columns->n ? at : HK_NO_COLUMN;
}

#define LISTED 120 /* bytes of a list of headers */

/* There is no column of that header: says which one may be meant, or which there are. Returns -EINVAL. */
static int csv_columns_lacks(const struct hk_csv_columns *columns, const char *option, const char *header,
                             const struct place *place)
{
  const char *meant = hk_suggest(header, (const char *const *)columns->header, columns->n, sizeof *columns->header);
  char all[LISTED] = "";
  uint32_t n = 0;
  for (size_t used = 0; n < columns->n && used + strlen(columns->header[n]) + 3 < sizeof all; n++)
    used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", n > 0 ? ", " : "", columns->header[n]);
  if (meant)
    return WRONG(place, "%sno column is named %.80s; did you mean %.80s?", option, header, meant);
  return WRONG(place, "%sno column is named %.80s; there are %s%s", option, header, all, n < columns->n ? ", and others" : "");
}

static int add_sensor(struct hk_csv_columns *columns, uint32_t column, const char *name, const struct place *place)
{
  if (!hk_name_valid(name, strlen(name)))
    return WRONG(place, "\"%.40s\" cannot name a sensor: want 1 to %d bytes of UTF-8, no control characters", name, HK_NAME_MAX);
  columns->column[columns->sensors] = column;
  columns->name[columns->sensors] = strdup(name);
  return columns->name[columns->sensors++] ? 0 : csv_columns_no_memory(place);
}

static int compare_headers(const void *a, const void *b)
{
  char *const *x = *(char **const *)a, *const *y = *(char **const *)b;
  const int order = strcmp(*x, *y);
  return order != 0 ? order : (x > y) - (x < y);
}

/* Numbers repeated headers: a, a (2), a (3). */
static int make_unique(struct hk_csv_columns *columns, char **owned, const struct place *place)
{
  char ***sorted = malloc(columns->n * sizeof *sorted), text[HK_NAME_MAX + 16];
  if (!sorted)
    return csv_columns_no_memory(place);
  for (uint32_t i = 0; i < columns->n; i++)
    sorted[i] = &columns->header[i];
  qsort(sorted, columns->n, sizeof *sorted, compare_headers);
  for (uint32_t i = 1, number = 2; i < columns->n; i++) {
    if (strcmp(*sorted[i - 1], *sorted[i]) != 0 || !**sorted[i]) {
      number = 2;
      continue;
    }
    do
      snprintf(text, sizeof text, "%.*s (%u)", HK_NAME_MAX, *sorted[i], number++);
    while (csv_columns_find(columns, text) != HK_NO_COLUMN);
    if (!(owned[sorted[i] - columns->header] = strdup(text))) {
      free(sorted);
      return csv_columns_no_memory(place);
    }
    const size_t used = strlen(columns->repeated);
    snprintf(columns->repeated + used, sizeof columns->repeated - used, "%s%.40s", used > 0 ? ", " : "", text);
  }
  for (uint32_t i = 0; i < columns->n; i++)
    columns->header[i] = owned[i] ? owned[i] : columns->header[i];
  free(sorted);
  return 0;
}

static bool csv_columns_begins(const char *name, const char *const *words)
{
  for (; *words; words++)
    if (strncasecmp(name, *words, strlen(*words)) == 0)
      return true;
  return false;
}

/* Whether one header names a date and another, which is *clock, the time of day. */
static bool find_clock(const struct hk_csv_columns *columns, uint32_t *date, uint32_t *clock)
{
  static const char *const dates[] = { "date", "datum", "fecha", NULL };
  static const char *const whole[] = { "datetime", "date time", "date/time", "date_time", "date-time", "dateandtime", NULL };
  static const char *const times[] = { "time", "zeit", "uhrzeit", "hora", "heure", NULL };
  static const char *const stamps[] = { "timestamp", "time stamp", "time_stamp", "zeitstempel", "timeout", "time of ", NULL };
  *date = *clock = HK_NO_COLUMN;
  for (uint32_t i = columns->n; i-- > 0;) {
    const char *name = columns->header[i];
    if (csv_columns_begins(name, dates) && !csv_columns_begins(name, whole))
      *date = i;
    if (csv_columns_begins(name, times) && !csv_columns_begins(name, stamps))
      *clock = i;
  }
  return *date != HK_NO_COLUMN && *clock != HK_NO_COLUMN;
}

static void find_time(struct hk_csv_columns *columns, const struct hk_csv_config *config)
{
  uint32_t date, clock;
  for (columns->time = 0; columns->time < columns->n && !hk_csv_names_time(columns->header[columns->time]);)
    columns->time++;
  columns->time_named = columns->time < columns->n;
  if (!columns->time_named)
    columns->time = columns->n == 1 || config->now ? HK_NO_COLUMN : 0;
  if (find_clock(columns, &date, &clock)) {
    columns->time = date;
    columns->clock = clock;
  }
}

/* Checks that every wanted column exists, and that at least one sensor remains. */
int hk_csv_columns_check(const struct hk_csv_columns *columns, const struct hk_csv_config *config,
                         const struct hk_csv_lines *lines, uint64_t line, char *error, size_t size)
{
  const struct place place = { lines, line, error, size };
  for (uint32_t i = 0; i < config->n_columns; i++) {
    const uint32_t at = csv_columns_find(columns, config->columns[i]);
    if (at == HK_NO_COLUMN)
      return csv_columns_lacks(columns, "", config->columns[i], &place);
    if (at == columns->time || at == columns->clock)
      return WRONG(&place, "column %.80s is the time, not a sensor", config->columns[i]);
  }
  if (columns->sensors == 0)
    return WRONG(&place, "no value column: want a header such as time,NAME (cells apart by , ; or a tab) or one number a line");
  if (columns->sensors > 1 && config->sensor)
    return WRONG(&place, "--sensor names one sensor but there are %u value columns: choose one with --column", columns->sensors);
  return 0;
}

static int add_sensors(struct hk_csv_columns *columns, const struct hk_csv_config *config, const struct place *place)
{
  int status = 0;
  if (config->long_sensor) {
    columns->named = csv_columns_find(columns, config->long_sensor);
    const uint32_t value = csv_columns_find(columns, config->long_value);
    if (columns->named == HK_NO_COLUMN || value == HK_NO_COLUMN)
      return csv_columns_lacks(columns, "--long: ", columns->named == HK_NO_COLUMN ? config->long_sensor : config->long_value,
                               place);
    if (columns->named == columns->time || value == columns->time || value == columns->named)
      return WRONG(place, "--long: the time, the sensor and the value are to be three columns");
    return add_sensor(columns, value, config->long_value, place);
  }
  for (uint32_t i = 0; i < columns->n && status == 0; i++) {
    const char *header = columns->header[i];
    if (i == columns->time || i == columns->clock || !*header || !csv_columns_is_wanted(config, header))
      continue;
    status = add_sensor(columns, i, config->sensor && columns->sensors == 0 ? config->sensor : header, place);
  }
  return status;
}

static int csv_columns_make_room(struct hk_csv_columns *columns, uint32_t n)
{
  columns->n = n;
  columns->time = columns->clock = columns->named = HK_NO_COLUMN;
  columns->header = calloc(2 * (size_t)n, sizeof *columns->header); /* behind the cells, those that are of this memory */
  columns->column = calloc(n, sizeof *columns->column);
  columns->name = calloc(n, sizeof *columns->name);
  return columns->header && columns->column && columns->name ? 0 : -ENOMEM;
}

int hk_csv_columns_make(struct hk_csv_columns *out, const struct hk_csv_config *config, const struct hk_csv_lines *lines,
                        uint64_t line, const char *header, char separator, char *error, size_t size)
{
  const struct place place = { lines, line, error, size };
  static char empty[] = "";
  const uint32_t n = hk_cells_count(header, separator);
  uint32_t bad;
  out->text = strdup(header);
  if (csv_columns_make_room(out, n) < 0 || !out->text)
    return csv_columns_no_memory(&place);
  const int cells = hk_cells_split(out->text, separator, out->header, n, &bad);
  if (cells < 0)
    return WRONG(&place, "cell %u: the quotes are not closed", bad);
  for (uint32_t i = (uint32_t)cells; i < n; i++)
    out->header[i] = empty;
  for (uint32_t i = 0; i < n; i++) {
    double number;
    if (hk_csv_number(out->header[i], HK_DECIMAL_AUTO, separator == ',', &number))
      return WRONG(&place, "the first line must be a header, but \"%.40s\" is a number", out->header[i]);
    out->header[i] += out->header[i][0] == '\'' && hk_csv_marks(out->header[i]);
  }
  find_time(out, config);
  for (char *p = out->time == HK_NO_COLUMN ? empty : out->header[out->time]; *p; p++) /* it is shown */
    if (iscntrl((unsigned char)*p))
      *p = '?';
  int status = make_unique(out, out->header + n, &place);
  if (status == 0)
    status = add_sensors(out, config, &place);
  return status;
}

int hk_csv_columns_bare(struct hk_csv_columns *out, const struct hk_csv_config *config, const struct hk_csv_lines *lines,
                        uint64_t line, char *error, size_t size)
{
  const struct place place = { lines, line, error, size };
  static char none[] = "";
  const char *slash = strrchr(config->path, '/');
  char name[256];
  if (csv_columns_make_room(out, 1) < 0)
    return csv_columns_no_memory(&place);
  out->header[0] = none;
  snprintf(name, sizeof name, "%s", strcmp(config->path, "-") == 0 ? "stdin" : slash ? slash + 1 : config->path);
  char *dot = strrchr(name, '.');
  if (dot && dot != name)
    *dot = 0;
  if (config->n_columns > 0)
    return WRONG(&place, "no column is named %.80s: the file has bare numbers", config->columns[0]);
  if (config->long_sensor)
    return WRONG(&place, "--long: the file has bare numbers");
  return add_sensor(out, 0, config->sensor ? config->sensor : name, &place);
}

void hk_csv_columns_leave(struct hk_csv_columns *columns, const bool *left_out)
{
  uint32_t kept = 0;
  for (uint32_t i = 0; i < columns->sensors; i++) {
    if (left_out[i]) {
      free(columns->name[i]);
      continue;
    }
    columns->name[kept] = columns->name[i];
    columns->column[kept++] = columns->column[i];
  }
  columns->sensors = kept;
}

void hk_csv_columns_free(struct hk_csv_columns *columns)
{
  for (uint32_t i = 0; i < columns->sensors; i++)
    free(columns->name[i]);
  for (uint32_t i = 0; columns->header && i < columns->n; i++)
    free(columns->header[columns->n + i]);
  free(columns->name);
  free(columns->column);
  free(columns->header);
  free(columns->text);
}
