/* The files of a recording. Holds the next line of each, and returns the earliest one first. */
#include "daemon/cli/recording.h"
#include "daemon/base/grow.h"
#include "daemon/cli/csv_names.h"
#include "proto/wire/name.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

struct part {
  char *path, *name; /* name: prefix of its sensors' names, with a point; "": none */
  struct hk_csv *csv;
  struct hk_csv_row row;
  int held;         /* 1: row is the next line, 0: none is left */
  uint32_t *number; /* of each of its sensors in the recording */
  uint32_t numbered;
};

struct hk_recordings {
  struct part *part;
  uint32_t n, room;
  struct hk_csv_names names;
  uint32_t *sensor; /* of the last line */
  uint32_t n_sensor;
  const struct part *current; /* the file whose line was returned last; NULL: none */
};

static int recording_no_memory(char *error, size_t size)
{
  snprintf(error, size, "out of memory");
  return -ENOMEM;
}

static int add_file(struct hk_recordings *r, const char *path)
{
  struct part *grown = hk_grow(r->part, r->n, &r->room, sizeof *grown, 8);
  if (!grown)
    return -ENOMEM;
  r->part = grown;
  r->part[r->n] = (struct part){ .path = strdup(path) };
  return r->part[r->n++].path ? 0 : -ENOMEM;
}

/* Length of a file's name without the extensions of a recording. */
static size_t stem(const char *name, bool *recording)
{
  static const char *const packed[] = { ".gz", ".zst", ".xz", ".bz2" }, *const kinds[] = { ".csv", ".tsv", ".txt", ".dat" };
  size_t n = strlen(name);
  *recording = false;
  for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
    if (n > strlen(packed[i]) && strncasecmp(name + n - strlen(packed[i]), packed[i], strlen(packed[i])) == 0) {
      n -= strlen(packed[i]);
      break;
    }
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (n > 4 && strncasecmp(name + n - 4, kinds[i], 4) == 0) {
      *recording = true;
      return n - 4;
    }
  return n;
}

static int is_recording(const struct dirent *entry)
{
  bool recording;
  return entry->d_name[0] != '.' && entry->d_type != DT_DIR && stem(entry->d_name, &recording) > 0 && recording;
}

static int add_folder(struct hk_recordings *r, const char *path, char *error, size_t size)
{
  struct dirent **entry;
  char file[4096];
  int status = 0;
  const int n = scandir(path, &entry, is_recording, versionsort);
  if (n < 0) {
    status = -errno;
    snprintf(error, size, "%s: %s", path, strerror(-status));
    return status;
  }
  for (int i = 0; i < n; i++) {
    snprintf(file, sizeof file, "%s/%s", path, entry[i]->d_name);
    status = status < 0 ? status : add_file(r, file);
    free(entry[i]);
  }
  free(entry);
  if (n == 0)
    snprintf(error, size, "%s: no recording in this folder (.csv, .tsv, .txt or .dat)", path);
  return n == 0 ? -EINVAL : status < 0 ? recording_no_memory(error, size) : 0;
}

static int add_all(struct hk_recordings *r, char *const *paths, uint32_t n, char *error, size_t size)
{
  for (uint32_t i = 0; i < n; i++) {
    struct stat about;
    int status;
    if (strcmp(paths[i], "-") != 0 && stat(paths[i], &about) == 0 && S_ISDIR(about.st_mode))
      status = add_folder(r, paths[i], error, size);
    else if ((status = add_file(r, paths[i])) < 0)
      recording_no_memory(error, size);
    if (status < 0)
      return status;
  }
  if (r->n > HK_RECORDING_FILES) {
    snprintf(error, size, "%u files are more than %d", r->n, HK_RECORDING_FILES);
    return -EINVAL;
  }
  for (uint32_t i = 0; r->n > 1 && i < r->n; i++)
    if (strcmp(r->part[i].path, "-") == 0) {
      snprintf(error, size, "standard input cannot be combined with files");
      return -EINVAL;
    }
  return 0;
}

/* Names a file by its own name, and with `deep` also by its folder's. */
static int name_part(struct part *part, bool deep)
{
  const char *slash = strrchr(part->path, '/'), *folder = slash;
  bool recording;
  char text[HK_NAME_MAX + 8];
  const char *name = slash ? slash + 1 : part->path;
  while (deep && folder && folder > part->path && folder[-1] != '/')
    folder--;
  const int shown = deep && slash && folder < slash ? (int)(slash - folder) : 0;
  snprintf(text, sizeof text, "%.*s%s%.*s.", shown, shown > 0 ? folder : "", shown > 0 ? "." : "", (int)stem(name, &recording),
           name);
  free(part->name);
  part->name = strdup(text);
  return part->name ? 0 : -ENOMEM;
}

static int recording_name_parts(struct hk_recordings *r, const char *prefix)
{
  char text[HK_NAME_MAX + 8];
  bool same = false;
  snprintf(text, sizeof text, "%s%s", prefix ? prefix : "", prefix && *prefix ? "." : "");
  for (uint32_t i = 0; i < r->n; i++) {
    const int status = prefix || r->n == 1 ? ((r->part[i].name = strdup(text)) ? 0 : -ENOMEM) : name_part(&r->part[i], false);
    if (status < 0)
      return status;
    for (uint32_t k = 0; k < i && !prefix; k++)
      same |= strcmp(r->part[i].name, r->part[k].name) == 0;
  }
  for (uint32_t i = 0; same && i < r->n; i++)
    if (name_part(&r->part[i], true) < 0)
      return -ENOMEM;
  return 0;
}

/* Numbers the sensors of a file that are new. */
static int recording_number(struct hk_recordings *r, struct part *part, char *error, size_t size)
{
  const uint32_t n = hk_csv_sensors(part->csv);
  char name[2 * HK_NAME_MAX + 16];
  if (part->numbered == n)
    return 0;
  uint32_t *grown = realloc(part->number, n * sizeof *grown);
  if (!grown)
    return recording_no_memory(error, size);
  part->number = grown;
  for (; part->numbered < n; part->numbered++) {
    const char *own = hk_csv_sensor(part->csv, part->numbered);
    snprintf(name, sizeof name, "%s%s", part->name, own);
    if (hk_csv_bare(part->csv) && r->n > 1 && part->name[0]) /* the file's name is its sensor's */
      name[strlen(part->name) - 1] = 0;
    if (!hk_name_valid(name, strlen(name))) {
      snprintf(error, size, "%s: \"%.60s\" cannot name a sensor: want 1 to %d bytes of UTF-8, no control characters", part->path,
               name, HK_NAME_MAX);
      return -EINVAL;
    }
    part->number[part->numbered] = hk_csv_names_number(&r->names, name);
    if (part->number[part->numbered] == UINT32_MAX)
      return recording_no_memory(error, size);
  }
  return 0;
}

int hk_recording_open(struct hk_recordings **out, char *const *paths, uint32_t n, const struct hk_csv_config *config,
                      const char *prefix, char *error, size_t size)
{
  struct hk_recordings *r = calloc(1, sizeof *r);
  struct hk_csv_config own = *config;
  if (!r)
    return recording_no_memory(error, size);
  int status = add_all(r, paths, n, error, size);
  if (status == 0 && recording_name_parts(r, prefix) < 0)
    status = recording_no_memory(error, size);
  for (uint32_t i = 0; i < r->n && status == 0; i++) {
    own.path = r->part[i].path;
    status = hk_csv_open(&r->part[i].csv, &own, error, size);
    if (status == 0)
      status = recording_number(r, &r->part[i], error, size);
  }
  for (uint32_t i = 0; i < r->n && status == 0 && r->n > 1; i++) {
    r->part[i].held = hk_csv_next(r->part[i].csv, &r->part[i].row, error, size);
    status = r->part[i].held < 0 ? r->part[i].held : 0;
  }
  if (status < 0)
    hk_recording_close(r);
  else
    *out = r;
  return status;
}

void hk_recording_close(struct hk_recordings *r)
{
  if (!r)
    return;
  for (uint32_t i = 0; i < r->n; i++) {
    hk_csv_close(r->part[i].csv);
    free(r->part[i].number);
    free(r->part[i].name);
    free(r->part[i].path);
  }
  hk_csv_names_free(&r->names);
  free(r->part);
  free(r->sensor);
  free(r);
}

uint32_t hk_recording_sensors(const struct hk_recordings *r)
{
  return r->names.n;
}

bool hk_recording_sensors_known(const struct hk_recordings *r)
{
  bool known = true;
  for (uint32_t i = 0; i < r->n; i++)
    known &= hk_csv_sensors_known(r->part[i].csv);
  return known;
}

const char *hk_recording_sensor(const struct hk_recordings *r, uint32_t sensor)
{
  return r->names.name[sensor];
}

/* Replaces the file's numbers of sensors by the recording's. */
static int renumber(struct hk_recordings *r, struct part *part, struct hk_csv_row *row, char *error, size_t size)
{
  const int status = recording_number(r, part, error, size);
  if (status < 0)
    return status;
  if (row->n > r->n_sensor) {
    uint32_t *grown = realloc(r->sensor, row->n * sizeof *grown);
    if (!grown)
      return recording_no_memory(error, size);
    r->sensor = grown;
    r->n_sensor = row->n;
  }
  for (uint32_t i = 0; i < row->n; i++)
    r->sensor[i] = part->number[row->sensor[i]];
  row->sensor = r->sensor;
  return 1;
}

int hk_recording_next(struct hk_recordings *r, struct hk_csv_row *row, char *error, size_t size)
{
  struct part *first = r->n == 1 ? &r->part[0] : NULL;
  if (first) {
    const int status = hk_csv_next(first->csv, row, error, size);
    return status == 1 ? renumber(r, first, row, error, size) : status;
  }
  for (uint32_t i = 0; i < r->n; i++) {
    struct part *part = &r->part[i];
    if (part == r->current) {
      part->held = hk_csv_next(part->csv, &part->row, error, size);
      if (part->held < 0)
        return part->held;
    }
    if (part->held == 1 && (!first || part->row.time < first->row.time))
      first = part;
  }
  r->current = first;
  if (!first)
    return 0;
  *row = first->row;
  return renumber(r, first, row, error, size);
}

bool hk_recording_ready(const struct hk_recordings *r)
{
  return r->n > 1 || hk_csv_ready(r->part[0].csv);
}

int hk_recording_fd(const struct hk_recordings *r)
{
  return hk_csv_fd(r->part[0].csv);
}

double hk_recording_progress(const struct hk_recordings *r)
{
  double sum = 0;
  for (uint32_t i = 0; i < r->n; i++)
    sum += hk_csv_progress(r->part[i].csv);
  return sum / r->n;
}

uint64_t hk_recording_bad(const struct hk_recordings *r)
{
  uint64_t bad = 0;
  for (uint32_t i = 0; i < r->n; i++)
    bad += hk_csv_bad(r->part[i].csv);
  return bad;
}

uint32_t hk_recording_files(const struct hk_recordings *r)
{
  return r->n;
}

const struct hk_csv *hk_recording_file(const struct hk_recordings *r, uint32_t file, const char **path)
{
  *path = r->part[file].path;
  return r->part[file].csv;
}
