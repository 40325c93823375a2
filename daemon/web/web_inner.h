/* The web's end of inner connections (net/inner.h): what a request asks of the daemon by its own protocols. A connection of HTTP
 * has one at most at a time. Thread: the web's. */
#ifndef HK_WEB_INNER_H
#define HK_WEB_INNER_H

#include "daemon/net/inner.h"
#include "daemon/web/web_internal.h"

struct hk_web_inner {
  enum hk_web_what what;    /* HK_WEB_INNER; first */
  struct lws *wsi;          /* of the socket */
  struct hk_web_peer *peer; /* NULL: it is gone, and this closes */
  const struct hk_web_inner_kind *kind;
  int fd;
  bool held;                /* it is not read now */
  bool sends;               /* it has not sent all, */
  const char *rest;         /* but still has to send this, */
  size_t n_rest;            /* and bytes of it */
  struct hk_buffer partial; /* lines: of one that has not come whole */
  struct hk_inbox inbox;    /* binary */
  uint8_t awaited;          /* binary: the reply's enum hk_frame_type */
  char channel[16];         /* stream: the only channel of alerts that is passed on; "": all */
};

struct hk_web_inner_kind {
  enum hk_protocol protocol;
  void (*came)(struct hk_web_inner *inner, const char *data, size_t size); /* inner->peer is there */
  void (*ended)(struct hk_web_inner *inner); /* the daemon closed it; peer is there, and has it no more */
};

/* Opens p->inner, with the scopes p->scopes. unit: of a connection of lines, ns of its times. 0 or a negative errno. */
int hk_web_inner_open(struct hk_web_peer *p, const struct hk_web_inner_kind *kind, int64_t unit);
/* Sends bytes that fit into an empty socket (some 64 KiB). 0 or a negative errno. */
int hk_web_inner_send(struct hk_web_inner *inner, const void *data, size_t size);
/* Sends any number of bytes, which stay where they are until the inner connection is closed, as fast as they are taken, and then
 * ends the stream; what comes is still read. */
void hk_web_inner_send_all(struct hk_web_inner *inner, const char *data, size_t size);
/* Reads no more, or again: what is not read waits in the daemon, within the bounds that it has for slow subscribers. */
void hk_web_inner_hold(struct hk_web_inner *inner, bool hold);
/* The peer wants nothing of it any more; NULL is fine. */
void hk_web_inner_close(struct hk_web_inner *inner);
/* Events of its socket. */
int hk_web_inner_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size);

#endif
