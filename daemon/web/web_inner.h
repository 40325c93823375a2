/* The web's end of inner connections (net/inner.h), over which requests use the daemon's own protocols. An HTTP connection has at
 * most one at a time. Thread: the web's. */
#ifndef HK_WEB_INNER_H
#define HK_WEB_INNER_H

#include "daemon/net/inner.h"
#include "daemon/web/web_internal.h"

struct hk_web_inner {
  enum hk_web_what what;    /* HK_WEB_INNER; first */
  struct lws *wsi;          /* of the socket */
  struct hk_web_peer *peer; /* NULL: the peer is gone, and the connection is closing */
  const struct hk_web_inner_kind *kind;
  int fd;
  bool held;                /* reading is paused */
  bool sends;               /* not all bytes were sent yet: */
  const char *rest;         /* these remain, */
  size_t n_rest;            /* and their number */
  struct hk_buffer partial; /* lines: the beginning of an incomplete one */
  struct hk_inbox inbox;    /* binary */
  uint8_t awaited;          /* binary: the reply's enum hk_frame_type */
  char channel[16];         /* stream: the channel of alerts to pass on; "": all */
};

struct hk_web_inner_kind {
  enum hk_protocol protocol;
  void (*came)(struct hk_web_inner *inner, const char *data, size_t size); /* bytes arrived; inner->peer is not NULL */
  void (*ended)(struct hk_web_inner *inner); /* the daemon closed the connection; the peer exists, but no longer has it */
};

/* Opens p->inner, with the scopes p->request.scopes. unit: ns of times, for the line protocol. Returns 0 or a negative errno. */
int hk_web_inner_open(struct hk_web_peer *p, const struct hk_web_inner_kind *kind, int64_t unit);
/* Sends bytes that fit into an empty socket (some 64 KiB). Returns 0 or a negative errno. */
int hk_web_inner_send(struct hk_web_inner *inner, const void *data, size_t size);
/* Sends any number of bytes as fast as the daemon takes them, then ends the stream; answers are still read. The bytes must
 * stay valid until the inner connection is closed. */
void hk_web_inner_send_all(struct hk_web_inner *inner, const char *data, size_t size);
/* Stops or resumes reading: unread data wait in the daemon, within its bounds for slow subscribers. */
void hk_web_inner_hold(struct hk_web_inner *inner, bool hold);
/* Closes the peer's inner connection; NULL is allowed. */
void hk_web_inner_close(struct hk_web_inner *inner);
/* Handles events of its socket. */
int hk_web_inner_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size);

#endif
