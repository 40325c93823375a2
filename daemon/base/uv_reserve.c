/* In one place libuv aborts the process when an allocation fails: its table of descriptors, which grows when a descriptor with a
 * new highest number is watched. So the table gets its final size at the start, where a failure may end the daemon with a
 * message. Elsewhere libuv returns an error when an allocation fails. */
#include "daemon/base/uv_reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

static void *uv_reserve_grow(void *memory, size_t size)
{
  static const char words[] = "hankeld: error: no memory for the table of descriptors; the daemon ends\n";
  void *grown = realloc(memory, size);
  if (grown || size == 0)
    return grown;
  const ssize_t written = write(STDERR_FILENO, words, sizeof words - 1);
  (void)written;
  _exit(EXIT_FAILURE);
}

int hk_reserve_memory(void)
{
  return uv_replace_allocator(malloc, uv_reserve_grow, calloc, free);
}

static void uv_reserve_on_poll(uv_poll_t *poll, int status, int events)
{
  (void)poll;
  (void)status;
  (void)events;
}

int hk_reserve_descriptors(uv_loop_t *loop, unsigned n)
{
  struct rlimit files;
  uv_poll_t poll;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && n >= files.rlim_cur)
    n = files.rlim_cur > 1 ? (unsigned)files.rlim_cur - 1 : 1;
  const int any = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int high = any < 0 ? -1 : fcntl(any, F_DUPFD_CLOEXEC, (int)n);
  int status = high < 0 ? -errno : uv_poll_init(loop, &poll, high);
  if (status == 0) {
    status = uv_poll_start(&poll, UV_READABLE, uv_reserve_on_poll);
    uv_close((uv_handle_t *)&poll, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
  }
  if (high >= 0)
    close(high);
  if (any >= 0)
    close(any);
  return status;
}
