/* Reads labelled recordings: see labelled.h. Errors name the file. */
#include "daemon/cli/labelled.h"
#include "daemon/base/timestamp.h"
#include "daemon/cli/csv.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SENSORS_MAX 4096
#define JSON_MAX (64 << 20) /* bytes of windows.json */

static int labelled_no_memory(char *error, size_t size)
{
  snprintf(error, size, "out of memory");
  return -ENOMEM;
}

int hk_labelled_add_point(struct hk_recording *r, int64_t time, double value)
{
  if (r->n == r->room) {
    const uint32_t room = r->room ? 2 * r->room : 1024;
    int64_t *times = realloc(r->time, room * sizeof *times);
    r->time = times ? times : r->time;
    double *values = times ? realloc(r->value, room * sizeof *values) : NULL;
    if (!values)
      return -ENOMEM;
    r->value = values;
    r->room = room;
  }
  r->time[r->n] = time;
  r->value[r->n++] = value;
  return 0;
}

static int add_label(struct hk_recording *r, int64_t first, int64_t last)
{
  struct hk_label *label = realloc(r->label, (r->n_labels + 1) * sizeof *label);
  if (!label)
    return -ENOMEM;
  r->label = label;
  r->label[r->n_labels++] = (struct hk_label){ first, last };
  return 0;
}

/* Bytes of a file's name without its extension: the recording's name. */
static uint32_t name_length(const char *file)
{
  const size_t length = strlen(file), name = length > 4 ? length - 4 : 0;
  const bool extended = strcmp(file + name, ".csv") == 0 || strcmp(file + name, ".txt") == 0;
  return (uint32_t)(extended ? name : length);
}

/* Adds a recording of a file; NULL: no memory. */
static struct hk_recording *add_recording(struct hk_labelled *set, const char *file, const char *sensor, bool several)
{
  struct hk_recording *all = realloc(set->recording, (set->n + 1) * sizeof *all);
  if (!all)
    return NULL;
  set->recording = all;
  struct hk_recording *r = &all[set->n++];
  *r = (struct hk_recording){ .file = set->n_files };
  r->of_file = name_length(file);
  snprintf(r->name, sizeof r->name, "%.*s%s%s", (int)r->of_file, file, several ? " " : "", several ? sensor : "");
  snprintf(r->sensor, sizeof r->sensor, "%s", sensor);
  return r;
}

/* Reads one file of this name. Its sensors become recordings, except for columns of labels. A row whose `changepoint` is 1 is
 * a label of all sensors. */
static int read_csv(struct hk_labelled *set, const char *path, const char *file, char *error, size_t size)
{
  struct hk_csv *csv = NULL;
  struct hk_csv_row row;
  uint32_t recording[SENSORS_MAX], first = set->n;
  const struct hk_csv_config config = { .path = path };
  int status = hk_csv_open(&csv, &config, error, size);
  if (status < 0)
    return status;
  enum { CHANGE = UINT32_MAX, NONE = UINT32_MAX - 1 };
  if (hk_csv_sensors(csv) > SENSORS_MAX) {
    snprintf(error, size, "%s: over %d columns", path, SENSORS_MAX);
    status = -EINVAL;
  }
  for (uint32_t i = 0; i < hk_csv_sensors(csv) && status == 0; i++) {
    const char *name = hk_csv_sensor(csv, i);
    const bool change = strcmp(name, "changepoint") == 0, label = change || strcmp(name, "anomaly") == 0;
    recording[i] = change ? CHANGE : label ? NONE : set->n;
    if (!label && !add_recording(set, file, name, hk_csv_sensors(csv) > 1))
      status = labelled_no_memory(error, size);
  }
  while (status == 0 && (status = hk_csv_next(csv, &row, error, size)) == 1) {
    status = 0;
    for (uint32_t i = 0; i < row.n && status == 0; i++) {
      const uint32_t to = recording[row.sensor[i]];
      if (to < set->n)
        status = hk_labelled_add_point(&set->recording[to], row.time, row.value[i]);
      for (uint32_t j = first; to == CHANGE && fabs(row.value[i] - 1) < 1e-9 && j < set->n && status == 0; j++)
        status = add_label(&set->recording[j], row.time, row.time);
    }
    if (status == -ENOMEM)
      (void)labelled_no_memory(error, size);
  }
  set->n_files++;
  hk_csv_close(csv);
  return status;
}

static int labelled_read_file(struct hk_labelled *set, const char *folder, const char *file, char *error, size_t size)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  return read_csv(set, path, file, error, size);
}

/* Parses a file of JSON. Returns its value, to be deleted; or NULL with a message. */
static cJSON *labelled_read_json(const char *path, char *error, size_t size)
{
  struct stat about;
  char *text = NULL;
  size_t room = 0;
  ssize_t length = -1; /* nothing is in text */
  cJSON *json = NULL;
  FILE *f = fopen(path, "r");
  if (!f || fstat(fileno(f), &about) < 0)
    snprintf(error, size, "%s: %s", path, strerror(errno));
  else if (about.st_size > JSON_MAX)
    snprintf(error, size, "%s: over %d MiB", path, JSON_MAX >> 20);
  else if ((length = getdelim(&text, &room, 0, f)) < 0 && !feof(f)) /* up to the end: text has no NUL */
    snprintf(error, size, "%s: %s", path, strerror(errno));
  else if (length < 0 || !(json = cJSON_ParseWithOpts(text, NULL, true)))
    snprintf(error, size, "%s: no JSON", path);
  free(text);
  if (f)
    fclose(f);
  return json;
}

/* Adds a label to the recordings from `at` on, which are of one file: to this sensor's, or to all (NULL). Returns 0; -ENOENT:
 * no such sensor; or -ENOMEM. */
static int label_sensors(struct hk_labelled *set, uint32_t at, const char *sensor, const struct hk_label *label)
{
  bool any = false;
  for (uint32_t i = at; i < set->n; i++) {
    if (sensor && strcmp(set->recording[i].sensor, sensor) != 0)
      continue;
    any = true;
    if (add_label(&set->recording[i], label->first, label->last) < 0)
      return -ENOMEM;
  }
  return any || !sensor ? 0 : -ENOENT;
}

/* Labels the recordings from `at` on, which are of one file, with its windows. Returns 0, or a negative errno and a message
 * about the windows. */
static int label_windows(struct hk_labelled *set, uint32_t at, const cJSON *windows, char *error, size_t size)
{
  const cJSON *window = NULL;
  int64_t begin = INT64_MAX, end = INT64_MIN;
  if (!cJSON_IsArray(windows)) {
    snprintf(error, size, "want a list of windows");
    return -EINVAL;
  }
  for (uint32_t i = at; i < set->n; i++) {
    const struct hk_recording *r = &set->recording[i];
    for (uint32_t j = 0; j < r->n; j++) {
      begin = r->time[j] < begin ? r->time[j] : begin;
      end = r->time[j] > end ? r->time[j] : end;
    }
  }
  cJSON_ArrayForEach(window, windows)
  {
    const char *first = cJSON_GetStringValue(cJSON_GetArrayItem(window, 0)),
               *last = cJSON_GetStringValue(cJSON_GetArrayItem(window, 1)),
               *sensor = cJSON_GetStringValue(cJSON_GetArrayItem(window, 2));
    struct hk_label label;
    const char *wrong = NULL;
    if (!first || !last || hk_timestamp_parse_date(first, &label.first) < 0 || hk_timestamp_parse_date(last, &label.last) < 0)
      wrong = "is no pair of times";
    else if (cJSON_GetArraySize(window) > 2 && !sensor)
      wrong = "has a third part that is not the name of a sensor";
    else if (label.last < label.first)
      wrong = "ends before it begins";
    else if (label.first > end || label.last < begin)
      wrong = "lies outside the recording";
    if (wrong) {
      snprintf(error, size, "the window [%.40s, %.40s] %s", first ? first : "?", last ? last : "?", wrong);
      return -EINVAL;
    }
    const int status = label_sensors(set, at, sensor, &label);
    if (status == -ENOENT)
      snprintf(error, size, "the window [%.40s, %.40s] is of %.200s, and there is no such sensor", first, last, sensor);
    else if (status < 0)
      (void)labelled_no_memory(error, size);
    if (status < 0)
      return status;
  }
  return 0;
}

/* Reads the object of labelled windows from a file. Returns it, to be deleted; or NULL with a message. */
static cJSON *read_windows(const char *path, char *error, size_t size)
{
  cJSON *windows = labelled_read_json(path, error, size);
  if (!windows || cJSON_IsObject(windows))
    return windows;
  snprintf(error, size, "%s: want {\"FILE.csv\": [[\"FIRST TIME\", \"LAST TIME\"], ...], ...}", path);
  cJSON_Delete(windows);
  return NULL;
}

static int read_nab(struct hk_labelled *set, const char *folder, char *error, size_t size)
{
  char path[4096], why[400];
  snprintf(path, sizeof path, "%s/windows.json", folder);
  cJSON *labels = read_windows(path, error, size);
  int status = labels ? 0 : -EINVAL;
  for (const cJSON *file = labels ? labels->child : NULL; file && status == 0; file = file->next) {
    const uint32_t at = set->n;
    status = labelled_read_file(set, folder, file->string, error, size);
    if (status == 0 && (status = label_windows(set, at, file, why, sizeof why)) < 0)
      snprintf(error, size, "%s: %s: %s", path, file->string, why);
  }
  cJSON_Delete(labels);
  return status;
}

/* Reads an integer with only blanks around it. False: there is none, or it exceeds UINT32_MAX. */
static bool read_whole(const char *cell, uint32_t *out)
{
  char *end;
  cell += strspn(cell, " \t");
  if (*cell < '0' || *cell > '9')
    return false;
  errno = 0;
  const unsigned long long number = strtoull(cell, &end, 10);
  *out = (uint32_t)number;
  return errno == 0 && number <= UINT32_MAX && end[strspn(end, " \t")] == 0;
}

/* Reads a line of desc.txt after the name: a window, then changes. Ignores empty cells. Returns 0, or a negative errno and a
 * message about the line. */
static int read_changes(struct hk_recording *r, char *rest, char *error, size_t size)
{
  const char *cell;
  uint32_t number = 0, before = 0; /* set, or not looked at: gcc with TSan does not see that */
  for (bool window = true; (cell = strsep(&rest, ",")); window = false) {
    if (!cell[strspn(cell, " \t")])
      continue;
    const bool whole = read_whole(cell, &number);
    if (window && !whole) {
      snprintf(error, size, "\"%.40s\" is no window: want a whole number of points", cell);
      return -EINVAL;
    }
    if (window) {
      r->window = number;
      continue;
    }
    if (!whole || number <= before || number >= r->n) {
      snprintf(error, size, "\"%.40s\" is no change here: want whole numbers, ascending, over 0 and below the %u points", cell,
               r->n);
      return -EINVAL;
    }
    if (add_label(r, r->time[number], r->time[number]) < 0)
      return labelled_no_memory(error, size);
    before = number;
  }
  return 0;
}

static int read_tssb(struct hk_labelled *set, const char *folder, char *error, size_t size)
{
  char path[4096], file[300], why[200] = "want a file with one series", *line = NULL;
  size_t room = 0;
  snprintf(path, sizeof path, "%s/desc.txt", folder);
  FILE *f = fopen(path, "r");
  if (!f) {
    const int status = -errno;
    snprintf(error, size, "%s: %s", path, strerror(errno));
    return status;
  }
  int status = 0;
  for (uint32_t number = 1; status == 0 && getline(&line, &room, f) >= 0; number++) {
    line[strcspn(line, "\r\n")] = 0;
    char *rest = line;
    const char *name = strsep(&rest, ",");
    if (!*name)
      continue;
    const uint32_t at = set->n;
    snprintf(file, sizeof file, "%.250s.txt", name);
    status = labelled_read_file(set, folder, file, error, size);
    if (status < 0)
      break;
    status = set->n == at + 1 ? read_changes(&set->recording[at], rest, why, sizeof why) : -EINVAL;
    if (status < 0)
      snprintf(error, size, "%s:%u: %s: %s", path, number, name, why);
  }
  free(line);
  fclose(f);
  return status;
}

static int labelled_by_name(const struct dirent **a, const struct dirent **b)
{
  return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_csv(const struct dirent *entry)
{
  const size_t length = strlen(entry->d_name);
  return length > 4 && strcmp(entry->d_name + length - 4, ".csv") == 0;
}

static int read_skab(struct hk_labelled *set, const char *folder, char *error, size_t size)
{
  struct dirent **files = NULL;
  const int n = scandir(folder, &files, is_csv, labelled_by_name);
  int status = 0;
  if (n < 0) {
    status = -errno;
    snprintf(error, size, "%s: %s", folder, strerror(errno));
  }
  for (int i = 0; i < n; i++) {
    if (status == 0)
      status = labelled_read_file(set, folder, files[i]->d_name, error, size);
    free(files[i]);
  }
  free(files);
  return status;
}

int hk_labelled_read(struct hk_labelled *out, const char *folder, unsigned which, char *error, size_t size)
{
  static const struct {
    const char *name;
    bool instants;
    int (*read)(struct hk_labelled *set, const char *folder, char *error, size_t size);
  } sets[HK_LABELLED_SETS] = { { "nab", false, read_nab }, { "tssb", true, read_tssb }, { "skab", true, read_skab } };
  char path[4096];
  struct stat there;
  snprintf(path, sizeof path, "%s/%s", folder, sets[which].name);
  *out = (struct hk_labelled){ .name = sets[which].name, .instants = sets[which].instants };
  if (stat(path, &there) < 0 || !S_ISDIR(there.st_mode))
    return 0;
  const int status = sets[which].read(out, path, error, size);
  if (status < 0)
    hk_labelled_free(out);
  return status < 0 ? status : 1;
}

/* Reads one CSV file, with the labels of its name in the file `labels` (NULL: none). Returns 0, or a negative errno with a
 * message. */
static int read_alone(struct hk_labelled *out, const char *path, const char *labels, char *error, size_t size)
{
  const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
  char why[400];
  cJSON *all = labels ? read_windows(labels, error, size) : NULL;
  *out = (struct hk_labelled){ .name = file };
  int status = labels && !all ? -EINVAL : read_csv(out, path, file, error, size);
  if (status == 0 && labels) {
    const cJSON *windows = cJSON_GetObjectItemCaseSensitive(all, file);
    status = windows ? label_windows(out, 0, windows, why, sizeof why) : -EINVAL;
    if (!windows)
      snprintf(error, size, "%s: has no labels for \"%s\"", labels, file);
    else if (status < 0)
      snprintf(error, size, "%s: %s: %s", labels, file, why);
  }
  for (uint32_t i = 0; i < out->n; i++) {
    struct hk_recording *r = &out->recording[i];
    out->instants |= !labels && r->n_labels > 0; /* of a column changepoint */
  }
  cJSON_Delete(all);
  if (status < 0)
    hk_labelled_free(out);
  return status;
}

int hk_labelled_read_all(struct hk_labelled sets[HK_LABELLED_SETS], const char *path, const char *labels, char *error,
                         size_t size)
{
  struct stat about;
  int there = 0;
  if (stat(path, &about) < 0) {
    const int status = -errno;
    snprintf(error, size, "%s: %s", path, strerror(errno));
    return status;
  }
  if (S_ISREG(about.st_mode)) {
    const int status = read_alone(&sets[0], path, labels, error, size);
    return status < 0 ? status : 1;
  }
  if (labels) {
    snprintf(error, size, "%s: is not a CSV file, and --labels are those of one", path);
    return -EINVAL;
  }
  for (unsigned i = 0; i < HK_LABELLED_SETS; i++) {
    const int status = hk_labelled_read(&sets[i], path, i, error, size);
    if (status < 0)
      return status;
    there += status;
  }
  if (there > 0)
    return there;
  snprintf(error, size,
           "%s: holds none of the folders nab/, tssb/ and skab/: give the folder that they are in (--help says what they hold)",
           path);
  return -ENOENT;
}

void hk_labelled_free(struct hk_labelled *set)
{
  for (uint32_t i = 0; i < set->n; i++) {
    free(set->recording[i].time);
    free(set->recording[i].value);
    free(set->recording[i].label);
  }
  free(set->recording);
  *set = (struct hk_labelled){ 0 };
}
