/* Parts of a connection (connection.h), each kept by the files that are named at it. Thread: the loop's. */
#ifndef HK_CONNECTION_PARTS_H
#define HK_CONNECTION_PARTS_H

#include "daemon/base/log.h"
#include "daemon/config/config.h"
#include "daemon/durable/named_feeds.h"
#include "daemon/intake/decode_lines.h"
#include "daemon/intake/pictures.h"
#include "daemon/net/address_limits.h"
#include "daemon/net/credentials.h"
#include "daemon/net/line_buffer.h"
#include "proto/wire/frame.h"

struct hk_connection;
struct hk_operation;
struct hk_inquiry;

/* The loop's lists: loop.c, loop_thread.c. */
struct hk_connection_links {
  struct hk_connection *next, *previous; /* in the loop's list; next is also used on the way to the loop */
  struct hk_connection *next_parked, *next_feeding;
  bool parked;
};

/* State of reading: connection.c. */
struct hk_connection_flow {
  bool reading;
  bool ended;    /* the peer's stream has ended */
  bool http;     /* its first line was HTTP */
  bool draining; /* no more is read */
  bool leaving;  /* the peer has said that it will send no more; results may still be on their way to it */
  bool unread;   /* too many of its replies are unsent: it continues once they are sent */
  bool sated;    /* enough bytes were read from it in this turn of the loop */
  uint64_t turn; /* turn of the loop in which bytes last arrived, */
  size_t came;   /* and their number */
};

/* Identity of the peer: admission.c. */
struct hk_identity {
  struct hk_gate *gate;                  /* of its listener */
  struct hk_address_limits_place *place; /* of its address */
  struct hk_log_quota audit;
  bool newcomer;         /* not authenticated yet */
  bool failed;           /* its failure was counted for its address */
  size_t unproven;       /* bytes that arrived from a newcomer */
  uint32_t scopes;       /* enum hk_scope */
  struct hk_token shown; /* the credentials used; without scopes of its own: a certificate that no token file names, or none */
};

/* Of the binary protocol: protocol_binary.c. */
struct hk_binary {
  struct hk_inbox inbox;
  bool greeted;
  bool scored;     /* net/inner.h */
  bool feed_waits; /* for FEED_AT: a FEED that is not answered yet */
  uint32_t feed_tag;
  struct hk_cameras cameras; /* of which it has sent pictures */
  uint64_t acknowledged;     /* points of the feed, as the last ACK or FEED_AT said */
  int64_t ping_time;         /* ns, hk_now: when a PING was read that is not answered yet; 0: none */
  uint64_t ping_token;
  uint32_t ping_tag;
  uint64_t reload; /* ticket of a RELOAD that is not answered yet; 0: none */
  uint32_t reload_tag;
  struct hk_operation *operation; /* an OPERATE that is not answered yet; NULL: none */
  uint32_t operate_tag;
  struct hk_inquiry *listing; /* a SENSORS that is not answered yet; NULL: none */
  uint32_t listing_tag;
  uint32_t bye_tag;
  int64_t bye_time;                   /* ns, hk_now: when BYE was read; 0 before */
  uint64_t bye_datagrams, bye_points; /* sent over UDP, as BYE says */
  bool wants_counts;                  /* FAREWELL needs counts */
  uint64_t bye_event;                 /* 1 + position of the last event to send before the FAREWELL; 0: unknown yet */
};

/* Of the line and text protocols: protocol_line.c, protocol_text.c. */
struct hk_lines_part {
  struct hk_line_buffer buffer;
  int64_t unit;               /* line: ns of its times */
  struct hk_lines_told *told; /* line protocol, inner connection: results of its points; otherwise NULL */
};

#endif
