/* Loop: an event loop, and all that belongs to its thread alone: connections, the line parser, the way of their points into the
 * stage, a publisher, counters. */
#ifndef HK_LOOP_H
#define HK_LOOP_H

#include "daemon/connection.h"
#include "daemon/counters.h"
#include "daemon/intake.h"
#include "daemon/lines.h"
#include "daemon/publish.h"

#include <uv.h>

#define HK_LOOP_BUFFER (256u << 10) /* stays in the second cache, with the chunk that its points go to */

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
  struct hk_lines *lines; /* of all connections and datagrams */
  uint64_t turn;          /* counts the turns of the event loop */
  uint8_t *buffer;        /* HK_LOOP_BUFFER bytes that whatever connection is being read reads into */
};

#endif
