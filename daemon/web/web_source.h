/* The web's requests to the server. */
#ifndef HK_WEB_SOURCE_H
#define HK_WEB_SOURCE_H

#include "daemon/base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

/* Phase of the daemon. */
enum hk_web_phase { HK_WEB_RESTORING, HK_WEB_SERVING, HK_WEB_ENDING };

#define HK_WEB_AFTER 300 /* bytes of where a list goes on, with the 0: a place, and a machine's name */

struct hk_inquiry;

/* Part of a list: at most `limit` entries after `after` whose sensors' names match. */
struct hk_web_part {
  const char *glob; /* "": all */
  uint64_t after;
  uint32_t limit; /* at least 1 */
};

/* A requested list of sensors; "": no condition. */
struct hk_web_sensors {
  bool rows;   /* one row each, for another machine (server/fleet_list.h) */
  bool groups; /* machines of groups and fields, by their series, with the sensors of each; otherwise sensors */
  bool lines;  /* with `groups`: the models among them, each with the profile of this line: */
  uint32_t line;
  const char *glob;
  uint32_t limit; /* at least 1 */
  char channel[16], state[16], alert[8], sort[8], after[HK_WEB_AFTER];
};

/* The server's answers. Thread: the web's, while the daemon serves. */
struct hk_web_answers {
  void *arg;
  /* All metrics, as OpenMetrics or (open = false) in Prometheus' older text format. */
  void (*metrics)(void *arg, bool open, struct hk_buffer *out);
  /* Appends the reasons why the daemon is not ready, as JSON strings separated by commas; nothing: it is ready. */
  void (*obstacles)(void *arg, struct hk_buffer *out);
  /* Append one JSON object each. 0, -ENOMEM, or -ENOTSUP: events, and the daemon keeps no event log. */
  int (*alerts)(void *arg, const struct hk_web_part *part, struct hk_buffer *out); /* standing alerts; `after` is ignored */
  int (*events)(void *arg, const struct hk_web_part *part, struct hk_buffer *out); /* after: a position; */
  int (*told)(void *arg, const struct hk_web_part *part, struct hk_buffer *out);   /* the same */
  void (*incidents)(void *arg, struct hk_buffer *out);                             /* these append an object of JSON */
  void (*feedback)(void *arg, struct hk_buffer *out);
  void (*maintenance)(void *arg, struct hk_buffer *out);
  void (*cluster)(void *arg, struct hk_buffer *out);
  /* Requests that take a while: a look at one sensor, with the state of its device and at most `scores` past scores of each of
   * its series; and a list. In a cluster other machines may answer them. Each starts an inquiry: ready(ready_arg) is called on
   * another thread, perhaps several times, when there may be an answer, and answered returns its status, 0: not yet. Then the
   * answer was appended: JSON with status 200, else a reason in words. Pass the same buffer in each call, the first one at once.
   * drop ends an inquiry, answered or not; NULL is allowed. *out is NULL: out of memory; list returns the error of the request,
   * or NULL. */
  void (*look)(void *arg, const char *name, uint32_t scores, void (*ready)(void *arg), void *ready_arg, struct hk_inquiry **out);
  const char *(*list)(void *arg, const struct hk_web_sensors *asked, void (*ready)(void *arg), void *ready_arg,
                      struct hk_inquiry **out);
  unsigned (*answered)(struct hk_inquiry *inquiry, struct hk_buffer *out);
  void (*drop)(struct hk_inquiry *inquiry);
};

#endif
