/* Connection: one TCP peer, whatever its protocol.
 *
 * open -> (bytes come, the kind takes them step by step)... -> finish -> lingering -> closed
 *
 * A step without room to continue (the peer has too many points pending, or does not read its replies) parks the connection:
 * nothing more is read from it, so that TCP pushes back, until the server wakes it. After an error the last reply is sent, the
 * sending side is shut down, and input is discarded for a moment: closing with unread bytes would destroy the reply on its way.
 *
 * State    entered by                          reads    leaves to
 * OPEN     accept                              takes    LINGERING, CLOSED
 * LINGERING hk_connection_finish               discards CLOSED (end of stream, fault, deadline)
 * CLOSED   hk_connection_close                 -        freed once its handle is closed
 *
 * Thread: the loop's. */
#ifndef HK_CONNECTION_H
#define HK_CONNECTION_H

#include "daemon/base/address.h"
#include "daemon/net/connection_parts.h"
#include "daemon/net/udp_feeds.h"
#include "daemon/publish/publisher.h"

#include <uv.h>

struct hk_net;
struct hk_loop;
struct hk_connection;

/* In the log, of a peer whose first line is HTTP's; the %s is the listener's name. */
#define HK_HTTP_REFUSED "this is HTTP, which [listen %s] does not accept; nothing in it was used"

enum hk_turn {
  HK_TURN_MORE, /* something was taken; call again */
  HK_TURN_NEED, /* all that came was taken */
  HK_TURN_WAIT, /* parked until the server wakes it */
  HK_TURN_OVER, /* finished or closed */
};

/* What a protocol does with a connection. */
struct hk_connection_kind {
  char *(*space)(struct hk_connection *c, size_t *size); /* where bytes go; NULL: no memory */
  void (*wrote)(struct hk_connection *c, size_t n);      /* n bytes were put there */
  /* The loop's buffers are for others now. 0; or -ENOMEM: what was left in them is gone. */
  int (*settle)(struct hk_connection *c);
  size_t (*left)(const struct hk_connection *c); /* bytes that were put there and are not taken yet */
  enum hk_turn (*step)(struct hk_connection *c);
  void (*end)(struct hk_connection *c); /* the peer's stream has ended and all steps are done */
  /* Sends an error that concerns no request, perhaps as last words: enum hankel_error_code. */
  void (*tell)(struct hk_connection *c, uint16_t code, const char *message);
  void (*greet)(struct hk_connection *c); /* the peer may begin; NULL: nothing is to be said */
  /* Sends a connection with a feed the feed's committed position, if it has changed; NULL: no feeds. */
  void (*acknowledge)(struct hk_connection *c);
  void (*free)(struct hk_connection *c); /* its part of the connection, whatever is in it */
};
extern const struct hk_connection_kind hk_binary_kind, hk_line_kind, hk_text_kind;

enum hk_connection_state { HK_OPEN, HK_LINGERING, HK_CLOSED };

struct hk_connection {
  uv_tcp_t tcp;
  uv_shutdown_t shutdown;
  struct hk_net *net;
  struct hk_loop *loop; /* whose thread it is on */
  const struct hk_config_listener *listener;
  const struct hk_connection_kind *kind;
  struct hk_connection_links links;
  struct hk_connection_flow flow;
  enum hk_connection_state state;
  int fd;                         /* until it is started on its loop; then -1 */
  bool http;                      /* its first line was HTTP's */
  bool inner;                     /* net/inner.h */
  struct hk_peer_feed *peer_feed; /* NULL: none was free, and the connection is to be refused; inner connections have none */
  struct hk_source *source;       /* of its points */
  char peer[HK_ADDRESS_MAX];
  int64_t opened;   /* ns */
  int64_t heard;    /* ns: when bytes last came */
  int64_t deadline; /* ns, LINGERING: when it is closed at last */
  struct hk_log_quota quota;
  struct hk_subscriber subscriber;
  struct hk_tls *tls; /* NULL: plain */
  struct hk_identity identity;
  struct hk_feeding feeding; /* binary */
  struct hk_binary binary;
  struct hk_lines_part lines;
};

/* An accepted connection, to be started on a loop. It owns fd. protocol: the listener's, except for an inner connection. NULL: no
 * memory; the caller still owns fd. */
struct hk_connection *hk_connection_new(struct hk_net *net, const struct hk_config_listener *listener, enum hk_protocol protocol,
                                        struct hk_gate *gate, int fd);
/* Frees a connection that was not handed to a loop; the caller owns fd again. */
void hk_connection_forget(struct hk_connection *c);
/* Begins to serve, on c->loop, whose thread calls it. */
void hk_connection_start(struct hk_connection *c);
/* Frees a connection that is no longer to be started. */
void hk_connection_abandon(struct hk_connection *c);
/* As hk_subscribe and hk_unsubscribe. */
int hk_connection_subscribe(struct hk_connection *c, const struct hk_wanted *wanted);
void hk_connection_unsubscribe(struct hk_connection *c);
/* Goes on after a park. */
void hk_connection_go_on(struct hk_connection *c);
/* Sends a reply (copied). When it cannot be sent the connection is closed. */
void hk_connection_reply(struct hk_connection *c, const void *data, size_t size);
/* Sends queued bytes, then closes. */
void hk_connection_finish(struct hk_connection *c);
/* Stops reading; complete frames and lines that were read are still taken. */
void hk_connection_drain(struct hk_connection *c);
/* Says why, then finishes; logs it. */
void hk_connection_refuse(struct hk_connection *c, uint16_t code, const char *message);
/* Its first line is HTTP's: as hk_connection_refuse, and discards further input. */
void hk_connection_refuse_http(struct hk_connection *c);
/* Reports an error of the daemon to the peer, if the protocol allows it, and continues. */
void hk_connection_tell(struct hk_connection *c, uint16_t code, const char *message);
/* Closes at once; the connection is freed later. May be called twice. */
void hk_connection_close(struct hk_connection *c);
/* The loop's buffers are for others now. 0; or -ENOMEM: it was closed. */
int hk_connection_settle(struct hk_connection *c);
/* Deadlines. Called every second. */
void hk_connection_tick(struct hk_connection *c, int64_t now);

/* Whether it waits for its peer, which does not read its replies or says goodbye, and not for room. */
static inline bool hk_connection_waits_for_peer(const struct hk_connection *c)
{
  return c->flow.unread || c->binary.leaving;
}

/* What line and text connections have in common of their kind. */
char *hk_line_part_space(struct hk_connection *c, size_t *size);
void hk_line_part_wrote(struct hk_connection *c, size_t n);
int hk_line_part_settle(struct hk_connection *c);
size_t hk_line_part_left(const struct hk_connection *c);
void hk_line_part_free(struct hk_connection *c);

#endif
