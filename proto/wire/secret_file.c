/* See secret_file.h. */
#include "proto/wire/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRIES 3     /* attempts, if the file changes while it is read */
#define FIRST 65536 /* initial buffer, bytes */

static const char *secret_file_kind_of(mode_t mode)
{
  return S_ISDIR(mode)    ? "a directory"
         : S_ISFIFO(mode) ? "a FIFO"
         : S_ISCHR(mode)  ? "a device"
         : S_ISBLK(mode)  ? "a device"
         : S_ISSOCK(mode) ? "a socket"
                          : "no file";
}

static bool secret_file_same(const struct stat *a, const struct stat *b)
{
  return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
         a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Waits until there is something to read, or the end of the data. until: ms, monotonic. */
static int secret_file_await(int file, int64_t until)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t left = until - (now.tv_sec * 1000ll + now.tv_nsec / 1000000);
  struct pollfd wanted = { .fd = file, .events = POLLIN };
  return left > 0 && poll(&wanted, 1, (int)left) > 0 ? 0 : -ETIMEDOUT;
}

/* Reads an open file to its end. Returns 0 or a negative errno; the caller owns what was read in either case. */
static int secret_file_take(int file, size_t most, int patience, char **data, size_t *size)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t until = now.tv_sec * 1000ll + now.tv_nsec / 1000000 + patience;
  size_t room = 0;
  for (int status = 0; status == 0;) {
    if (*size + 1 >= room) {
      room = room ? 2 * room : FIRST;
      char *more = malloc(room); /* not realloc, which may leave a copy of the secret */
      if (!more)
        return -ENOMEM;
      if (*size > 0)
        memcpy(more, *data, *size);
      hk_secret_free(*data, *size);
      *data = more;
    }
    const ssize_t n = read(file, *data + *size, room - *size - 1);
    if (n > 0)
      *size += (size_t)n;
    (*data)[*size] = 0;
    if (n == 0)
      return 0;
    if (*size > most)
      return -EFBIG;
    if (n < 0 && errno != EINTR)
      status = errno == EAGAIN && patience > 0 ? secret_file_await(file, until) : -errno;
    if (status != 0)
      return status;
  }
  return 0;
}

static int secret_file_once(const char *path, size_t most, int patience, char **data, size_t *size, char why[HK_SECRET_WHY])
{
  struct stat before, after;
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  int status = file < 0 || fstat(file, &before) != 0 ? -errno : 0;
  const bool pipe = status == 0 && S_ISFIFO(before.st_mode) && patience > 0;
  *data = NULL;
  *size = 0;
  if (status == -ENXIO) { /* a socket */
    status = -EINVAL;
    snprintf(why, HK_SECRET_WHY, "it is no file");
  } else if (status == 0 && !S_ISREG(before.st_mode) && !pipe) {
    status = -EINVAL;
    snprintf(why, HK_SECRET_WHY, "it is %s, and a file is needed", secret_file_kind_of(before.st_mode));
  } else if (status == 0 && before.st_size > (off_t)most) {
    status = -EFBIG;
  }
  if (status == 0)
    status = secret_file_take(file, most, pipe ? patience : 0, data, size);
  if (status == 0 && !pipe && fstat(file, &after) == 0 && (!secret_file_same(&before, &after) || (size_t)after.st_size != *size))
    status = -EAGAIN;
  if (file >= 0)
    close(file);
  if (status == -EFBIG)
    snprintf(why, HK_SECRET_WHY, "it is longer than %zu KiB", most / 1024);
  else if (status == -EAGAIN)
    snprintf(why, HK_SECRET_WHY, "it was changed while it was read; put a new file in its place with mv");
  else if (status == -ETIMEDOUT)
    snprintf(why, HK_SECRET_WHY, "nothing came through it within %d s", patience / 1000);
  else if (status != 0 && status != -EINVAL)
    snprintf(why, HK_SECRET_WHY, "%s", strerror(-status));
  return status;
}

int hk_secret_read(const char *path, size_t most, int patience, char **data, size_t *size, char why[HK_SECRET_WHY])
{
  int status = -EAGAIN;
  snprintf(why, HK_SECRET_WHY, "%s", strerror(EINVAL));
  for (uint32_t i = 0; i < TRIES && status == -EAGAIN; i++) {
    status = secret_file_once(path, most, patience, data, size, why);
    if (status == 0)
      return 0;
    hk_secret_free(*data, *size);
    *data = NULL;
    *size = 0;
  }
  return status;
}

void hk_secret_free(char *data, size_t size)
{
  if (data)
    explicit_bzero(data, size);
  free(data);
}
