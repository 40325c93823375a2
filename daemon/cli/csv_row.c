/* Lines of data into points. */
#include "daemon/cli/csv_row.h"
#include "daemon/cli/csv_cells.h"
#include "daemon/cli/csv_tell.h"
#include "proto/wire/name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND 1000000000
#define MOST_TOLD 10 /* bad cells that are shown one by one */

/* Handles a bad line: with skip_bad, reports, counts and skips it (0); otherwise returns its error. */
static int csv_row_pass_over(struct hk_csv *csv, int status, const char *error)
{
  if (status != -EINVAL || !csv->config.skip_bad)
    return status;
  csv->bad++;
  if (csv->told++ < MOST_TOLD)
    hk_csv_tell_wrong(csv, error);
  else if (csv->told == MOST_TOLD + 1)
    hk_csv_tell(csv, "more of these are counted, not shown");
  return 0;
}

/* Reads the next line; skips comments, the row of units and repeated headers. */
static int raw_line(struct hk_csv *csv, char **line, char *error, size_t size)
{
  for (;;) {
    int status = 1;
    *line = csv->ahead;
    csv->ahead = NULL;
    if (!*line)
      status = hk_csv_lines_next(csv->lines, line, error, size);
    if (status <= 0)
      return status;
    if (hk_csv_lines_latin(csv->lines) && !csv->told_latin && !csv->quiet) {
      csv->told_latin = true;
      hk_csv_tell(csv, "it is not UTF-8, and read as Windows-1252 (Latin-1)");
    }
    if (**line == '#' || (csv->surveyed && hk_csv_lines_number(csv->lines) == csv->header.units_line))
      continue;
    if (!csv->bare && strcmp(*line, csv->header.text) == 0)
      continue;
    return 1;
  }
}

int hk_csv_line(struct hk_csv *csv, char *error, size_t size)
{
  static char empty[] = "";
  const uint32_t n = csv->columns.n;
  char *text;
  uint32_t bad;
  const int status = raw_line(csv, &text, error, size);
  if (status <= 0)
    return status;
  if (csv->bare) {
    csv->cell[0] = text + strspn(text, " \t");
    return 1;
  }
  const int cells = hk_cells_split(text, csv->header.separator, csv->cell, n, &bad);
  if (cells == HK_CELLS_MANY)
    return hk_csv_wrong(csv->lines, hk_csv_lines_number(csv->lines), error, size, "more cells than the header has (%u)", n);
  if (cells < 0)
    return hk_csv_wrong(csv->lines, hk_csv_lines_number(csv->lines), error, size, "cell %u: the quotes are not closed", bad);
  for (uint32_t i = (uint32_t)cells; i < n; i++)
    csv->cell[i] = empty;
  return 1;
}

const char *hk_csv_time_cell(const struct hk_csv *csv, char *joined)
{
  const char *time = csv->cell[csv->columns.time];
  if (csv->columns.clock == HK_NO_COLUMN)
    return time;
  snprintf(joined, HK_CSV_JOINED, "%.60s %.60s", time, csv->cell[csv->columns.clock]);
  return joined;
}

/* The time of a line that has none, or whose time is ignored: a second after the last line's, or now, but later than the last
 * line's. */
static int64_t make_time(struct hk_csv *csv)
{
  struct timespec t;
  if (!csv->config.now) {
    csv->next_time += SECOND;
    return csv->next_time - SECOND;
  }
  clock_gettime(CLOCK_REALTIME, &t); /* no error is possible */
  const int64_t now = t.tv_sec * SECOND + t.tv_nsec;
  csv->next_time = now > csv->next_time ? now : csv->next_time;
  return csv->next_time++;
}

/* Examines the first line of data of a pipe: the format of times, and columns of text. Returns 1; 0 if it is a row of units;
 * or -EINVAL. */
static int csv_row_decide(struct hk_csv *csv, char *error, size_t size)
{
  struct hk_csv_votes votes = { 0 };
  char joined[HK_CSV_JOINED];
  uint32_t data = 0, text = 0;
  for (uint32_t i = 0; i < csv->columns.n; i++) {
    data += hk_csv_is_data(csv->cell[i]);
    text += !hk_csv_missing(csv->cell[i]) && !hk_csv_is_data(csv->cell[i]);
  }
  if (data == 0 && text > 1 && csv->columns.n > 1 && csv->header.units_line == 0) {
    csv->header.units_line = hk_csv_lines_number(csv->lines);
    hk_csv_tell(csv, "line %llu is taken as a row of units", (unsigned long long)csv->header.units_line);
    return 0;
  }
  csv->undecided = false;
  if (csv->columns.time == HK_NO_COLUMN || csv->config.now) {
    hk_csv_tell_times(csv, &votes);
    return 1;
  }
  if (!hk_csv_time_vote(&votes, &csv->times, hk_csv_time_cell(csv, joined), hk_csv_lines_number(csv->lines)))
    return 1; /* reported when it is read */
  if (!csv->times.format && !hk_csv_time_choose(&votes, &csv->times))
    return hk_csv_ask_order(csv, &votes, error, size);
  hk_csv_tell_times(csv, &votes);
  return 1;
}

/* The number of the sensor with the value in column i of the sensors; or a negative errno with a message. */
static int64_t csv_row_number_of(struct hk_csv *csv, uint32_t i, char *error, size_t size)
{
  if (csv->columns.named == HK_NO_COLUMN)
    return i;
  const char *name = csv->cell[csv->columns.named];
  if (!hk_name_valid(name, strlen(name)))
    return hk_csv_wrong(csv->lines, hk_csv_lines_number(csv->lines), error, size,
                        "\"%.40s\" cannot name a sensor: want 1 to %d bytes of UTF-8, no control characters", name, HK_NAME_MAX);
  const uint32_t number = hk_csv_names_number(&csv->names, name);
  if (number == UINT32_MAX)
    snprintf(error, size, "out of memory");
  return number == UINT32_MAX ? -ENOMEM : (int64_t)number;
}

/* Makes the points of the split line. Returns 0, or a negative errno with a message. */
static int values(struct hk_csv *csv, struct hk_csv_row *row, char *error, size_t size)
{
  const bool is_long = csv->columns.named != HK_NO_COLUMN;
  row->n = 0;
  for (uint32_t i = 0; i < csv->columns.sensors; i++) {
    const char *cell = csv->cell[csv->columns.column[i]];
    int status = 0;
    int64_t sensor = 0;
    if (hk_csv_missing(cell))
      continue;
    if (!hk_csv_number(cell, csv->decimal, csv->header.separator == ',', &csv->row_value[row->n]))
      status = hk_csv_wrong(csv->lines, hk_csv_lines_number(csv->lines), error, size, "\"%.40s\" is no number, of sensor %.80s%s",
                            cell, is_long ? csv->cell[csv->columns.named] : csv->columns.name[i],
                            csv->columns.sensors > 1 ? " (--column chooses columns)" : "");
    else if ((sensor = csv_row_number_of(csv, i, error, size)) < 0)
      status = (int)sensor;
    else
      csv->row_sensor[row->n++] = (uint32_t)sensor;
    if (status < 0 && (status = csv_row_pass_over(csv, status, error)) < 0)
      return status;
  }
  return 0;
}

/* Parses the time of the split line. Returns 0, or a negative errno with a message. */
static int csv_row_time_of(struct hk_csv *csv, int64_t *time, char *error, size_t size)
{
  char joined[HK_CSV_JOINED];
  if (csv->config.now || csv->columns.time == HK_NO_COLUMN) {
    *time = make_time(csv);
    return 0;
  }
  const char *cell = hk_csv_time_cell(csv, joined);
  const int status = hk_csv_time_read(&csv->times, cell, time);
  return status < 0 ? hk_csv_wrong_time(csv, status, cell, error, size) : 0;
}

int hk_csv_row(struct hk_csv *csv, struct hk_csv_row *row, char *error, size_t size)
{
  row->sensor = csv->row_sensor;
  row->value = csv->row_value;
  for (;;) {
    int status = hk_csv_line(csv, error, size);
    if (status == 0)
      return 0;
    if (status > 0 && csv->undecided && (status = csv_row_decide(csv, error, size)) == 0)
      continue;
    if (status > 0)
      status = csv_row_time_of(csv, &row->time, error, size);
    if (status < 0) {
      if ((status = csv_row_pass_over(csv, status, error)) < 0)
        return status;
      continue;
    }
    if ((status = values(csv, row, error, size)) < 0)
      return status;
    if (row->n > 0)
      return 1;
  }
}
