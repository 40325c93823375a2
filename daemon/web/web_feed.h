/* Points of requests: fed as lines over an inner connection, like those of any other sender. The answer waits until all are dealt
 * with (with a journal: committed). Thread: the web's. */
#ifndef HK_WEB_FEED_H
#define HK_WEB_FEED_H

#include "daemon/web/web_internal.h"

#include <cjson/cJSON.h>

/* What became of them. */
struct hk_web_fed {
  uint64_t taken;            /* points, of which */
  uint64_t late, rejected;   /* were so, by their sensors */
  uint64_t refused, dropped; /* as net/inner.h has it */
  cJSON *faults;             /* an array of some of these, first those that could not become lines */
};

struct hk_web_fed_kind {
  const char *line; /* the word for a line: "line", "sample" */
  /* Writes the answer into p->body, and returns its status; *type: of its content, which is a fault of RFC 9457 unless this says
   * otherwise. */
  unsigned (*answer)(struct hk_web_peer *p, const struct hk_web_fed *fed, const char **type);
};

/* Feeds p->asked, lines whose times are in units of so many ns; p->faults: errors of points that could not become lines. As
 * hk_web_reply. */
int hk_web_feed(struct lws *wsi, struct hk_web_peer *p, int64_t unit, const struct hk_web_fed_kind *kind);
/* The same for lines decoded from p->asked; takes them over. status: of the decoding: 0, -EBADMSG, -E2BIG, -ENOMEM. */
int hk_web_feed_decoded(struct lws *wsi, struct hk_web_peer *p, int status, struct hk_buffer *lines, int64_t unit,
                        const struct hk_web_fed_kind *kind);
/* Says in one sentence how many points were not taken, and why the first was not. */
void hk_web_feed_sentence(const struct hk_web_fed *fed, const char *line, char *out, size_t size);
/* The usual answer: 204, or 400 with the points that were not taken. */
unsigned hk_web_feed_answer(struct hk_web_peer *p, const struct hk_web_fed *fed, const char **type);

#endif
