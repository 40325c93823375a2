/* Sends to one subscriber: see subscriber_send.h. */
#include "daemon/publish/subscriber_send.h"

#include "daemon/publish/encode_results.h"
#include "daemon/publish/view.h"

#include <errno.h>

struct hk_message *hk_gap_message(struct hk_subscriber *s)
{
  struct hk_message *m = s->gap_results + s->gap_events > 0 ? hk_message_new(NULL) : NULL;
  if (m)
    hk_encode_gap(&m->bytes, s->view->wanted.format, s->gap_results, s->gap_events);
  return m;
}

void hk_send_gap(struct hk_subscriber *s, size_t room)
{
  if (!s->view || s->gap_results + s->gap_events == 0 || uv_stream_get_write_queue_size(s->stream) >= room)
    return;
  struct hk_message *m = hk_gap_message(s);
  if (m && hk_send_queue_send(NULL, s, &m, 1, 0) == 0)
    s->gap_results = s->gap_events = 0;
  hk_message_release(m);
}

int hk_send(struct hk_subscriber *s, const void *data, size_t size)
{
  struct hk_message *m = hk_message_new(NULL);
  if (!m)
    return -ENOMEM;
  hk_buffer_put(&m->bytes, data, size);
  const int status = hk_send_queue_send(NULL, s, &m, 1, size);
  hk_message_release(m);
  hk_send_gap(s, 1); /* otherwise it is sent when the write has finished */
  return status;
}

int hk_send_records(struct hk_subscriber *s, const void *data, size_t size)
{
  struct hk_message *m = hk_message_new(NULL);
  if (!m)
    return -ENOMEM;
  hk_buffer_put(&m->bytes, data, size);
  const int status = hk_send_queue_put(NULL, s, &m, 1, size);
  hk_message_release(m);
  return status;
}

int hk_send_events(struct hk_subscriber *s, const void *data, size_t size)
{
  hk_send_gap(s, SIZE_MAX);
  struct hk_message *m = s->gap_results + s->gap_events > 0 ? NULL : hk_message_new(NULL);
  if (!m)
    return -ENOMEM; /* also when the gap notice could not be sent */
  hk_buffer_put(&m->bytes, data, size);
  const int status = hk_send_queue_send(NULL, s, &m, 1, 0);
  hk_message_release(m);
  return status;
}

bool hk_subscriber_stuck(struct hk_subscriber *s, int64_t now, int64_t stuck)
{
  const size_t queued = uv_stream_get_write_queue_size(s->stream);
  if (queued == 0 || queued < s->queued)
    s->progress = now;
  s->queued = queued;
  return stuck > 0 && now - s->progress > stuck;
}
