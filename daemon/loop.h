/* Loop: an event loop, and all that belongs to its thread alone: connections, the line parser, the way of their points into the
 * stage, a publisher, counters. */
#ifndef HK_LOOP_H
#define HK_LOOP_H

#include "daemon/connection.h"
#include "daemon/counters.h"
#include "daemon/intake.h"
#include "daemon/publish.h"
#include "proto/line.h"

#include <uv.h>

struct hk_server;

struct hk_loop {
  struct hk_server *server;
  uint32_t number;
  uv_loop_t uv;
  bool open;
  struct hk_counters counters; /* written by this thread alone */
  struct hk_intake intake;
  struct hk_publisher *publisher;
  struct hk_connection *connections; /* list */
  struct hk_connection *parked, **parked_tail;
  struct hk_line line; /* the parser's, shared by all connections */
  char discard[65536]; /* what lingering connections still send */
};

#endif
