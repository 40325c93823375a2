/* Reader of recordings. Lines are cut out of one buffer and split into cells in place. */
#include "daemon/cli/csv.h"
#include "daemon/cli/timestamp.h"
#include "proto/line/number.h"
#include "proto/wire/name.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NO_COLUMN UINT32_MAX
#define BUFFER_START (1u << 16)
#define SECOND 1000000000

struct hk_csv {
  const char *path; /* for messages; the caller's */
  int fd;
  bool regular; /* a plain file: reading never waits */
  bool end_of_file;
  bool first_is_number; /* bare numbers: the first line is a point, not yet handed out */
  char separator;
  double first;
  int64_t size, taken; /* bytes of the file (regular), bytes read from it */
  char *buffer;        /* unread bytes are at begin..end */
  size_t begin, end, capacity;
  uint64_t line; /* number of the last line read */
  uint32_t n_columns, time_column;
  char *time_header; /* NULL: there is no such column */
  bool time_named;   /* that header is one of a time */
  char **cell;       /* of the last line split, n_columns; point into the buffer */
  int64_t unit;      /* of epoch numbers, ns; 0 = not known yet */
  int64_t next_time; /* without a time column; with now, the earliest */
  bool now;          /* as configured */
  uint32_t n_sensors;
  uint32_t *column; /* of each sensor */
  char **name;      /* of each sensor */
  uint32_t *row_sensor;
  double *row_value;
};

/* Text that came from a file: keeps a terminal safe from it. */
static void tame(char *text)
{
  for (char *p = text; *p; p++)
    if (iscntrl((unsigned char)*p))
      *p = '?';
}

/* Writes "file:line: message". Returns -EINVAL. */
static int __attribute__((format(printf, 4, 5))) fail(const struct hk_csv *csv, char *error, size_t size, const char *format, ...)
{
  va_list arguments;
  const int used = snprintf(error, size, "%s:%llu: ", csv->path, (unsigned long long)csv->line);
  if (used < 0 || (size_t)used >= size)
    return -EINVAL;
  va_start(arguments, format);
  vsnprintf(error + used, size - (size_t)used, format, arguments);
  va_end(arguments);
  tame(error);
  return -EINVAL;
}

/* Makes room behind `end`. The unread bytes move to the front, or the buffer grows. */
static int make_room(struct hk_csv *csv, char *error, size_t size)
{
  if (csv->end < csv->capacity)
    return 0;
  if (csv->begin > 0) {
    memmove(csv->buffer, csv->buffer + csv->begin, csv->end - csv->begin);
    csv->end -= csv->begin;
    csv->begin = 0;
    return 0;
  }
  if (csv->capacity >= HK_CSV_LINE_MAX) {
    csv->line++;
    return fail(csv, error, size, "the line is longer than %u bytes", HK_CSV_LINE_MAX);
  }
  char *grown = realloc(csv->buffer, 2 * csv->capacity + 1); /* one more, for the end of a last line with no newline */
  if (!grown)
    return -ENOMEM;
  csv->buffer = grown;
  csv->capacity *= 2;
  return 0;
}

/* Next line that is not blank, without its end, NUL-terminated, in the buffer. 1, 0 at the end, or a negative errno. */
static int next_line(struct hk_csv *csv, char **line, char *error, size_t size)
{
  size_t searched = 0; /* bytes behind begin that hold no newline */
  for (;;) {
    char *start = csv->buffer + csv->begin, *stop = memchr(start + searched, '\n', csv->end - csv->begin - searched);
    if (!stop && csv->end_of_file) {
      if (csv->begin == csv->end)
        return 0;
      stop = csv->buffer + csv->end++; /* the last line has no newline */
    }
    if (stop) {
      csv->begin = (size_t)(stop + 1 - csv->buffer);
      csv->line++;
      searched = 0;
      if (csv->line == 1 && stop - start >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0)
        start += 3;
      if (memchr(start, 0, (size_t)(stop - start)))
        return fail(csv, error, size, "a NUL byte: this is not text");
      while (stop > start && (stop[-1] == '\r' || stop[-1] == ' ' || stop[-1] == '\t'))
        stop--;
      *stop = 0;
      if (start == stop)
        continue;
      *line = start;
      return 1;
    }
    searched = csv->end - csv->begin;
    const int status = make_room(csv, error, size);
    if (status < 0)
      return status;
    const ssize_t got = read(csv->fd, csv->buffer + csv->end, csv->capacity - csv->end);
    if (got < 0 && errno != EINTR) {
      const int code = errno;
      snprintf(error, size, "%s: %s", csv->path, strerror(code));
      return -code;
    }
    if (got == 0)
      csv->end_of_file = true;
    if (got > 0) {
      csv->end += (size_t)got;
      csv->taken += got;
    }
  }
}

/* Cuts the next cell out of *rest (NULL afterwards when it was the last), unquoted and without blanks around it. NULL when
 * a quote is not closed or text follows it. */
static char *next_cell(char **rest, char separator)
{
  char *p = *rest, *cell, *end;
  while (*p == ' ' || *p == '\t')
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
    while (*p == ' ' || *p == '\t');
    if (*p && *p != separator)
      return NULL;
  } else {
    cell = p;
    p = strchrnul(p, separator);
    end = p;
    while (end > cell && (end[-1] == ' ' || end[-1] == '\t'))
      end--;
  }
  *rest = *p ? p + 1 : NULL;
  *end = 0;
  return cell;
}

/* Splits a line into csv->cell; a short line is filled up with empty cells. */
static int split(struct hk_csv *csv, char *line, char *error, size_t size)
{
  static char empty[] = "";
  uint32_t n = 0;
  for (char *rest = line; rest;) {
    if (n == csv->n_columns && *rest == 0) /* a separator at the end of the line */
      break;
    if (n == csv->n_columns)
      return fail(csv, error, size, "more cells than the header has (%u)", csv->n_columns);
    csv->cell[n] = next_cell(&rest, csv->separator);
    if (!csv->cell[n])
      return fail(csv, error, size, "cell %u: the quotes are not closed", n + 1);
    n++;
  }
  while (n < csv->n_columns)
    csv->cell[n++] = empty;
  return 0;
}

static bool is_missing(const char *cell)
{
  return !*cell || strcasecmp(cell, "null") == 0 || strcasecmp(cell, "na") == 0 || strcasecmp(cell, "n/a") == 0 ||
         strcasecmp(cell, "none") == 0;
}

/* A number, with a decimal comma where that cannot be a separator; also nan and inf. Too large a one is infinite. */
static bool parse_number(char *cell, char separator, double *out)
{
  size_t used;
  char *comma = separator == ';' ? strchr(cell, ',') : NULL;
  if (comma)
    *comma = '.';
  if (hk_number_parse(cell, strlen(cell), out, &used) == 0 && !cell[used])
    return true;
  char *end;
  *out = strtod(cell, &end);
  if (end != cell && !*end && !isfinite(*out))
    return true;
  if (comma)
    *comma = ','; /* the message shows the cell as it stands in the file */
  return false;
}

static int parse_time(struct hk_csv *csv, int64_t *time, char *error, size_t size)
{
  const char *cell = csv->cell[csv->time_column];
  int status;
  if (hk_timestamp_is_date(cell)) {
    status = hk_timestamp_parse_date(cell, time);
  } else {
    if (csv->unit == 0)
      csv->unit = hk_timestamp_guess_unit(cell);
    status = hk_timestamp_parse_epoch(cell, csv->unit, time);
  }
  if (status == -ERANGE)
    return fail(csv, error, size, "the time %.40s is out of range", cell);
  if (status < 0)
    return fail(csv, error, size, "\"%.40s\" is no time: want YYYY-MM-DD hh:mm:ss, ISO 8601, or an epoch number", cell);
  return 0;
}

/* The time of a line, where it has none or that is not to count: a second behind the line before, or now, and later than that. */
static int64_t make_time(struct hk_csv *csv)
{
  struct timespec t;
  if (!csv->now) {
    csv->next_time += SECOND;
    return csv->next_time - SECOND;
  }
  clock_gettime(CLOCK_REALTIME, &t); /* no error is possible */
  const int64_t now = t.tv_sec * SECOND + t.tv_nsec;
  csv->next_time = now > csv->next_time ? now : csv->next_time;
  return csv->next_time++;
}

int hk_csv_next(struct hk_csv *csv, struct hk_csv_row *row, char *error, size_t size)
{
  char *line;
  int status;
  row->sensor = csv->row_sensor;
  row->value = csv->row_value;
  if (csv->first_is_number) {
    csv->first_is_number = false;
    csv->row_sensor[0] = 0;
    csv->row_value[0] = csv->first;
    row->n = 1;
    row->time = make_time(csv);
    return 1;
  }
  for (;;) {
    if ((status = next_line(csv, &line, error, size)) <= 0 || (status = split(csv, line, error, size)) < 0)
      return status;
    if (csv->now || csv->time_column == NO_COLUMN)
      row->time = make_time(csv);
    else if ((status = parse_time(csv, &row->time, error, size)) < 0)
      return status;
    row->n = 0;
    for (uint32_t i = 0; i < csv->n_sensors; i++) {
      char *cell = csv->cell[csv->column[i]];
      if (is_missing(cell))
        continue;
      if (!parse_number(cell, csv->separator, &csv->row_value[row->n]))
        return fail(csv, error, size, "\"%.40s\" is no number, of sensor %.80s%s", cell, csv->name[i],
                    csv->n_sensors > 1 ? " (--column chooses columns)" : "");
      csv->row_sensor[row->n++] = i;
    }
    if (row->n > 0)
      return 1;
  }
}

bool hk_csv_marks(const char *name)
{
  name += strspn(name, "'");
  return *name && strchr("=+-@#", *name);
}

/* Takes the header apart: csv->cell, n_columns and separator. */
static int split_header(struct hk_csv *csv, char *line, char *error, size_t size)
{
  uint32_t commas = 0, semicolons = 0;
  bool quoted = false;
  for (const char *p = line; *p; p++) {
    quoted ^= *p == '"';
    commas += !quoted && *p == ',';
    semicolons += !quoted && *p == ';';
  }
  csv->separator = semicolons > commas ? ';' : ',';
  csv->n_columns = (semicolons > commas ? semicolons : commas) + 1;
  csv->cell = calloc(csv->n_columns, sizeof *csv->cell);
  if (!csv->cell)
    return -ENOMEM;
  return split(csv, line, error, size);
}

static bool names_time(const char *header)
{
  return strncasecmp(header, "time", 4) == 0 || strncasecmp(header, "date", 4) == 0 || strcasecmp(header, "ts") == 0 ||
         strcasecmp(header, "t") == 0 || strcasecmp(header, "epoch") == 0;
}

static bool is_wanted(const struct hk_csv_config *config, const char *header)
{
  bool wanted = config->n_columns == 0;
  for (uint32_t i = 0; i < config->n_columns && !wanted; i++)
    wanted = strcmp(config->columns[i], header) == 0;
  return wanted;
}

static int add_sensor(struct hk_csv *csv, uint32_t column, const char *name, char *error, size_t size)
{
  if (!hk_name_valid(name, strlen(name)))
    return fail(csv, error, size, "\"%.40s\" cannot name a sensor: want 1 to %d bytes of UTF-8, no control characters", name,
                HK_NAME_MAX);
  csv->column[csv->n_sensors] = column;
  csv->name[csv->n_sensors] = strdup(name);
  return csv->name[csv->n_sensors++] ? 0 : -ENOMEM;
}

static int compare_names(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* No two sensors may have the same name. */
static int check_names(const struct hk_csv *csv, char *error, size_t size)
{
  int status = 0;
  char **sorted = malloc(csv->n_sensors * sizeof *sorted);
  if (!sorted)
    return -ENOMEM;
  memcpy(sorted, csv->name, csv->n_sensors * sizeof *sorted);
  qsort(sorted, csv->n_sensors, sizeof *sorted, compare_names);
  for (uint32_t i = 1; i < csv->n_sensors && status == 0; i++)
    if (strcmp(sorted[i - 1], sorted[i]) == 0)
      status = fail(csv, error, size, "two columns are named %.80s", sorted[i]);
  free(sorted);
  return status;
}

/* Every wanted column must be there, and something to read. */
static int check_columns(const struct hk_csv *csv, const struct hk_csv_config *config, char *error, size_t size)
{
  for (uint32_t i = 0; i < config->n_columns; i++) {
    uint32_t at = 0;
    while (at < csv->n_columns && strcmp(csv->cell[at], config->columns[i]) != 0)
      at++;
    if (at == csv->n_columns)
      return fail(csv, error, size, "no column is named %.80s", config->columns[i]);
    if (at == csv->time_column)
      return fail(csv, error, size, "column %.80s is the time, not a sensor", config->columns[i]);
  }
  if (csv->n_sensors == 0)
    return fail(csv, error, size,
                "no value column: want a header such as time,NAME (cells apart by , or ;) or one number a line");
  if (csv->n_sensors > 1 && config->sensor)
    return fail(csv, error, size, "--sensor names one sensor but there are %u value columns: choose one with --column",
                csv->n_sensors);
  return check_names(csv, error, size);
}

/* Name of a file's only sensor: the file's, without folder and extension. */
static void name_after_file(const char *path, char *name, size_t size)
{
  const char *slash = strrchr(path, '/');
  snprintf(name, size, "%s", slash ? slash + 1 : path);
  char *dot = strrchr(name, '.');
  if (dot && dot != name)
    *dot = 0;
}

static int read_header(struct hk_csv *csv, const struct hk_csv_config *config, char *error, size_t size)
{
  char *line, name[256];
  int status = next_line(csv, &line, error, size);
  if (status == 0) {
    snprintf(error, size, "%s: empty, no points", csv->path);
    return -EINVAL;
  }
  if (status < 0 || (status = split_header(csv, line, error, size)) < 0)
    return status;
  const uint32_t n = csv->n_columns;
  csv->column = calloc(n, sizeof *csv->column);
  csv->name = calloc(n, sizeof *csv->name);
  csv->row_sensor = calloc(n, sizeof *csv->row_sensor);
  csv->row_value = calloc(n, sizeof *csv->row_value);
  if (!csv->column || !csv->name || !csv->row_sensor || !csv->row_value)
    return -ENOMEM;
  if (n == 1 && parse_number(csv->cell[0], csv->separator, &csv->first)) {
    csv->first_is_number = true;
    csv->time_column = NO_COLUMN;
    name_after_file(csv->path, name, sizeof name);
    if (config->n_columns > 0)
      return fail(csv, error, size, "no column is named %.80s: the file has bare numbers", config->columns[0]);
    return add_sensor(csv, 0, config->sensor ? config->sensor : name, error, size);
  }
  for (uint32_t i = 0; i < n; i++) {
    double number;
    if (parse_number(csv->cell[i], csv->separator, &number))
      return fail(csv, error, size, "the first line must be a header, but \"%.40s\" is a number", csv->cell[i]);
  }
  for (uint32_t i = 0; i < n; i++)
    csv->cell[i] += csv->cell[i][0] == '\'' && hk_csv_marks(csv->cell[i]);
  for (csv->time_column = 0; csv->time_column < n && !names_time(csv->cell[csv->time_column]);)
    csv->time_column++;
  csv->time_named = csv->time_column < n;
  if (!csv->time_named)
    csv->time_column = n == 1 || csv->now ? NO_COLUMN : 0;
  if (csv->time_column != NO_COLUMN) {
    if (!(csv->time_header = strdup(csv->cell[csv->time_column])))
      return -ENOMEM;
    tame(csv->time_header);
  }
  for (uint32_t i = 0; i < n; i++) {
    const char *header = csv->cell[i];
    if (i == csv->time_column || !*header || !is_wanted(config, header))
      continue;
    if ((status = add_sensor(csv, i, config->sensor && csv->n_sensors == 0 ? config->sensor : header, error, size)) < 0)
      return status;
  }
  return check_columns(csv, config, error, size);
}

int hk_csv_open(struct hk_csv **out, const struct hk_csv_config *config, char *error, size_t size)
{
  const bool standard = strcmp(config->path, "-") == 0;
  struct hk_csv *csv = calloc(1, sizeof *csv);
  struct stat about;
  int status = -ENOMEM;
  snprintf(error, size, "out of memory");
  if (!csv)
    return status;
  csv->path = standard ? "stdin" : config->path;
  csv->unit = config->unit;
  csv->now = config->now;
  csv->capacity = BUFFER_START;
  csv->buffer = malloc(csv->capacity + 1);
  csv->fd = standard ? STDIN_FILENO : open(config->path, O_RDONLY | O_CLOEXEC);
  if (csv->fd < 0 || fstat(csv->fd, &about) < 0) {
    status = -errno;
    snprintf(error, size, "%s: %s", config->path, strerror(-status));
  } else if (S_ISDIR(about.st_mode)) {
    status = -EISDIR;
    snprintf(error, size, "%s: a folder, not a file", config->path);
  } else if (csv->buffer) {
    csv->regular = S_ISREG(about.st_mode);
    csv->size = csv->regular ? about.st_size : 0;
    status = read_header(csv, config, error, size);
  }
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
  if (csv->fd > STDIN_FILENO)
    close(csv->fd);
  for (uint32_t i = 0; i < csv->n_sensors; i++)
    free(csv->name[i]);
  free(csv->name);
  free(csv->time_header);
  free(csv->column);
  free(csv->row_sensor);
  free(csv->row_value);
  free(csv->cell);
  free(csv->buffer);
  free(csv);
}

uint32_t hk_csv_sensors(const struct hk_csv *csv)
{
  return csv->n_sensors;
}

const char *hk_csv_sensor(const struct hk_csv *csv, uint32_t sensor)
{
  return csv->name[sensor];
}

const char *hk_csv_time(const struct hk_csv *csv, bool *named)
{
  *named = csv->time_named;
  return csv->time_header;
}

bool hk_csv_ready(const struct hk_csv *csv)
{
  return csv->regular || csv->end_of_file || csv->first_is_number ||
         memchr(csv->buffer + csv->begin, '\n', csv->end - csv->begin);
}

int hk_csv_fd(const struct hk_csv *csv)
{
  return csv->fd;
}

double hk_csv_progress(const struct hk_csv *csv)
{
  return csv->size > 0 ? (double)(csv->taken - (int64_t)(csv->end - csv->begin)) / (double)csv->size : -1;
}
