/* Shared by fuzz targets that read files: a temporary folder with one file. */
#ifndef HK_FUZZ_FILES_H
#define HK_FUZZ_FILES_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void require(_Bool good)
{
  if (!good)
    abort();
}

static char fuzz_path[64];
static const char *fuzz_file;

static inline void fuzz_remove(void)
{
  char path[128];
  snprintf(path, sizeof path, "%s/%s", fuzz_path, fuzz_file);
  (void)unlink(path);
  (void)rmdir(fuzz_path);
}

/* Writes the bytes into the folder's file, under this name. Returns the folder. */
static inline int fuzz_folder(const char *name, const void *data, size_t size)
{
  static int folder = -1;
  if (folder < 0) {
    snprintf(fuzz_path, sizeof fuzz_path, "/tmp/hankel-fuzz-XXXXXX");
    require(mkdtemp(fuzz_path) != NULL);
    fuzz_file = name;
    folder = open(fuzz_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    atexit(fuzz_remove);
  }
  const int file = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(folder >= 0 && file >= 0 && write(file, data, size) == (ssize_t)size && close(file) == 0);
  return folder;
}

#endif
