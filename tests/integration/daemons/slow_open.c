/* Preloaded into the daemon: a file whose path ends in $SLOW_OPEN is opened only once the file $SLOW_OPEN_WHILE is gone (after 20
 * s at most), as on a file system that hangs. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_for(const char *path)
{
  const char *slow = getenv("SLOW_OPEN"), *hold = getenv("SLOW_OPEN_WHILE");
  const size_t length = strlen(path), end = slow ? strlen(slow) : 0;
  if (!slow || !hold || length < end || strcmp(path + length - end, slow) != 0)
    return;
  for (int i = 0; i < 2000 && access(hold, F_OK) == 0; i++)
    usleep(10000);
}

#define OPEN(name)                                                                                                               \
  int name(const char *path, int flags, ...);                                                                                    \
  int name(const char *path, int flags, ...)                                                                                     \
  {                                                                                                                              \
    va_list more;                                                                                                                \
    va_start(more, flags);                                                                                                       \
    const int mode = va_arg(more, int);                                                                                          \
    va_end(more);                                                                                                                \
    wait_for(path);                                                                                                              \
    return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name))(path, flags, mode);                                        \
  }
#define FOPEN(name)                                                                                                              \
  FILE *name(const char *path, const char *mode);                                                                                \
  FILE *name(const char *path, const char *mode)                                                                                 \
  {                                                                                                                              \
    wait_for(path);                                                                                                              \
    return ((FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, #name))(path, mode);                                       \
  }

OPEN(open)
FOPEN(fopen)
