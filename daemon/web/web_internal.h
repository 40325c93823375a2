/* Structures shared by the files of this room. Thread: the web's, unless stated otherwise. */
#ifndef HK_WEB_INTERNAL_H
#define HK_WEB_INTERNAL_H

#include "daemon/base/address.h"
#include "daemon/intake/sample_lines.h"
#include "daemon/net/net.h"
#include "daemon/web/web_chunked.h"
#include "daemon/web/web_source.h"

#include <libwebsockets.h>

/* Type of the user data of a libwebsockets socket: some events of a socket are reported to the first protocol, whatever the
 * socket's own protocol is. */
enum hk_web_what { HK_WEB_PEER, HK_WEB_INNER, HK_WEB_TLS };

struct hk_web_fed_kind;
struct hk_web_inner;
struct hk_web_route;
struct hk_web_tls;

/* Points of a request. */
struct hk_web_points {
  struct hk_sample_faults faults;    /* errors of points that could not become lines */
  const struct hk_web_fed_kind *fed; /* how the outcome is reported to the peer, */
  char told[96];                     /* and its short form, in a header; "": none */
};

/* The request that is being answered. */
struct hk_web_request {
  const struct hk_web_route *route; /* NULL: the request was answered, or its answer is being sent */
  const char *path;                 /* while the request is answered */
  uint32_t scopes;                  /* scopes of the requester, */
  struct hk_token shown;            /* and its credentials: without scopes if there are none */
  struct hk_buffer body;
  size_t reserved; /* bytes counted for the body in `bodies` of struct hk_web */
  bool in_chunks;  /* the body is chunked */
  struct hk_chunked chunked;
  struct hk_web_points points;
};

/* The answer that is being sent. */
struct hk_web_answer {
  unsigned ready;   /* status of an answer that is ready to be sent, from elsewhere; 0: none */
  const char *type; /* its content type; NULL: JSON, or an error according to RFC 9457 */
  bool begun;       /* its headers were sent */
  bool head;        /* only headers are requested */
  bool last;        /* the connection is closed after it */
  struct hk_buffer body;
  size_t sent; /* bytes sent of the body */
};

/* An answer of unlimited length. */
struct hk_web_streaming {
  bool open;             /* the answer is a stream: more may follow */
  bool socket;           /* a WebSocket: waiting lines are one message each; else Server-Sent Events */
  bool midst;            /* a message was sent in part */
  bool ping;             /* a ping must be sent */
  bool closing;          /* the close message was sent */
  unsigned looks;        /* number of checks whether the peer is still there, once a second */
  int behind;            /* number of successive checks at which the peer had not taken everything sent */
  struct hk_buffer said; /* received part of the peer's message */
};

/* A connection. */
struct hk_web_peer {
  enum hk_web_what what;    /* HK_WEB_PEER; first */
  struct hk_web_peer *next; /* list of connections handed over to the thread */
  struct hk_web *web;
  const struct hk_config_listener *listener;
  struct hk_gate *gate;                  /* of its listener */
  struct hk_address_limits_place *place; /* of its address, */
  struct hk_address_limits_most most;    /* and the limits of an address */
  struct hk_log_quota audit;
  char peer[HK_ADDRESS_MAX];
  int fd;
  int stuck;                         /* timeout of sending an answer, s */
  bool near;                         /* its listener is on loopback */
  bool newcomer;                     /* not authenticated yet */
  struct hk_web_tls *tls;            /* NULL: no TLS */
  char certificate[HK_TLS_NAME_MAX]; /* common name of its client certificate; "": none */
  struct lws *wsi;
  struct hk_web_request request;
  struct hk_web_inner *inner;  /* inner connection of the request; NULL: none */
  struct hk_inquiry *inquiry;  /* pending look at a sensor, or list of sensors; NULL: none */
  struct hk_web_peer *looking; /* next peer in the list of those that wait for one */
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
  uint32_t most;               /* most connections at the same time, */
  atomic_uint connections;     /* and their number, including those being handed over */
  size_t bodies;               /* bytes that are reserved for bodies of requests */
  struct hk_web_peer *looking; /* list: peers that wait for answers of shards */
  struct hk_web_tls *tls;      /* list: connections with TLS */
  atomic_bool again;           /* certificates, keys and tokens were reloaded */
  int handshake;               /* timeout of a TLS handshake, s */
  pthread_mutex_t lock;
  struct hk_web_peer *arrivals; /* under lock */
};

#endif
