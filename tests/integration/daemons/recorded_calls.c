/* Preloaded into the daemon: writes a line to the file $RECORDED_CALLS for each of its calls whose order matters in a crash:
 *
 *   folder PATH        after a folder was made
 *   create PATH        after a file was made
 *   write PATH         before a file is written to
 *   sync PATH          after a file or folder was synced
 *   rename PATH PATH   before a file is renamed
 *   remove PATH        before a file is removed
 *   send TYPE          before a frame of the binary protocol is sent; TYPE in hexadecimal
 *
 * So calls listed before a `sync` that is listed before a `send` were on the disk before the frame was sent. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

int openat(int folder, const char *path, int flags, ...);
int mkdirat(int folder, const char *path, mode_t mode);
int renameat(int from, const char *old, int to, const char *new);
int unlinkat(int folder, const char *path, int flags);
int fdatasync(int file);
int fsync(int file);
ssize_t write(int file, const void *data, size_t size);
ssize_t writev(int file, const struct iovec *parts, int n);

#define HEAD 16 /* bytes of a frame before its payload */

static int out = -1;

__attribute__((constructor)) static void recorder_open(void)
{
  const char *path = getenv("RECORDED_CALLS");
  out = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
}

static void *real(const char *name)
{
  return dlsym(RTLD_NEXT, name);
}

static void record(const char *what, const char *path, const char *then)
{
  char line[1024];
  const int kept = errno, n = snprintf(line, sizeof line, "%s %s%s%s\n", what, path, *then ? " " : "", then);
  if (out >= 0 && n > 0 && (size_t)n < sizeof line && syscall(SYS_write, out, line, (size_t)n) != n)
    abort();
  errno = kept;
}

/* The path that a descriptor is open on; "": it has none. */
static const char *path_of(int file, char path[512])
{
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t n = readlink(link, path, 511);
  path[n > 0 ? n : 0] = 0;
  return path;
}

static const char *path_at(int folder, const char *name, char path[512])
{
  if (*name == '/' || folder == AT_FDCWD) {
    snprintf(path, 512, "%s", name);
    return path;
  }
  (void)path_of(folder, path);
  const size_t n = strlen(path);
  snprintf(path + n, 512 - n, "/%s", name);
  return path;
}

int openat(int folder, const char *name, int flags, ...)
{
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  char path[512];
  int (*call)(int, const char *, int, ...);
  *(void **)&call = real("openat");
  const int file = call(folder, name, flags, mode);
  if (file >= 0 && (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
    record("create", path_of(file, path), "");
  return file;
}

int mkdirat(int folder, const char *name, mode_t mode)
{
  char path[512];
  int (*call)(int, const char *, mode_t);
  *(void **)&call = real("mkdirat");
  const int status = call(folder, name, mode);
  if (status == 0)
    record("folder", path_at(folder, name, path), "");
  return status;
}

int renameat(int from, const char *old, int to, const char *new)
{
  char path[512], then[512];
  int (*call)(int, const char *, int, const char *);
  *(void **)&call = real("renameat");
  record("rename", path_at(from, old, path), path_at(to, new, then));
  return call(from, old, to, new);
}

int unlinkat(int folder, const char *name, int flags)
{
  char path[512];
  int (*call)(int, const char *, int);
  *(void **)&call = real("unlinkat");
  record("remove", path_at(folder, name, path), "");
  return call(folder, name, flags);
}

static int synced(int file, const char *name)
{
  char path[512];
  int (*call)(int);
  *(void **)&call = real(name);
  const int status = call(file);
  if (status == 0)
    record("sync", path_of(file, path), "");
  return status;
}

int fdatasync(int file)
{
  return synced(file, "fdatasync");
}

int fsync(int file)
{
  return synced(file, "fsync");
}

/* Frames in what is sent: they begin where the one before ends, and a buffer begins with one unless the last was sent in parts.
 */
static void record_frames(const uint8_t *data, size_t size)
{
  for (size_t at = 0; at + HEAD <= size && memcmp(data + at, "HK\1", 3) == 0;) {
    char type[8], number[24];
    uint64_t first = 0;
    uint32_t length;
    memcpy(&length, data + at + 4, sizeof length);
    if (length >= sizeof first && size - at >= HEAD + sizeof first)
      memcpy(&first, data + at + HEAD, sizeof first);
    snprintf(type, sizeof type, "%02x", data[at + 3]);
    snprintf(number, sizeof number, "%llu", (unsigned long long)first);
    record("send", type, number);
    at += HEAD + length;
  }
}

static void record_write(int file, const void *data, size_t size)
{
  char path[512];
  struct stat now;
  if (fstat(file, &now) != 0)
    return;
  if (S_ISREG(now.st_mode))
    record("write", path_of(file, path), "");
  else if (S_ISSOCK(now.st_mode))
    record_frames(data, size);
}

ssize_t write(int file, const void *data, size_t size)
{
  ssize_t (*call)(int, const void *, size_t);
  *(void **)&call = real("write");
  record_write(file, data, size);
  return call(file, data, size);
}

ssize_t writev(int file, const struct iovec *parts, int n)
{
  ssize_t (*call)(int, const struct iovec *, int);
  *(void **)&call = real("writev");
  for (int i = 0; i < n; i++)
    record_write(file, parts[i].iov_base, parts[i].iov_len);
  return call(file, parts, n);
}
