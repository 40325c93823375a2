/* A partition that a scorer reads: its messages go to the daemon's own road, and none counts twice or is left out.
 *
 * Each partition is a named feed (durable/named_feeds.h), over an inner connection of the binary protocol. A point's number in
 * the feed is its message's offset times HK_LOG_POINTS_MAX, and its place in the message: numbers of a feed may leave some out.
 * So how far the feed is says how far the partition was read, and nothing else is kept.
 *
 *     broker -> message: names -> handles (REGISTER, where a name is new) -> POINTS -> acknowledged to the broker
 *
 * The daemon pushes back by not reading from the inner connection; then no more is taken from the broker.
 *
 * Statuses: 0 or a negative errno: the part's connection to the broker is to be given up; engine->why says why. Thread: the
 * cluster's. */
#ifndef HK_CLUSTER_PART_H
#define HK_CLUSTER_PART_H

#include "daemon/bridge/cluster_internal.h"
#include "proto/wire/log_message.h"

#define HK_PART_PIECE 4096u       /* points of a frame to the daemon */
#define HK_PART_FRAME (96u << 10) /* bytes of such a frame, at most */

/* Memory that parts use in turn. */
struct hk_part_room {
  uint64_t bad, refused; /* which are not in the look yet */
  struct hk_string name[HK_LOG_POINTS_MAX];
  uint32_t handle[HK_LOG_POINTS_MAX];  /* of these */
  uint32_t lacking[HK_LOG_POINTS_MAX]; /* numbers of those that have none yet */
  uint32_t handles[HK_PART_PIECE];
  int64_t times[HK_PART_PIECE];
  double values[HK_PART_PIECE];
  uint8_t frame[HK_PART_FRAME];
};

struct hk_part {
  uint32_t partition;
  struct hk_engine *engine; /* that it is read from; the caller's */
  struct hk_part_room *room;
  int fd; /* the inner connection; -1: none */
  struct hk_inbox inbox;
  uint64_t wanted; /* offset of the next message, at least */
  bool followed;   /* a message has come since */
  bool behind;     /* and perhaps more wait */
};

void hk_part_init(struct hk_part *part, uint32_t partition, struct hk_part_room *room);
/* Opens its feed, of this name: *at is how far it is, in points. */
int hk_part_open(struct hk_cluster *c, struct hk_part *part, const char *feed, uint64_t *at);
/* Messages are wanted from there on. */
int hk_part_follow(struct hk_cluster *c, struct hk_part *part, uint64_t at);
/* A message of it has come. */
int hk_part_came(struct hk_cluster *c, struct hk_part *part, const struct hk_engine_event *event);
/* No message of it waits. */
void hk_part_rests(struct hk_cluster *c, struct hk_part *part);
/* A sign of life to the daemon, which may close what is silent; and reads what it has said. To be called every second. */
int hk_part_sign(struct hk_cluster *c, struct hk_part *part);
void hk_part_close(struct hk_part *part);
/* Why it is given up, where that is not the engine's fault. Returns -EPIPE. */
int hk_part_fail(const struct hk_part *part, const char *why);

#endif
