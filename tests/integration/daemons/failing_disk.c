/* Preloaded into the daemon: a disk that fails on order. The file $FAILING_DISK says how, at each call, as long as it is there:
 *
 *   write E     writing to files that were made since the start fails with errno E
 *   sync E      fdatasync does
 *   create E    making a file does
 *   snapshot E  making a snapshot's file does
 *   dead E      all of these do, and so does writing to files that were there
 *   slow N      fdatasync takes N ms, or until the file says something else
 *
 * Only durability makes files and calls fdatasync, so all else is left alone. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int fdatasync(int file);
ssize_t write(int file, const void *data, size_t size);
ssize_t pwrite(int file, const void *data, size_t size, off_t offset);
int openat(int folder, const char *path, int flags, ...);
int close(int file);

#define FILES 4096
static atomic_bool made[FILES];

/* The number behind a word in the file; 0: it says something else. */
static int order(const char *word)
{
  const char *path = getenv("FAILING_DISK");
  char text[64] = "", what[32];
  int number;
  const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0)
    return 0;
  const ssize_t n = read(file, text, sizeof text - 1);
  (void)close(file);
  return n > 0 && sscanf(text, "%31s %d", what, &number) == 2 && strcmp(what, word) == 0 ? number : 0;
}

static void *real(const char *name)
{
  return dlsym(RTLD_NEXT, name);
}

int openat(int folder, const char *path, int flags, ...)
{
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const bool makes = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  const bool snapshot = makes && strncmp(path, "snapshot", 8) == 0;
  const int error = makes ? order("create") | order("dead") | (snapshot ? order("snapshot") : 0) : 0;
  if (error != 0) {
    errno = error;
    return -1;
  }
  int (*call)(int, const char *, int, ...);
  *(void **)&call = real("openat");
  const int file = call(folder, path, flags, mode);
  if (file >= 0 && file < FILES)
    made[file] = makes;
  return file;
}

int close(int file)
{
  int (*call)(int);
  *(void **)&call = real("close");
  if (file >= 0 && file < FILES)
    made[file] = false;
  return call(file);
}

ssize_t write(int file, const void *data, size_t size)
{
  const int error = file >= 0 && file < FILES && made[file] ? order("write") | order("dead") : 0;
  if (error != 0) {
    errno = error;
    return -1;
  }
  ssize_t (*call)(int, const void *, size_t);
  *(void **)&call = real("write");
  return call(file, data, size);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset)
{
  const int error = order("dead");
  if (error != 0) {
    errno = error;
    return -1;
  }
  ssize_t (*call)(int, const void *, size_t, off_t);
  *(void **)&call = real("pwrite");
  return call(file, data, size, offset);
}

int fdatasync(int file)
{
  const struct timespec moment = { 0, 1000000 };
  const int error = order("sync") | order("dead");
  for (int i = 0, n; (n = order("slow")) > 0 && i < n; i++)
    nanosleep(&moment, NULL);
  if (error != 0) {
    errno = error;
    return -1;
  }
  int (*call)(int);
  *(void **)&call = real("fdatasync");
  return call(file);
}
