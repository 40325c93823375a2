/* Points of requests: sent as lines over an inner connection, like those of any other sender. The answer is sent when all
 * points were handled (with a journal: committed). Thread: the web's. */
#ifndef HK_WEB_FEED_H
#define HK_WEB_FEED_H

#include "daemon/web/web_internal.h"

#include <cjson/cJSON.h>

/* Outcome of the points of a request. */
struct hk_web_fed {
  uint64_t taken;            /* points that reached their sensors, of which */
  uint64_t late, rejected;   /* so many were late or rejected there */
  uint64_t refused, dropped; /* as in net/inner.h */
  cJSON *faults;             /* an array of some errors, those of points that could not become lines first */
};

struct hk_web_fed_kind {
  const char *line; /* the word for a line: "line", "sample" */
  /* Writes the answer into p->answer.body, and returns its status. *type: the content type; if not set, JSON, or an error
   * according to RFC 9457. */
  unsigned (*answer)(struct hk_web_peer *p, const struct hk_web_fed *fed, const char **type);
};

/* Sends p->request.body, lines whose times are in units of `unit` ns; p->request.points.faults: errors of points that could
 * not become lines. Returns as hk_web_reply. */
int hk_web_feed(struct lws *wsi, struct hk_web_peer *p, int64_t unit, const struct hk_web_fed_kind *kind);
/* As hk_web_feed, for `lines`, decoded from p->request.body; takes over `lines`. status: result of decoding: 0, -EBADMSG,
 * -E2BIG, -ENOMEM. */
int hk_web_feed_decoded(struct lws *wsi, struct hk_web_peer *p, int status, struct hk_buffer *lines, int64_t unit,
                        const struct hk_web_fed_kind *kind);
/* Writes a sentence with the number of points that were not taken, and the reason for the first. */
void hk_web_feed_sentence(const struct hk_web_fed *fed, const char *line, char *out, size_t size);
/* The usual answer: 204, or 400 with the points that were not taken. */
unsigned hk_web_feed_answer(struct hk_web_peer *p, const struct hk_web_fed *fed, const char **type);

#endif
