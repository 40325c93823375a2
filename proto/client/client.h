/* Inside of libhankel: the handle, and what its three parts ask of each other. api.c has the public calls and the
 * connection, client_send.c what goes out, client_receive.c what comes in. Not installed. */
#ifndef HK_CLIENT_H
#define HK_CLIENT_H

#include "proto/client/client_tls.h"
#include "proto/wire/mac.h"
#include "proto/wire/message.h"

#include <netdb.h>

#define HK_CLIENT_FRAME_POINTS 4096u      /* points in a frame, at most */
#define HK_CLIENT_OUT (256u << 10)        /* bytes of frames that wait for the socket */
#define HK_CLIENT_DATAGRAM (1400u)        /* bytes of a datagram: fits the usual path */
#define HK_CLIENT_PING_POINTS (64u << 10) /* a PING after so many points, so that little is in doubt */
#define HK_CLIENT_PING_MS 15000           /* and after so long a silence of ours */
#define HK_CLIENT_DOUBT_MS 1000           /* and so long after the last PING while points are in doubt, so that little is */
#define HK_CLIENT_DEAD_MS 60000           /* so long without an answer to a PING ends the connection */
#define HK_CLIENT_GREETING_MS 10000       /* to connect and be greeted */
#define HK_CLIENT_PAUSE_MS 100            /* before connecting again, at first; doubled up to */
#define HK_CLIENT_PAUSE_MOST_MS 10000

enum hk_client_phase {
  HK_CLIENT_CLOSED,     /* waits for retry_at */
  HK_CLIENT_CONNECTING, /* connect() is under way */
  HK_CLIENT_SHAKING,    /* the handshake of TLS is under way */
  HK_CLIENT_GREETING,   /* HELLO is sent */
  HK_CLIENT_READY,
  HK_CLIENT_OVER, /* for good */
};

enum hk_sensor_phase { HK_SENSOR_NEW, HK_SENSOR_GOOD, HK_SENSOR_REFUSED };

struct hk_client_sensor {
  char *name;
  uint32_t handle;
  uint8_t phase; /* enum hk_sensor_phase */
};

/* Handle -> name of the sensors that results are about. Open addressing, a power of two of places, at most half full. */
struct hk_client_name {
  uint32_t handle;
  char *name; /* NULL: free place */
};

/* The connection over TCP, of client_connect.c. */
struct hk_client_link {
  int fd;
  struct hk_client_tls *tls;               /* NULL: plain, or not connected */
  char host[256];                          /* of the TCP listener */
  struct addrinfo *addresses, *address;    /* of the TCP listener: all, the one being tried */
  int64_t deadline;                        /* ms: of CONNECTING and GREETING */
  int64_t retry_at;                        /* ms: CLOSED */
  int64_t pause;                           /* ms */
  int64_t last_sent, last_read, last_ping; /* ms */
  bool fresh;                              /* something to send has come since the last hk_client_pump */
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
  struct hk_mac *mac;                /* NULL: they have none */
  uint8_t frame[HK_CLIENT_DATAGRAM]; /* with the keyed checksum, if there is one */
  size_t size;                       /* over 0: waits for the socket */
  uint32_t points;
};

/* Sensors that points are sent of, of api.c. */
struct hk_client_sensors {
  struct hk_client_sensor *sensor;
  uint32_t n, capacity;
  uint32_t asked;  /* sensors 0..asked-1 stand in a REGISTER of this connection */
  uint32_t *index; /* by name: number + 1, 0 = free; open addressing */
  uint32_t index_size;
};

/* Points that wait: columns, first..n-1; of client_send.c. */
struct hk_client_points {
  uint32_t *sensor;
  int64_t *time;
  double *value;
  uint32_t first, n;
  uint32_t kept;          /* of a feed: kept..first-1 are sent and not acknowledged. Else as first */
  uint64_t position;      /* of a feed: points before `kept`, from its beginning on */
  bool fed;               /* where the feed begins is known */
  int durability;         /* enum hankel_durability */
  uint32_t *frame_handle; /* HK_CLIENT_FRAME_POINTS: one frame being put together */
  int64_t *frame_time;
  double *frame_value;
  float *frame_value32;
};

struct hk_client_subscription {
  char *glob;
  float min_score;
  uint32_t what;
  uint64_t since; /* position of the last event that is known, or HANKEL_NOW */
  uint32_t asked; /* SUBSCRIBEs that are not answered */
  bool wanted;
};

/* Requests with an answer in words, and the answer. */
struct hk_client_request {
  char *report; /* malloc'ed; NULL until it comes */
  bool taken;   /* what `report` is about is in force, or was done */
  bool status_wanted, reload_wanted, operate_wanted, sensors_wanted;
  struct hk_operate operate;             /* its strings are the caller's, who waits */
  struct hk_sensors_asked sensors_asked; /* likewise */
};

/* What results are read with, of client_receive.c. */
struct hk_client_results {
  struct hk_client_name *names;
  uint32_t n_names, names_size;
  void *columns; /* one batch of results, aligned */
  size_t columns_size;
};

struct hankel {
  struct hankel_options options; /* strings: our copies */
  char error[1536];
  int fault; /* negative errno, once OVER */
  enum hk_client_phase phase;
  struct hk_client_link link;
  struct hk_client_datagrams datagrams;
  struct hk_client_sensors own;
  struct hk_client_points points;
  struct hankel_counters counters;
  uint64_t written, confirmed, pinged; /* points: handed to the connection, confirmed by a PONG, at the last PING */
  uint64_t pings, pongs;
  bool ping_wanted, bye_wanted, bye_sent, farewell;
  struct hk_client_subscription subscription;
  struct hk_client_request request;
  struct hk_client_results results;
};

/* ms on the monotonic clock. */
int64_t hk_client_now(void);

/* Begins to connect; connect() has come to an end; goes on with the handshake. Each may end the connection. */
void hk_client_begin(struct hankel *h);
void hk_client_connected(struct hankel *h);
void hk_client_shake(struct hankel *h);

/* Gives back what belongs to a connection: sockets, addresses, what was read. */
void hk_client_release(struct hankel *h);

/* Ends the connection: tells the caller, forgets what belonged to it, plans the next attempt (or is OVER, with `once`). */
void hk_client_disconnect(struct hankel *h, int fault, const char *reason);

/* Writes what can be written: requests, points, then the socket. May end the connection. */
void hk_client_pump(struct hankel *h);

/* Reads and handles what has come. May end the connection. */
void hk_client_read(struct hankel *h);

/* As recv and send on the connection. */
ssize_t hk_client_recv(struct hankel *h, void *data, size_t size);
ssize_t hk_client_send(struct hankel *h, const void *data, size_t size);

void hk_client_forget_names(struct hankel *h);

/* So many points of the feed, from its beginning, are acknowledged: those are kept no more. */
void hk_client_acknowledged(struct hankel *h, uint64_t points);

#endif
