/* See maintenance_file.h. A line has four fields separated by tabs: from, to, by, glob. */
#include "daemon/sensors/maintenance_file.h"

#include "proto/wire/frame.h"
#include "proto/wire/name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MOST (HK_MAINTENANCE_ASKED * (2 * 20 + HK_WHO_MAX + HK_GLOB_MAX + 4))

int hk_maintenance_saved_open(struct hk_maintenance_saved *out, const struct hk_disk *disk, int folder)
{
  int file;
  uint64_t size;
  int status = hk_disk_open(disk, folder, HK_MAINTENANCE_FILE, &file, &size);
  if (status != 0)
    return status;
  char *text = size <= FILE_MOST ? malloc(size + 1) : NULL;
  status = text ? hk_disk_read(disk, file, 0, text, size) : size <= FILE_MOST ? -ENOMEM : -EFBIG;
  close(file); /* it was only read */
  if (status != 0)
    free(text);
  else
    *out = (struct hk_maintenance_saved){ .text = text, .size = size };
  return status;
}

/* Cuts a line, without its newline and followed by a 0, into its fields. */
static bool maintenance_file_parse(char *line, struct hk_maintenance_line *out)
{
  char *field[4], *end[2];
  for (int i = 0; i < 4; i++)
    if (!(field[i] = strsep(&line, "\t")))
      return false;
  out->from = strtoll(field[0], &end[0], 10);
  out->to = strtoll(field[1], &end[1], 10);
  out->by = hk_string(field[2]);
  out->glob = hk_string(field[3]);
  return !line && *field[0] && *end[0] == 0 && *field[1] && *end[1] == 0 && out->from <= out->to &&
         out->by.length <= HK_WHO_MAX && hk_name_valid(out->by.data, out->by.length) && out->glob.length <= HK_GLOB_MAX &&
         hk_name_piece_valid(out->glob.data, out->glob.length, NULL);
}

int hk_maintenance_saved_next(struct hk_maintenance_saved *s, struct hk_maintenance_line *out)
{
  if (s->at == s->size)
    return 0;
  char *line = s->text + s->at, *end = memchr(line, '\n', s->size - s->at);
  s->at = end ? (uint64_t)(end - s->text) + 1 : s->size;
  if (!end) /* its glob may be cut off, and match other names */
    return -EINVAL;
  *end = 0;
  return strlen(line) == (size_t)(end - line) && maintenance_file_parse(line, out) ? 1 : -EINVAL;
}

void hk_maintenance_saved_close(struct hk_maintenance_saved *s)
{
  free(s->text);
  *s = (struct hk_maintenance_saved){ 0 };
}
