/* The web's requests to the server. */
#ifndef HK_WEB_SOURCE_H
#define HK_WEB_SOURCE_H

#include "daemon/base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

/* Phase of the daemon. */
enum hk_web_phase { HK_WEB_RESTORING, HK_WEB_SERVING, HK_WEB_ENDING };

#define HK_WEB_MACHINE 256 /* bytes of a machine's name, with the 0 */

struct hk_look;
struct hk_sensor_list;

/* Part of a list: at most `limit` entries after `after` whose sensors' names match. */
struct hk_web_part {
  const char *glob; /* "": all */
  uint64_t after;
  uint32_t limit; /* at least 1 */
};

/* A requested list of sensors; "": no condition. */
struct hk_web_sensors {
  bool groups; /* machines of groups and fields, by their series, with the sensors of each; otherwise sensors */
  bool lines;  /* with `groups`: the models among them, each with the profile of this line: */
  uint32_t line;
  const char *glob;
  uint32_t limit; /* at least 1 */
  char channel[16], state[16], alert[8], sort[8], after[40];
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
  /* A look at one sensor, with the state of its device and at most `scores` past scores. look starts the request, `ready` is
   * called on another thread when the answer is available, seen appends it, unlook frees it. As in server/web_sensor.h. */
  int (*look)(void *arg, const char *name, uint32_t scores, void (*ready)(void *arg), void *ready_arg, struct hk_look **out);
  int (*seen)(void *arg, const struct hk_look *look, struct hk_buffer *out);
  /* Whether another machine of a cluster scores the sensors of such a name; *machine: which, HOST:PORT. */
  bool (*elsewhere)(void *arg, const char *name, char machine[HK_WEB_MACHINE]);
  void (*unlook)(struct hk_look *look);
  /* A page of the list of sensors. list starts the request, and returns NULL or the error of the request; NULL with *out NULL:
   * out of memory. `ready` is called on another thread, perhaps several times. listed: whether the request is done; then the
   * page was appended, and the request freed. Pass the same buffer in each call. */
  const char *(*list)(void *arg, const struct hk_web_sensors *asked, void (*ready)(void *arg), void *ready_arg,
                      struct hk_sensor_list **out);
  bool (*listed)(struct hk_sensor_list *list, struct hk_buffer *out);
  void (*unlist)(struct hk_sensor_list *list);
};

#endif
