/* hankeld with a wall clock that can be set: it is as many nanoseconds ahead as stand in the file $HANKELD_CLOCK (an int64_t,
 * little endian), which may be written at any time. The monotonic clock is left alone. */
#include "daemon/server/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

extern int __real_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time);

static const volatile int64_t *ahead;

int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
  const int status = __real_clock_gettime(id, time);
  if (status != 0 || id != CLOCK_REALTIME || !ahead)
    return status;
  const int64_t now = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec + *ahead;
  *time = (struct timespec){ .tv_sec = now / 1000000000, .tv_nsec = now % 1000000000 };
  return 0;
}

int main(int argc, char **argv)
{
  const char *path = getenv("HANKELD_CLOCK");
  const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) {
    fprintf(stderr, "HANKELD_CLOCK: %s\n", strerror(errno));
    return 1;
  }
  ahead = page;
  return hk_program(argc, argv, hk_backend_kinds);
}
