/* A subscriber: whom results and events are sent to. Part of a connection; the publisher, the follower and the send queue each
 * use members of it. Thread: its loop's. */
#ifndef HK_SUBSCRIBER_H
#define HK_SUBSCRIBER_H

#include "daemon/base/buffer.h"
#include "daemon/durable/event_log.h"
#include "daemon/publish/names_sent.h"

#include <uv.h>

struct hk_view;

/* Zero-initialised. */
struct hk_subscriber {
  uv_stream_t *stream;
  /* Encrypts bytes and appends the TLS records to `records`. Returns 0, or a negative errno: -EPIPE if the connection has
   * ended. NULL: no TLS. */
  int (*seal)(void *arg, const void *data, size_t size, struct hk_buffer *records);
  void *seal_arg;
  void (*wrote)(struct hk_subscriber *subscriber, int status); /* a write has succeeded or failed */
  struct hk_view *view;                                        /* NULL: not subscribed */
  struct hk_subscriber *next, *previous;                       /* list of the view's subscribers */
  uint64_t gap_results, gap_events;                            /* dropped since the last gap notice */
  struct hk_eventlog_cursor events;                            /* with an event log: its position there */
  struct hk_names_sent names_sent;                             /* binary: slots whose names were sent */
  uint64_t settled; /* number of sensors ever added whose names were sent or are no longer needed */
  size_t replies;   /* bytes of hk_send that are not sent yet */
  size_t queued;    /* bytes in the queue at the last check of progress */
  int64_t progress; /* ns: when the queue was last seen empty or shrinking */
};

#endif
