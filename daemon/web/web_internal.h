/* What the files of this room share. Thread: the web's, unless stated otherwise. */
#ifndef HK_WEB_INTERNAL_H
#define HK_WEB_INTERNAL_H

#include "daemon/base/address.h"
#include "daemon/intake/sample_lines.h"
#include "daemon/net/net.h"
#include "daemon/web/web_chunked.h"
#include "daemon/web/web_source.h"

#include <libwebsockets.h>

/* What the user data of a socket of libwebsockets is: some of its events go to the first protocol, whatever the socket's own is.
 */
enum hk_web_what { HK_WEB_PEER, HK_WEB_INNER, HK_WEB_TLS };

struct hk_web_fed_kind;
struct hk_web_inner;
struct hk_web_route;
struct hk_web_tls;

/* Points that a request brings. */
struct hk_web_points {
  struct hk_sample_faults faults;    /* what became no line */
  const struct hk_web_fed_kind *fed; /* how the peer is told what became of them; */
  char told[96];                     /* and in short, in a header; "": nothing */
};

/* The request that is being answered. */
struct hk_web_request {
  const struct hk_web_route *route; /* NULL: it was answered, or its answer is on its way */
  const char *path;                 /* while it is answered */
  uint32_t scopes;                  /* of whoever asks; */
  struct hk_token shown;            /* by what: of no scopes when by nothing */
  struct hk_buffer body;
  size_t reserved; /* bytes that stand for the body in the web's `bodies`; */
  bool in_chunks;  /* how it comes */
  struct hk_chunked chunked;
  struct hk_web_points points;
};

/* The answer that is being sent. */
struct hk_web_answer {
  unsigned ready;   /* it came from elsewhere, and is to be begun: status; 0: none */
  const char *type; /* of its content, then; NULL: JSON, or a fault of RFC 9457 */
  bool begun;       /* its headers were sent */
  bool head;        /* only these are wanted */
  bool last;        /* the connection is closed after it */
  struct hk_buffer body;
  size_t sent; /* bytes of it */
};

/* An answer that has no end of its own. */
struct hk_web_streaming {
  bool open;             /* there is one: more may come */
  bool socket;           /* a WebSocket: what waits are messages, a line each; else Server-Sent Events */
  bool midst;            /* of a message the first part was sent */
  bool ping;             /* one is to be sent */
  bool closing;          /* the peer was told so */
  unsigned looks;        /* how often it was looked whether the peer is there, once a second */
  int behind;            /* how often in a row it had not taken what was sent */
  struct hk_buffer said; /* of a message of the peer's, so far */
};

/* A connection. */
struct hk_web_peer {
  enum hk_web_what what;    /* HK_WEB_PEER; first */
  struct hk_web_peer *next; /* of those that are on their way to the thread */
  struct hk_web *web;
  const struct hk_config_listener *listener;
  struct hk_gate *gate;          /* of its listener */
  struct hk_limits_place *place; /* of its address, */
  struct hk_limits_most most;    /* and what that is allowed */
  struct hk_log_quota audit;
  char peer[HK_ADDRESS_MAX];
  int fd;
  int stuck;                         /* s for an answer to be taken */
  bool near;                         /* its listener is on loopback */
  bool newcomer;                     /* it has not shown who it is */
  struct hk_web_tls *tls;            /* NULL: it is without */
  char certificate[HK_TLS_NAME_MAX]; /* common name of the one that it has shown; "" */
  struct lws *wsi;
  struct hk_web_request request;
  struct hk_web_inner *inner;  /* what the request asks of the daemon; NULL: nothing */
  struct hk_look *look;        /* at a sensor, which it waits for; NULL: none */
  struct hk_sensor_list *list; /* the same of sensors */
  struct hk_web_peer *looking; /* others that wait for either */
  struct hk_web_answer answer;
  struct hk_web_streaming stream;
};

struct hk_web {
  struct hk_net *net;
  struct hk_web_answers answers;
  struct lws_context *lws;
  struct lws_vhost *vhost;
  pthread_t thread;
  bool running; /* main's */
  atomic_bool stopping;
  atomic_uint phase; /* enum hk_web_phase */
  struct hk_counters counters;
  uint32_t most;               /* connections, at a time; */
  atomic_uint connections;     /* how many there are, those on their way too */
  size_t bodies;               /* bytes that bodies of requests take, or will */
  struct hk_web_peer *looking; /* list: those that wait for what shards say of sensors */
  struct hk_web_tls *tls;      /* list: those that have TLS */
  atomic_bool again;           /* certificates, keys and tokens were read again */
  int handshake;               /* s for one of TLS */
  pthread_mutex_t lock;
  struct hk_web_peer *arrivals; /* under lock */
};

#endif
