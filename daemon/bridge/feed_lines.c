#include "daemon/bridge/feed_lines.h"

#include "daemon/base/buffer.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define SUMMARY 4096u

static uint64_t count_of(const cJSON *json, const char *name)
{
  const double number = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(json, name));
  return number > 0 ? (uint64_t)number : 0;
}

/* The final line of the answer. */
static int read_summary(const struct hk_buffer *text, struct hk_lines_fed *out)
{
  cJSON *json = text->failed ? NULL : cJSON_ParseWithLength(text->data, text->size);
  const cJSON *fault;
  if (!json)
    return text->failed ? -ENOMEM : -EPIPE;
  out->taken = count_of(json, "taken");
  out->refused = count_of(json, "refused");
  out->dropped = count_of(json, "dropped");
  cJSON_ArrayForEach(fault, cJSON_GetObjectItemCaseSensitive(json, "faults"))
  {
    const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(fault, "why"));
    if (out->n == HK_FEED_FAULTS || !why)
      break;
    out->fault[out->n].line = count_of(fault, "line");
    snprintf(out->fault[out->n++].why, HK_FEED_WHY, "%s", why);
  }
  cJSON_Delete(json);
  return 0;
}

/* Sends the rest of the lines. Returns 0, 1: all are sent; or a negative errno. */
static int send_some(int fd, const char **lines, size_t *size)
{
  while (*size > 0) {
    const ssize_t n = send(fd, *lines, *size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
      return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    *lines += n;
    *size -= (size_t)n;
  }
  return shutdown(fd, SHUT_WR) == 0 ? 1 : -errno;
}

static int talk(int fd, const char *lines, size_t size, struct hk_buffer *said)
{
  bool sends = true;
  for (;;) {
    struct pollfd p = { .fd = fd, .events = (short)(POLLIN | (sends ? POLLOUT : 0)) };
    if (poll(&p, 1, -1) < 0 && errno != EINTR)
      return -errno;
    const int status = sends && p.revents & POLLOUT ? send_some(fd, &lines, &size) : 0;
    if (status < 0)
      return status;
    sends = sends && status == 0;
    if (!(p.revents & (POLLIN | POLLHUP | POLLERR)))
      continue;
    char *room = hk_buffer_room(said, SUMMARY);
    if (!room)
      return -ENOMEM;
    const ssize_t n = recv(fd, room, SUMMARY, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
      return 0; /* the answer shows whether that is the end or a failure */
    said->size += n > 0 ? (size_t)n : 0;
  }
}

int hk_feed_lines(struct hk_net *net, const struct hk_inner *inner, const char *lines, size_t size, struct hk_lines_fed *out)
{
  struct hk_buffer said = { 0 };
  *out = (struct hk_lines_fed){ 0 };
  const int fd = hk_inner_open(net, inner);
  if (fd < 0)
    return fd;
  int status = talk(fd, lines, size, &said);
  close(fd);
  if (status == 0)
    status = read_summary(&said, out);
  hk_buffer_free(&said);
  return status;
}
