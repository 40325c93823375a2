#include "daemon/base/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS 12

static int disk_fault(const struct hk_disk *d, enum hk_disk_call call)
{
  return d->fault ? -d->fault(d->arg, call) : 0;
}

/* The name of a folder that was made stays. One that may not be read above it cannot be synced: its file system's next commit
 * does. */
static int disk_sync_above(const struct hk_disk *d, int folder)
{
  const int above = openat(folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (above < 0)
    return errno == EACCES ? 0 : -errno;
  const int status = hk_disk_sync_folder(d, above);
  close(above);
  return status;
}

int hk_disk_folder(const struct hk_disk *d, int in, const char *path, int *out)
{
  const int status = disk_fault(d, HK_DISK_FOLDER);
  if (status != 0)
    return status;
  const bool made = mkdirat(in, path, 0700) == 0;
  if (!made && errno != EEXIST)
    return -errno;
  *out = openat(in, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (*out < 0)
    return -errno;
  return made ? disk_sync_above(d, *out) : 0;
}

int hk_disk_folder_there(const struct hk_disk *d, int in, const char *path, int *out)
{
  const int status = disk_fault(d, HK_DISK_FOLDER);
  if (status != 0)
    return status;
  *out = openat(in, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return *out < 0 ? -errno : 0;
}

int hk_disk_lock(const struct hk_disk *d, int folder, int *out)
{
  int status = disk_fault(d, HK_DISK_OPEN);
  if (status != 0)
    return status;
  if (flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) /* other errors: there, folders have no locks */
    return -EWOULDBLOCK;
  const int file = openat(folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return -errno;
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    status = -errno;
    close(file);
    return status;
  }
  *out = file;
  return 0;
}

int hk_disk_create(const struct hk_disk *d, int folder, const char *name, int *out)
{
  const int status = disk_fault(d, HK_DISK_OPEN);
  if (status != 0)
    return status;
  *out = openat(folder, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return *out < 0 ? -errno : 0;
}

int hk_disk_open(const struct hk_disk *d, int folder, const char *name, int *out, uint64_t *size)
{
  struct stat now;
  int status = disk_fault(d, HK_DISK_OPEN);
  if (status != 0)
    return status;
  const int file = openat(folder, name, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return -errno;
  if (fstat(file, &now) != 0) {
    status = -errno;
    close(file);
    return status;
  }
  *size = (uint64_t)now.st_size;
  *out = file;
  return 0;
}

int hk_disk_write(const struct hk_disk *d, int file, const void *data, size_t size)
{
  const int status = disk_fault(d, HK_DISK_WRITE);
  const char *at = data;
  if (status != 0)
    return status;
  while (size > 0) {
    const ssize_t written = write(file, at, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return written < 0 ? -errno : -EIO;
    at += written;
    size -= (size_t)written;
  }
  return 0;
}

int hk_disk_update(const struct hk_disk *d, int folder, const char *name, int *out)
{
  const int status = disk_fault(d, HK_DISK_OPEN);
  if (status != 0)
    return status;
  *out = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  return *out < 0 ? -errno : 0;
}

int hk_disk_write_at(const struct hk_disk *d, int file, uint64_t offset, const void *data, size_t size)
{
  const int status = disk_fault(d, HK_DISK_WRITE);
  const char *at = data;
  if (status != 0)
    return status;
  while (size > 0) {
    const ssize_t written = pwrite(file, at, size, (off_t)offset);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return written < 0 ? -errno : -EIO;
    at += written;
    offset += (uint64_t)written;
    size -= (size_t)written;
  }
  return 0;
}

int hk_disk_read(const struct hk_disk *d, int file, uint64_t offset, void *data, size_t size)
{
  const int status = disk_fault(d, HK_DISK_READ);
  char *at = data;
  if (status != 0)
    return status;
  while (size > 0) {
    const ssize_t got = pread(file, at, size, (off_t)offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return got < 0 ? -errno : -ENODATA;
    at += got;
    offset += (uint64_t)got;
    size -= (size_t)got;
  }
  return 0;
}

int hk_disk_sync(const struct hk_disk *d, int file)
{
  const int status = disk_fault(d, HK_DISK_SYNC);
  if (status != 0)
    return status;
  while (fdatasync(file) != 0)
    if (errno != EINTR)
      return -errno;
  return 0;
}

int hk_disk_sync_folder(const struct hk_disk *d, int folder)
{
  const int status = disk_fault(d, HK_DISK_SYNC);
  if (status != 0)
    return status;
  while (fsync(folder) != 0)
    if (errno != EINTR)
      return -errno;
  return 0;
}

int hk_disk_cut(const struct hk_disk *d, int folder, const char *name, uint64_t size)
{
  int status = disk_fault(d, HK_DISK_CUT);
  if (status != 0)
    return status;
  const int file = openat(folder, name, O_WRONLY | O_CLOEXEC);
  if (file < 0)
    return -errno;
  while ((status = ftruncate(file, (off_t)size)) != 0 && errno == EINTR)
    continue;
  status = status != 0 ? -errno : hk_disk_sync(d, file);
  close(file);
  return status;
}

int hk_disk_rename(const struct hk_disk *d, int folder, const char *from, const char *to)
{
  const int status = disk_fault(d, HK_DISK_RENAME);
  if (status != 0)
    return status;
  return renameat(folder, from, folder, to) != 0 ? -errno : 0;
}

int hk_disk_remove(const struct hk_disk *d, int folder, const char *name)
{
  const int status = disk_fault(d, HK_DISK_REMOVE);
  if (status != 0)
    return status;
  return unlinkat(folder, name, 0) != 0 ? -errno : 0;
}

int hk_disk_look(const struct hk_disk *d, int folder, const char *name, struct hk_disk_file *out)
{
  struct stat now;
  const int status = disk_fault(d, HK_DISK_LOOK);
  if (status != 0)
    return status;
  if ((name ? fstatat(folder, name, &now, 0) : fstat(folder, &now)) != 0)
    return -errno;
  *out = (struct hk_disk_file){ now.st_dev, now.st_ino, now.st_nlink, (uint64_t)now.st_size,
                                now.st_ctim.tv_sec * INT64_C(1000000000) + now.st_ctim.tv_nsec };
  return 0;
}

int hk_disk_replace(const struct hk_disk *d, int folder, const char *name, const char *beside, const void *data, size_t size,
                    struct hk_disk_file *written)
{
  int file;
  (void)hk_disk_remove(d, folder, beside); /* what stays there, no new file can take the place of */
  int status = hk_disk_create(d, folder, beside, &file);
  if (status != 0)
    return status;
  status = hk_disk_write(d, file, data, size);
  if (status == 0)
    status = hk_disk_sync(d, file);
  if (status == 0 && written)
    status = hk_disk_look(d, file, NULL, written);
  close(file); /* it was synced, or is not used */
  if (status == 0)
    status = hk_disk_rename(d, folder, beside, name);
  return status == 0 ? hk_disk_sync_folder(d, folder) : status;
}

void hk_disk_name(char out[HK_DISK_NAME_MAX], const char *stem, uint64_t number, const char *suffix)
{
  snprintf(out, HK_DISK_NAME_MAX, "%.20s-%0*" PRIu64 ".%.8s", stem, DIGITS, number, suffix);
}

/* The number in a name; false: it is not of these files. */
static bool disk_number_of(const char *name, const char *stem, const char *suffix, uint64_t *number)
{
  const size_t length = strlen(stem);
  char same[HK_DISK_NAME_MAX];
  if (strncmp(name, stem, length) != 0 || name[length] != '-')
    return false;
  *number = strtoull(name + length + 1, NULL, 10);
  hk_disk_name(same, stem, *number, suffix);
  return strcmp(same, name) == 0;
}

static int by_number(const void *a, const void *b)
{
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static int disk_collect(DIR *dir, const char *stem, const char *suffix, uint64_t **numbers, size_t *n)
{
  const struct dirent *entry;
  size_t capacity = 0;
  while ((errno = 0, entry = readdir(dir)) != NULL) {
    uint64_t number;
    if (!disk_number_of(entry->d_name, stem, suffix, &number))
      continue;
    if (*n == capacity) {
      capacity = capacity ? 2 * capacity : 16;
      uint64_t *more = realloc(*numbers, capacity * sizeof *more);
      if (!more)
        return -ENOMEM;
      *numbers = more;
    }
    (*numbers)[(*n)++] = number;
  }
  return -errno;
}

int hk_disk_list(const struct hk_disk *d, int folder, const char *stem, const char *suffix, uint64_t **numbers, size_t *n)
{
  int status = disk_fault(d, HK_DISK_LIST);
  *numbers = NULL;
  *n = 0;
  if (status != 0)
    return status;
  const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with a position of its own */
  DIR *dir = again >= 0 ? fdopendir(again) : NULL;
  if (!dir) {
    status = -errno;
    if (again >= 0)
      close(again);
    return status;
  }
  status = disk_collect(dir, stem, suffix, numbers, n);
  closedir(dir);
  if (status != 0) {
    free(*numbers);
    *numbers = NULL;
    *n = 0;
  } else if (*n > 1) {
    qsort(*numbers, *n, sizeof **numbers, by_number);
  }
  return status;
}

int hk_disk_empty(const struct hk_disk *d, int folder, bool *empty)
{
  int status = disk_fault(d, HK_DISK_LIST);
  if (status != 0)
    return status;
  const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = again >= 0 ? fdopendir(again) : NULL;
  const struct dirent *entry;
  if (!dir) {
    status = -errno;
    if (again >= 0)
      close(again);
    return status;
  }
  *empty = true;
  while (*empty && (errno = 0, entry = readdir(dir)) != NULL)
    *empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
  status = -errno;
  closedir(dir);
  return *empty ? status : 0;
}
