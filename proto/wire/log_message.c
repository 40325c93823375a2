#include "proto/wire/log_message.h"
#include "proto/wire/columns.h"

#include <errno.h>

int hk_log_message_write(struct hk_writer *w, uint32_t n, const struct hk_string *names, const struct hk_points *points)
{
  const size_t before = w->size;
  int status = hk_register_write(w, 0, n, names);
  if (status == 0)
    status = hk_points_write(w, 0, points);
  if (status != 0)
    w->size = before;
  return status;
}

static int log_message_bad(const char **why, const char *words)
{
  *why = words;
  return -EBADMSG;
}

/* Reads the frame at the start of data, which must be of this type. */
static int log_message_next(const uint8_t **data, size_t *size, uint8_t type, struct hk_frame *f)
{
  const int code = hk_frame_read(*data, *size, HK_FRAME_MAX, f);
  if (code != HK_FRAME_WHOLE || f->type != type)
    return code == HANKEL_BAD_CHECKSUM ? code : HANKEL_BAD_PAYLOAD;
  *data += hk_frame_size(f);
  *size -= hk_frame_size(f);
  return 0;
}

int hk_log_message_read(const void *data, size_t size, struct hk_list *names, struct hk_points *points, const char **why)
{
  const uint8_t *at = data;
  struct hk_frame first, second;
  int code = log_message_next(&at, &size, HK_REGISTER, &first);
  if (code == 0)
    code = log_message_next(&at, &size, HK_POINTS, &second);
  if (code == HANKEL_BAD_CHECKSUM)
    return log_message_bad(why, "it was damaged: a checksum does not match");
  if (code != 0 || size > 0)
    return log_message_bad(why, "it is not a REGISTER frame and a POINTS frame");
  if (hk_register_read(&first, names) != 0 || hk_points_read(&second, points) != 0)
    return log_message_bad(why, "a frame has not the layout of its type");
  if (points->feed != 0 || points->sequence != 0 || points->before != 0 || points->time_kind == HK_TIME_ARRIVAL)
    return log_message_bad(why, "its points have no times of their own, or name a feed");
  if (points->n > HK_LOG_POINTS_MAX)
    return log_message_bad(why, "it has over 8,192 points");
  for (uint32_t i = 0; i < points->n; i++) {
    uint32_t handle;
    hk_points_handles(points, i, 1, &handle);
    if (handle >= names->n)
      return log_message_bad(why, "a point is of no name that it has");
  }
  return 0;
}
