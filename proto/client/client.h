/* Internals of libhankel: the handle, and the functions that its parts share. api.c has the public calls, client_connect.c the
 * connection, client_send.c sending, client_receive.c receiving. Not installed. */
#ifndef HK_CLIENT_H
#define HK_CLIENT_H

#include "proto/client/client_tls.h"
#include "proto/wire/mac.h"
#include "proto/wire/message.h"

#include <netdb.h>

#define HK_CLIENT_FRAME_POINTS 4096u      /* most points in a frame */
#define HK_CLIENT_OUT (256u << 10)        /* bytes of frames that wait for the socket */
#define HK_CLIENT_DATAGRAM (1400u)        /* bytes of a datagram: fits the usual path MTU */
#define HK_CLIENT_PING_POINTS (64u << 10) /* PING after so many points, to limit the points in doubt, */
#define HK_CLIENT_PING_MS 15000           /* after so long without sending, */
#define HK_CLIENT_DOUBT_MS 1000           /* and so long after the last PING while points are in doubt */
#define HK_CLIENT_DEAD_MS 60000           /* timeout of the answer to a PING; ends the connection */
#define HK_CLIENT_GREETING_MS 10000       /* timeout of connecting and WELCOME */
#define HK_CLIENT_PAUSE_MS 100            /* first pause before reconnecting; doubled up to */
#define HK_CLIENT_PAUSE_MOST_MS 10000

enum hk_client_phase {
  HK_CLIENT_CLOSED,     /* waits for retry_at */
  HK_CLIENT_CONNECTING, /* connect() is under way */
  HK_CLIENT_SHAKING,    /* the handshake of TLS is under way */
  HK_CLIENT_GREETING,   /* HELLO was sent */
  HK_CLIENT_READY,
  HK_CLIENT_OVER, /* permanently */
};

enum hk_sensor_phase { HK_SENSOR_NEW, HK_SENSOR_GOOD, HK_SENSOR_REFUSED };

struct hk_client_sensor {
  char *name;
  uint32_t handle;
  uint8_t phase; /* enum hk_sensor_phase */
};

/* Maps a handle of results to the sensor's name. Open addressing; the table's size is a power of two, at most half is used. */
struct hk_client_name {
  uint32_t handle;
  char *name; /* NULL: free entry */
};

/* The TCP connection; kept by client_connect.c. */
struct hk_client_link {
  int fd;
  struct hk_client_tls *tls;               /* NULL: plain, or not connected */
  char host[256];                          /* host of the TCP listener */
  struct addrinfo *addresses, *address;    /* of the TCP listener: all of them; the one being tried */
  int64_t deadline;                        /* ms: end of CONNECTING, SHAKING and GREETING */
  int64_t retry_at;                        /* ms: end of CLOSED */
  int64_t pause;                           /* ms */
  int64_t last_sent, last_read, last_ping; /* ms */
  bool fresh;                              /* there is new data to send since the last hk_client_pump */
  bool greeted_once;
  struct hk_inbox in;
  struct hk_writer out; /* bytes out_start..out.size wait for the socket */
  size_t out_start;
  uint32_t max_frame;
  char server[HK_CLIENT_MAX + 1];
};

/* Points over UDP. */
struct hk_client_datagrams {
  int socket; /* -1: points go over TCP */
  uint64_t feed, sequence, before;
  struct hk_mac *mac;                /* NULL: datagrams have no keyed checksum */
  uint8_t frame[HK_CLIENT_DATAGRAM]; /* includes the keyed checksum, if any */
  size_t size;                       /* > 0: the datagram waits for the socket */
  uint32_t points;
};

/* Sensors whose points are sent; kept by api.c. */
struct hk_client_sensors {
  struct hk_client_sensor *sensor;
  uint32_t n, capacity;
  uint32_t asked;  /* sensors 0..asked-1 were sent in a REGISTER of this connection */
  uint32_t *index; /* hash table by name: number + 1, 0: free; open addressing */
  uint32_t index_size;
};

/* Points that wait: columns, entries first..n-1; kept by client_send.c. */
struct hk_client_points {
  uint32_t *sensor;
  int64_t *time;
  double *value;
  uint32_t first, n;
  uint32_t kept;          /* of a feed: kept..first-1 are sent but not acknowledged. Without a feed: as first */
  uint32_t pictures;      /* of a feed: 1: a picture is sent and not acknowledged, behind all points, which are */
  uint64_t position;      /* of a feed: number of points before `kept`, from the feed's start */
  bool fed;               /* the feed's position is known */
  int durability;         /* enum hankel_durability */
  uint32_t *frame_handle; /* HK_CLIENT_FRAME_POINTS entries: the frame being built */
  int64_t *frame_time;
  double *frame_value;
  float *frame_value32;
};

struct hk_client_subscription {
  char *glob;
  float min_score;
  uint32_t what;
  uint64_t since; /* position of the last known event, or HANKEL_NOW */
  uint32_t asked; /* number of unanswered SUBSCRIBEs */
  bool wanted;
};

/* Requests that are answered with text, and the answer. */
struct hk_client_request {
  char *report; /* malloc'ed; NULL until it arrives */
  bool taken;   /* the requested change is in force, or was done */
  bool status_wanted, reload_wanted, operate_wanted, sensors_wanted;
  struct hk_operate operate;             /* its strings belong to the waiting caller */
  struct hk_sensors_asked sensors_asked; /* likewise */
};

/* State of reading results; kept by client_receive.c. */
struct hk_client_results {
  struct hk_client_name *names;
  uint32_t n_names, names_size;
  void *columns; /* one batch of results, aligned */
  size_t columns_size;
};

struct hankel {
  struct hankel_options options; /* its strings are copies */
  char error[1536];
  int fault; /* negative errno, in phase OVER */
  enum hk_client_phase phase;
  struct hk_client_link link;
  struct hk_client_datagrams datagrams;
  struct hk_client_sensors own;
  struct hk_client_points points;
  struct hankel_counters counters;
  uint64_t written, confirmed, pinged; /* points: given to the connection; confirmed by a PONG; at the last PING */
  uint64_t pings, pongs;
  bool ping_wanted, bye_wanted, bye_sent, farewell;
  struct hk_client_subscription subscription;
  struct hk_client_request request;
  struct hk_client_results results;
};

/* ms on the monotonic clock. */
int64_t hk_client_now(void);

/* Starts to connect; continues after connect() has finished; continues the TLS handshake. Each may end the connection. */

#endif
