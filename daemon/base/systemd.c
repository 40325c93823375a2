/* The protocol of systemd is that of sd_notify(3), sd_watchdog_enabled(3) and sd_listen_fds(3): environment variables and a
 * datagram. Its library, with those that it needs, would take longer to load than all else. */
#include "daemon/base/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_SOCKET 3
#define SOCKETS_MOST 1024 /* more are a mistake */

void hk_notify(const char *state)
{
  struct sockaddr_un to = { .sun_family = AF_UNIX };
  const char *path = getenv("NOTIFY_SOCKET");
  const size_t length = path ? strlen(path) : 0;
  if (length < 2 || length >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
    return;
  memcpy(to.sun_path, path, length);
  if (path[0] == '@')
    to.sun_path[0] = 0; /* no file */
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return;
  (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)); /* nobody to tell it to is no fault */
  close(fd);
}

/* Reads an environment variable that is a number up to `most`. False: it is not set, or is not one. */
static bool read_variable(const char *name, uint64_t most, uint64_t *value)
{
  const char *text = getenv(name);
  char *end;
  errno = 0;
  *value = text ? strtoull(text, &end, 10) : 0;
  return text && errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == 0 && *value <= most;
}

/* Whether a variable names this process, as the ones beside it are then for it. */
static bool is_ours(const char *name)
{
  uint64_t pid;
  return read_variable(name, INT32_MAX, &pid) && pid == (uint64_t)getpid();
}

uint64_t hk_notify_watchdog(void)
{
  uint64_t us;
  return read_variable("WATCHDOG_USEC", INT64_MAX, &us) && (!getenv("WATCHDOG_PID") || is_ours("WATCHDOG_PID")) ? us : 0;
}

/* The names of n sockets, which stand between colons, if there are any. 0 or a negative errno. */
static int read_names(uint64_t n, char **names)
{
  const char *at = getenv("LISTEN_FDNAMES");
  for (uint64_t i = 0; i < n && at; i++) {
    const size_t length = strcspn(at, ":");
    names[i] = strndup(at, length);
    if (!names[i])
      return -ENOMEM;
    if ((at[length] == 0) != (i == n - 1))
      return -EINVAL;
    at += length + 1;
  }
  return 0;
}

int hk_notify_sockets(int *first, char ***names)
{
  uint64_t n;
  *first = FIRST_SOCKET;
  *names = NULL;
  if (!is_ours("LISTEN_PID") || !read_variable("LISTEN_FDS", SOCKETS_MOST, &n) || n == 0)
    return 0;
  int status = 0;
  for (int fd = FIRST_SOCKET; fd < FIRST_SOCKET + (int)n && status == 0; fd++)
    status = fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? 0 : -errno;
  char **out = status == 0 ? calloc(n, sizeof *out) : NULL;
  if (status == 0)
    status = out ? read_names(n, out) : -ENOMEM;
  unsetenv("LISTEN_PID"); /* programs that are started from here have no sockets of these numbers */
  unsetenv("LISTEN_FDS");
  unsetenv("LISTEN_FDNAMES");
  if (status == 0) {
    *names = out;
    return (int)n;
  }
  for (uint64_t i = 0; i < n && out; i++)
    free(out[i]);
  free(out);
  return status;
}
