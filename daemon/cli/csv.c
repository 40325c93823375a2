/* Reader of recordings: opens files, and answers questions about them. csv_row.c turns lines into points. */
#include "daemon/cli/csv.h"
#include "daemon/cli/csv_cells.h"
#include "daemon/cli/csv_reader.h"
#include "daemon/cli/csv_row.h"
#include "daemon/cli/csv_survey.h"
#include "daemon/cli/csv_tell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds the header; the next line read is the one after it. Returns 0, or a negative errno with a message. */
static int find_header(struct hk_csv *csv, char *error, size_t size)
{
  char *line;
  if (!csv->surveyed)
    return hk_csv_header_take(csv->lines, &csv->header, error, size);
  int status = hk_csv_header_find(csv->lines, &csv->header, error, size);
  if (status == 0 && csv->header.left_out > 0)
    hk_csv_tell(csv, "%llu line%s before the header, which is line %llu, left out", (unsigned long long)csv->header.left_out,
                csv->header.left_out > 1 ? "s" : "", (unsigned long long)csv->header.line);
  if (status == 0 && csv->header.units_line > 0)
    hk_csv_tell(csv, "line %llu is taken as a row of units", (unsigned long long)csv->header.units_line);
  if (status == 0)
    status = hk_csv_lines_rewind(csv->lines, error, size);
  while (status == 0 && csv->header.text && hk_csv_lines_number(csv->lines) < csv->header.line) {
    status = hk_csv_lines_next(csv->lines, &line, error, size);
    if (status == 0) /* the file has become shorter */
      return -EIO;
    csv->ahead = status > 0 ? line : NULL;
    status = status > 0 ? 0 : status;
  }
  return status;
}

/* Makes columns from the header. Returns 0, or a negative errno with a message. */
static int read_header(struct hk_csv *csv, char *error, size_t size)
{
  int status = find_header(csv, error, size);
  double number;
  if (status < 0)
    return status;
  if (!csv->header.text) {
    snprintf(error, size, "%s: empty, no points", csv->path);
    return -EINVAL;
  }
  const struct hk_csv_header *header = &csv->header;
  csv->bare = hk_cells_count(header->text, header->separator) == 1 &&
              hk_csv_number(header->text + strspn(header->text, " \t"), csv->decimal, true, &number);
  if (csv->bare)
    status = hk_csv_columns_bare(&csv->columns, &csv->config, csv->lines, header->line, error, size);
  else
    status =
        hk_csv_columns_make(&csv->columns, &csv->config, csv->lines, header->line, header->text, header->separator, error, size);
  if (!csv->surveyed)
    csv->ahead = csv->bare ? header->text : header->ahead;
  else if (!csv->bare)
    csv->ahead = NULL;
  if (status == 0 && csv->columns.repeated[0])
    hk_csv_tell(csv, "headers that stand more than once have a number now: %s", csv->columns.repeated);
  if (status < 0)
    return status;
  csv->cell = calloc(csv->columns.n, sizeof *csv->cell);
  csv->row_sensor = calloc(csv->columns.n, sizeof *csv->row_sensor);
  csv->row_value = calloc(csv->columns.n, sizeof *csv->row_value);
  return csv->cell && csv->row_sensor && csv->row_value ? 0 : -ENOMEM;
}

/* Goes back to the line after the header. */
static int back_to_data(struct hk_csv *csv, char *error, size_t size)
{
  char *line = NULL;
  const uint64_t header = csv->bare ? csv->header.line - 1 : csv->header.line;
  int status = hk_csv_lines_rewind(csv->lines, error, size);
  while (status == 0 && hk_csv_lines_number(csv->lines) < header)
    status = hk_csv_lines_next(csv->lines, &line, error, size) == 1 ? 0 : -EIO;
  csv->ahead = status == 0 && hk_csv_lines_number(csv->lines) > header ? line : NULL; /* blank lines stood before bare numbers */
  return status;
}

/* Reads all points into memory and sorts them. */
static int csv_sort(struct hk_csv *csv, char *error, size_t size)
{
  struct hk_csv_row row;
  int status;
  while ((status = hk_csv_row(csv, &row, error, size)) == 1)
    for (uint32_t i = 0; i < row.n; i++)
      if (hk_csv_sorted_put(&csv->sorted, row.time, row.sensor[i], row.value[i]) < 0)
        return -ENOMEM;
  hk_csv_sorted_sort(&csv->sorted);
  return status;
}

static int csv_begin(struct hk_csv *csv, char *error, size_t size)
{
  int status = read_header(csv, error, size);
  if (status < 0)
    return status;
  csv->undecided = !csv->surveyed && !csv->bare;
  if (csv->surveyed &&
      (status = hk_csv_columns_check(&csv->columns, &csv->config, csv->lines, csv->header.line, error, size)) < 0 &&
      csv->columns.sensors < 2) /* columns of text may yet be left out */
    return status;
  if (csv->surveyed && (status = hk_csv_survey(csv, error, size)) == 0)
    status = back_to_data(csv, error, size);
  if (csv->surveyed && status < 0)
    return status;
  if (csv->surveyed && csv->config.long_sensor && csv->names.n == 0) {
    snprintf(error, size, "%s: empty, no points", csv->path);
    return -EINVAL;
  }
  status = hk_csv_columns_check(&csv->columns, &csv->config, csv->lines, csv->header.line, error, size);
  return status == 0 && csv->descends ? csv_sort(csv, error, size) : status;
}

int hk_csv_open(struct hk_csv **out, const struct hk_csv_config *config, char *error, size_t size)
{
  struct hk_csv *csv = calloc(1, sizeof *csv);
  snprintf(error, size, "out of memory");
  if (!csv)
    return -ENOMEM;
  csv->config = *config;
  csv->path = strcmp(config->path, "-") == 0 ? "stdin" : config->path;
  csv->times = (struct hk_csv_times){ .format = config->format, .unit = config->unit };
  csv->decimal = config->decimal;
  int status = hk_csv_lines_open(&csv->lines, config->path, error, size);
  if (status == 0) {
    csv->surveyed = hk_csv_lines_regular(csv->lines) && !config->once;
    status = csv_begin(csv, error, size);
  }
  if (status == -ENOMEM)
    snprintf(error, size, "%s: out of memory", csv->path);
  if (status == -EIO)
    snprintf(error, size, "%s: it has become shorter while it was read", csv->path);
  if (status < 0)
    hk_csv_close(csv);
  else
    *out = csv;
  return status < 0 ? status : 0;
}

void hk_csv_close(struct hk_csv *csv)
{
  if (!csv)
    return;
  hk_csv_sorted_free(&csv->sorted);
  hk_csv_names_free(&csv->names);
  hk_csv_columns_free(&csv->columns);
  hk_csv_header_free(&csv->header);
  hk_csv_lines_close(csv->lines);
  free(csv->row_sensor);
  free(csv->row_value);
  free(csv->cell);
  free(csv);
}

int hk_csv_next(struct hk_csv *csv, struct hk_csv_row *row, char *error, size_t size)
{
  if (!csv->descends)
    return hk_csv_row(csv, row, error, size);
  const struct hk_csv_sorted *sorted = &csv->sorted;
  row->sensor = csv->row_sensor;
  row->value = csv->row_value;
  row->n = 0;
  while (csv->sorted.given < sorted->n && row->n < csv->columns.n) {
    const struct hk_csv_point *point = &sorted->point[sorted->given];
    if (row->n > 0 && (point->time != row->time || point->sensor <= csv->row_sensor[row->n - 1]))
      break;
    row->time = point->time;
    csv->row_sensor[row->n] = point->sensor;
    csv->row_value[row->n++] = point->value;
    csv->sorted.given++;
  }
  return row->n > 0;
}

uint32_t hk_csv_sensors(const struct hk_csv *csv)
{
  return csv->config.long_sensor ? csv->names.n : csv->columns.sensors;
}

bool hk_csv_sensors_known(const struct hk_csv *csv)
{
  return csv->surveyed || !csv->config.long_sensor;
}

const char *hk_csv_sensor(const struct hk_csv *csv, uint32_t sensor)
{
  return csv->config.long_sensor ? csv->names.name[sensor] : csv->columns.name[sensor];
}

const char *hk_csv_time(const struct hk_csv *csv, bool *named)
{
  *named = csv->columns.time_named;
  return csv->columns.time == HK_NO_COLUMN ? NULL : csv->columns.header[csv->columns.time];
}

bool hk_csv_bare(const struct hk_csv *csv)
{
  return csv->bare;
}

uint64_t hk_csv_bad(const struct hk_csv *csv)
{
  return csv->bad;
}

bool hk_csv_ready(const struct hk_csv *csv)
{
  return csv->descends || csv->ahead || hk_csv_lines_ready(csv->lines);
}

int hk_csv_fd(const struct hk_csv *csv)
{
  return hk_csv_lines_fd(csv->lines);
}

double hk_csv_progress(const struct hk_csv *csv)
{
  if (csv->descends)
    return csv->sorted.n > 0 ? (double)csv->sorted.given / (double)csv->sorted.n : -1;
  return hk_csv_lines_progress(csv->lines);
}
