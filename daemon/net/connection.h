/* Connection: one TCP peer of any protocol.
 *
 * open -> (bytes arrive, the kind takes them step by step)... -> finish -> lingering -> closed
 *
 * A step without room to continue (the peer has too many points pending, or does not read its replies) parks the connection:
 * no more is read from it, so that TCP's flow control slows the peer, until the server wakes the connection. After an error
 * the last reply is sent, the sending side is shut down, and input is discarded for a moment, because closing with unread
 * bytes would destroy the reply on its way.
 *
 * State     entered by           reads    leaves to
 * OPEN      accept               takes    LINGERING, CLOSED
 * LINGERING hk_connection_finish discards CLOSED (end of stream, fault, deadline)
 * CLOSED    hk_connection_close  -        freed once its handle is closed
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
struct hk_intake;
struct hk_loop;
struct hk_connection;

/* Log message about a peer whose first line is HTTP; %s: the listener's name. */
#define HK_HTTP_REFUSED "this is HTTP, which [listen %s] does not accept; nothing in it was used"

enum hk_turn {
  HK_TURN_MORE, /* some bytes were taken; call again */
  HK_TURN_NEED, /* all bytes were taken; more are needed */
  HK_TURN_WAIT, /* parked until the server wakes it */
  HK_TURN_OVER, /* finished or closed */
};

/* A stream protocol: an entry of the table in connection.c. Other files of net/ ask for its properties, never for its name. */
struct hk_connection_kind {
  uint32_t scopes;           /* enum hk_scope: a peer needs at least one of them */
  const char *late_newcomer; /* why a peer that has not authenticated in time is refused */
  bool silent;               /* peers get no replies: nothing is sent before a close, except to HTTP and inner connections */
  bool lingers;              /* peers send requests: input is discarded for a moment before a close, so that no reply is lost */
  /* Takes a step of a newcomer, which authenticates; NULL: `step` does, by hk_admission_hello. */
  enum hk_turn (*authenticate)(struct hk_connection *c);
  void (*admitted)(struct hk_connection *c);             /* lifts the limits of a newcomer, before `greet`; NULL: nothing to do */
  int (*become_inner)(struct hk_connection *c);          /* prepares an inner connection; 0 or -ENOMEM; NULL: nothing to do */
  char *(*space)(struct hk_connection *c, size_t *size); /* buffer for reading; NULL: out of memory */
  void (*wrote)(struct hk_connection *c, size_t n);      /* n bytes were read into it */
  /* The loop's buffers are now used by others: keeps unread bytes. Returns 0, or -ENOMEM: they are lost. */
  int (*settle)(struct hk_connection *c);
  size_t (*left)(const struct hk_connection *c); /* bytes that were read but not taken yet */
  enum hk_turn (*step)(struct hk_connection *c);
  void (*end)(struct hk_connection *c); /* the peer's stream has ended and all steps are done */
  /* Sends an error that belongs to no request, perhaps as the last message: enum hankel_error_code. */
  void (*tell)(struct hk_connection *c, uint16_t code, const char *message);
  void (*greet)(struct hk_connection *c); /* greets the admitted peer; NULL: no greeting */
  /* Sends a connection with a feed the feed's committed position, if it has changed; NULL: no feeds. */
  void (*acknowledge)(struct hk_connection *c);
  /* Whether a reload that the peer requested is not answered yet; NULL: peers request none. */
  bool (*awaits_reload)(const struct hk_connection *c);
  void (*free)(struct hk_connection *c); /* frees the protocol's part of the connection, in any state */
};
extern const struct hk_connection_kind hk_binary_kind, hk_line_kind, hk_text_kind;

/* The kind of a protocol; NULL: it has none, as HTTP, whose connections the web's thread serves. */
const struct hk_connection_kind *hk_connection_kind_of(enum hk_protocol protocol);

enum hk_connection_state { HK_OPEN, HK_LINGERING, HK_CLOSED };

struct hk_connection {
  uv_tcp_t tcp;
  uv_shutdown_t shutdown;
  struct hk_net *net;
  struct hk_loop *loop; /* the loop that serves it */
  const struct hk_config_listener *listener;
  const struct hk_connection_kind *kind;
  struct hk_connection_links links;
  struct hk_connection_flow flow;
  enum hk_connection_state state;
  int fd;                         /* until the connection is started on its loop; then -1 */
  bool inner;                     /* net/inner.h */
  struct hk_peer_feed *peer_feed; /* NULL: none was free, so the connection is refused; inner connections have none */
  struct hk_source *source;       /* of its points */
  char peer[HK_ADDRESS_MAX];
  int64_t opened;   /* ns */
  int64_t heard;    /* ns: when bytes last arrived */
  int64_t deadline; /* ns: end of LINGERING */
  struct hk_log_quota quota;
  struct hk_subscriber subscriber;
  struct hk_subscriber others; /* of results of other machines */
  struct hk_tls *tls;          /* NULL: plain */
  struct hk_identity identity;
  struct hk_feeding feeding; /* binary */
  struct hk_binary binary;
  struct hk_lines_part lines;
};

/* Creates a connection, which must be started on a loop. It owns fd. kind: of the listener's protocol, except for an inner
 * connection. NULL: out of memory; the caller still owns fd. */
struct hk_connection *hk_connection_new(struct hk_net *net, const struct hk_config_listener *listener,
                                        const struct hk_connection_kind *kind, struct hk_gate *gate, int fd);
/* Frees a connection that was not handed to a loop; the caller owns fd again. */
void hk_connection_forget(struct hk_connection *c);
/* Starts serving on c->loop, whose thread must call this. */
void hk_connection_start(struct hk_connection *c);
/* Frees a connection that will not be started. */
void hk_connection_abandon(struct hk_connection *c);
/* Continues after a park. */
void hk_connection_go_on(struct hk_connection *c);
/* Sends a reply (copied). Closes the connection if this fails. */
void hk_connection_reply(struct hk_connection *c, const void *data, size_t size);
/* Sends queued bytes, then closes. */
void hk_connection_finish(struct hk_connection *c);
/* Stops reading; complete frames and lines that were read are still taken. */
void hk_connection_drain(struct hk_connection *c);
/* Sends an error, then finishes; logs it. */
void hk_connection_refuse(struct hk_connection *c, uint16_t code, const char *message);
/* Refuses a connection whose first line is HTTP: as hk_connection_refuse, and discards further input. */
void hk_connection_refuse_http(struct hk_connection *c);
/* Reports an error of the daemon to the peer, if the protocol allows it, and continues. */
void hk_connection_tell(struct hk_connection *c, uint16_t code, const char *message);
/* Closes at once; the connection is freed later. May be called twice. */
void hk_connection_close(struct hk_connection *c);
/* The loop's buffers are now used by others: keeps unread bytes. Returns 0, or -ENOMEM: the connection was closed. */
int hk_connection_settle(struct hk_connection *c);
/* Checks deadlines. Called every second. */
void hk_connection_tick(struct hk_connection *c, int64_t now);

/* Whether the connection waits for its peer, which does not read its replies or has said farewell, rather than for room. */
static inline bool hk_connection_waits_for_peer(const struct hk_connection *c)
{
  return c->flow.unread || c->flow.leaving;
}

/* What takes its points. */
struct hk_intake *hk_connection_intake(const struct hk_connection *c);

/* Operations shared by the line and text protocols. They authenticate by hk_admission_first_line. */
char *hk_line_part_space(struct hk_connection *c, size_t *size);
void hk_line_part_wrote(struct hk_connection *c, size_t n);
int hk_line_part_settle(struct hk_connection *c);
size_t hk_line_part_left(const struct hk_connection *c);
void hk_line_part_free(struct hk_connection *c);

#endif
