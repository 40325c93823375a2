/* The sender of bench_intake: a process that sends frames and datagrams on order. */
#ifndef INTAKE_SENDER_H
#define INTAKE_SENDER_H

#include <semaphore.h>
#include <stdint.h>
#include <stdnoreturn.h>

enum {
  SENSORS = 100000,
  FRAME = 4096, /* points of a frame over TCP */
  FRAMES = 96,  /* made once and sent again and again: all sensors by turns */
  BATCH = 64,   /* datagrams of one sendmmsg or recvmmsg */
  MANY = 59,    /* most points of a datagram */
};

/* STREAM: frames to a loop beside the daemon; DAEMON: to the daemon, until it has taken them; BURST: datagrams to a socket beside
 * the daemon's; FEED: to the daemon's; FENCE: waits until the daemon has taken what came over TCP; END: ends the process. */
enum order { ORDER_STREAM, ORDER_DAEMON, ORDER_BURST, ORDER_FEED, ORDER_FENCE, ORDER_END };

/* Shared by both processes; the semaphores are made, for processes, before the sender is forked. */
struct desk {
  sem_t go, done;
  enum order order;
  uint16_t daemon_tcp, daemon_udp, tcp, udp;             /* ports; the last two those of the loops beside it */
  uint32_t count, points;                                /* frames or datagrams; points in each datagram */
  uint64_t sent_frames, sent_datagrams, datagram_points; /* to the daemon, so far */
};

/* Sends what it is ordered to, for the rest of the process. First it waits for `go` with the daemon's ports on the desk,
 * and posts `done` when it is ready. */
noreturn void sender_run(struct desk *desk);
/* Orders the sender to begin; it posts `done` at the end. count: frames or datagrams; points: of each datagram. */
void sender_order(struct desk *desk, enum order order, uint32_t count, uint32_t points);

#endif
