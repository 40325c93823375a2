/* What the web asks of the server. */
#ifndef HK_WEB_SOURCE_H
#define HK_WEB_SOURCE_H

#include "daemon/base/buffer.h"

#include <stdbool.h>

/* How far the daemon is. */
enum hk_web_phase { HK_WEB_RESTORING, HK_WEB_SERVING, HK_WEB_ENDING };

/* What the server answers. Thread: the web's, while the daemon serves. */
struct hk_web_answers {
  void *arg;
  /* All metrics, as OpenMetrics or (open = false) in Prometheus' older text format. */
  void (*metrics)(void *arg, bool open, struct hk_buffer *out);
  /* Appends what stands in the way of scoring, one JSON string after another with commas between them; nothing: all is well. */
  void (*obstacles)(void *arg, struct hk_buffer *out);
};

#endif
