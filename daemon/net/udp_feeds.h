/* Seats: one for each connection that may be open over TCP, and there, if it has one, its feed over UDP. Datagrams of a feed may
 * reach another loop than the connection's, so what is counted of them stands under a lock, which hardly ever anybody waits for.
 */
#ifndef HK_SEATS_H
#define HK_SEATS_H

#include "daemon/base/counters.h"
#include "daemon/intake/chunk.h"
#include "proto/wire/mac.h"
#include "proto/wire/udp_feed.h"

#include <pthread.h>

struct hk_seat {
  pthread_mutex_t lock;
  uint64_t number;          /* of the feed; 0: it is not open */
  struct hk_udp_feed feed;  /* of this connection */
  struct hk_mac *mac;       /* of its datagrams; NULL: it has no key */
  struct hk_source *source; /* of its points; valid while the feed is open */
  _Atomic int64_t heard;    /* ns: when a datagram last came */
  uint32_t index;
};

struct hk_seats {
  struct hk_seat *seats;
  uint32_t n;
  pthread_mutex_t lock;
  uint32_t *free; /* a stack */
  uint32_t n_free;
  uint32_t high; /* one more than the highest seat that was ever taken */
};

/* 0 or -ENOMEM. */
int hk_seats_open(struct hk_seats *seats, uint32_t n);
void hk_seats_close(struct hk_seats *seats); /* seats: zeroed or open */

/* For any thread. A seat for a new connection; NULL: all are taken. */
struct hk_seat *hk_seats_take(struct hk_seats *seats);
/* Gives it back; adds what was counted of the feed to the thread's counters. */
void hk_seats_give(struct hk_seats *seats, struct hk_seat *seat, struct hk_counters *counters);
uint32_t hk_seats_taken(struct hk_seats *seats);
/* Adds what is counted of the feeds that have not ended. */
void hk_seats_sum(struct hk_seats *seats, struct hk_counters *sum);

/* Opens the feed of a connection; returns its number, 0 when there are no random numbers to be had. */
uint64_t hk_seat_open(struct hk_seat *seat, struct hk_source *source);
/* Gives an open feed a key. 0, or a negative errno: there is none to be had. */
int hk_seat_key(struct hk_seat *seat, uint8_t key[HK_MAC_KEY]);
/* Whether a datagram of the feed has come. */
bool hk_seat_fed(struct hk_seat *seat);
/* As hk_udp_feed_end. */
void hk_seat_end(struct hk_seat *seat, uint64_t datagrams, uint64_t points);
/* Its datagrams are strangers' from now on. NULL is fine. */
void hk_seat_shut(struct hk_seat *seat);
/* The open feed of a number, locked until hk_seat_leave; NULL: there is none. */
struct hk_seat *hk_seat_enter(struct hk_seats *seats, uint64_t number);
void hk_seat_leave(struct hk_seat *seat);

#endif
