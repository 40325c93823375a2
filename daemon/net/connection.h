/* Connection: one TCP peer, whatever its protocol.
 *
 * open -> (bytes come, the kind takes them step by step)... -> finish -> lingering -> closed
 *
 * A step that cannot go on for want of room (the peer has too many points pending, or does not read its replies) parks the
 * connection: nothing more is read from it, so that TCP pushes back, until the server wakes it. After an error the last words
 * are sent, the sending side is shut, and what still comes is thrown away for a moment: a close with unread bytes would
 * destroy the words on their way.
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
#include "daemon/base/log.h"
#include "daemon/config/config.h"
#include "daemon/durable/named_feeds.h"
#include "daemon/intake/decode_lines.h"
#include "daemon/net/address_limits.h"
#include "daemon/net/credentials.h"
#include "daemon/net/udp_feeds.h"
#include "daemon/publish/publisher.h"
#include "proto/line/line.h"
#include "proto/wire/frame.h"

#include <uv.h>

struct hk_net;
struct hk_loop;
struct hk_connection;

/* In the log, of a peer whose first line is HTTP's; the %s is the listener's name. */
#define HK_HTTP_REFUSED "this is HTTP, which [listen %s] does not speak; nothing of it was taken"

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
  enum hk_turn (*step)(struct hk_connection *c);
  void (*end)(struct hk_connection *c); /* the peer's stream has ended and all steps are done */
  /* Sends an error that concerns no request, perhaps as last words: enum hankel_error_code. */
  void (*tell)(struct hk_connection *c, uint16_t code, const char *message);
  void (*greet)(struct hk_connection *c); /* the peer may begin; NULL: nothing is to be said */
  void (*acknowledge)(
      struct hk_connection *c); /* tells a connection that has a feed what of it is committed, if that is news; NULL: no feeds */
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
  struct hk_connection *next, *previous; /* of the loop; next also of those that are on their way to it */
  struct hk_connection *next_parked;
  bool parked;
  bool unread; /* too many of its replies are not sent: it goes on once they are */
  bool reading;
  bool ended;    /* the peer's stream has */
  bool draining; /* no more is read */
  bool http;     /* its first line was HTTP's */
  bool inner;    /* net/inner.h */
  bool sated;    /* enough has come from it in this turn of the loop */
  uint64_t turn; /* of the loop, in which bytes last came, */
  size_t came;   /* and how many did */
  enum hk_connection_state state;
  int fd;                   /* until it is started on its loop; then -1 */
  struct hk_seat *seat;     /* NULL: there was none; it is to be refused, but for an inner one, which has none */
  struct hk_source *source; /* of its points */
  char peer[HK_ADDRESS_MAX];
  int64_t opened;   /* ns */
  int64_t heard;    /* ns: when bytes last came */
  int64_t deadline; /* ns, LINGERING: when it is closed at last */
  struct hk_log_quota quota;
  struct hk_subscriber subscriber;

  /* who it is: net/admission.h */
  struct hk_gate *gate;          /* of its listener */
  struct hk_tls *tls;            /* NULL: plain */
  struct hk_limits_place *place; /* of its address */
  struct hk_log_quota audit;
  bool newcomer;         /* it has not shown who it is */
  bool failed;           /* that was counted against its address */
  size_t unproven;       /* bytes that came of a newcomer */
  uint32_t scopes;       /* enum hk_scope: what it may do */
  struct hk_token shown; /* by what; with no scopes of its own: a certificate that no token file names, or nothing */

  /* binary */
  struct hk_feeding feeding;
  uint64_t acknowledged; /* of the feed: points that were in the last ACK, or FEED_AT */
  struct hk_connection *next_feeding;
  struct hk_inbox inbox;
  bool greeted;
  int64_t ping_time; /* ns, hk_now: when a PING was read that is not answered yet; 0: none */
  uint64_t ping_token;
  uint32_t ping_tag;
  uint64_t reload; /* ticket of a RELOAD that is not answered yet; 0: none */
  uint32_t reload_tag;
  struct hk_operation *operation; /* an OPERATE that is not answered yet; NULL: none */
  uint32_t operate_tag;
  struct hk_sensor_list *listing; /* a SENSORS that is not answered yet; NULL: none */
  uint32_t listing_tag;
  bool leaving; /* BYE came */
  uint32_t bye_tag;
  int64_t bye_time;                   /* ns, hk_now: when BYE was read; 0 before */
  uint64_t bye_datagrams, bye_points; /* sent over UDP, as BYE says */
  bool wants_counts;                  /* in FAREWELL */
  uint64_t bye_event; /* 1 + position of the last event that is to be told before the FAREWELL; 0: not known yet */

  /* line and text */
  int64_t unit; /* line: ns of its times */
  struct hk_splitter splitter;
  struct hk_lines_told *told; /* line, an inner one: what became of them; else NULL */
  char *data;                 /* what was read last: in the loop's buffer, or what is left of it, in its own */
  char *own;
  size_t start, size; /* of what was read and is not taken yet; bytes read */
};

/* A connection that a listener has accepted, to be started on a loop. It owns fd. protocol: the listener's, but for an inner one.
 * NULL: no memory; fd is still the caller's. */
struct hk_connection *hk_connection_new(struct hk_net *net, const struct hk_config_listener *listener, enum hk_protocol protocol,
                                        struct hk_gate *gate, int fd);
/* Frees one that was not handed to a loop; fd is the caller's again. */
void hk_connection_forget(struct hk_connection *c);
/* Begins to serve, on c->loop, whose thread calls it. */
void hk_connection_start(struct hk_connection *c);
/* Frees one that is not to be started any more. */
void hk_connection_abandon(struct hk_connection *c);
/* As hk_subscribe and hk_unsubscribe. */
int hk_connection_subscribe(struct hk_connection *c, const struct hk_wanted *wanted);
void hk_connection_unsubscribe(struct hk_connection *c);
/* Goes on after a park. */
void hk_connection_go_on(struct hk_connection *c);
/* Sends a reply (copied). When it cannot be sent the connection is closed. */
void hk_connection_reply(struct hk_connection *c, const void *data, size_t size);
/* Sends what is queued, then closes. */
void hk_connection_finish(struct hk_connection *c);
/* Reads no more; what came is still taken, as far as whole frames and lines go. */
void hk_connection_drain(struct hk_connection *c);
/* Says why, then finishes; logs it. */
void hk_connection_refuse(struct hk_connection *c, uint16_t code, const char *message);
/* Its first line is HTTP's: as hk_connection_refuse, and what the peer still sends is thrown away. */
void hk_connection_refuse_http(struct hk_connection *c);
/* Says what went wrong with the daemon to a peer that can be told, and goes on. */
void hk_connection_tell(struct hk_connection *c, uint16_t code, const char *message);
/* Closes at once; the connection is freed later. May be called twice. */
void hk_connection_close(struct hk_connection *c);
/* The loop's buffers are for others now. 0; or -ENOMEM: it was closed. */
int hk_connection_settle(struct hk_connection *c);
/* Deadlines. Called every second. */
void hk_connection_tick(struct hk_connection *c, int64_t now);

/* The part of line and text connections that reads into a buffer for the splitter. */
char *hk_lines_space(struct hk_connection *c, size_t *size);
void hk_lines_wrote(struct hk_connection *c, size_t n);
/* What is left in the loop's buffer is moved to memory of the connection's own, which is given back when nothing is left. 0, or
 * -ENOMEM: it is gone. */
int hk_lines_settle(struct hk_connection *c);
/* The next line of what was read: as hk_splitter_next. */
int hk_lines_next(struct hk_connection *c, const char **text, size_t *length);

#endif
