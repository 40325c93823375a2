/* Files that are read whole: see whole_file.h. */
#include "cpu/whole_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int hk_whole_file_read(const char *path, size_t most, char **out, size_t *length)
{
  FILE *file = fopen(path, "re");
  int status = file ? 0 : -errno;
  *out = NULL;
  *length = 0;
  for (size_t room = 65536; status == 0 && !feof(file); room *= 2) {
    char *text = room <= 2 * most + 65536 ? realloc(*out, room) : NULL;
    if (!text)
      status = room > most ? -EFBIG : -ENOMEM;
    *out = text ? text : *out;
    while (status == 0 && *length < room && !feof(file)) {
      *length += fread(*out + *length, 1, room - *length, file);
      if (ferror(file))
        status = errno ? -errno : -EIO;
    }
  }
  if (file)
    (void)fclose(file); /* it was only read */
  return status == 0 && *length > most ? -EFBIG : status;
}
