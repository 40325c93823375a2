/* A partition that a scorer reads: feeds its messages to the daemon, each point exactly once.
 *
 * Each partition is a named feed (durable/named_feeds.h), over an inner connection of the binary protocol. A point's number in
 * the feed is its message's offset times HK_LOG_POINTS_MAX, plus its place in the message; the numbers of a feed may have gaps.
 * So the feed's position shows how far the partition was read, and nothing else is stored.
 *
 * A message of a later version of the protocol is not left out, since its points would be lost: the partition waits before it,
 * until a scorer that reads that version has it. The positions of snapshots and feeds stay where they are, so this is safe. When
 * the broker may keep the message no longer, the partition is given up, and its next holder reads from what the broker has.
 *
 * A log that was deleted and made anew numbers its messages from 0 again: then numbers go on in the next of HK_PART_LOGS ranges,
 * so that none comes twice.
 *
 *     broker -> message: names -> handles (REGISTER, for a new name) -> POINTS -> acknowledged to the broker
 *
 * The daemon pushes back by not reading from the inner connection; then no more is taken from the broker.
 *
 * Statuses: 0, or a negative errno: the part's connection to the broker is to be given up; engine->why says why. Thread: the
 * cluster's. */
#ifndef HK_CLUSTER_PART_H
#define HK_CLUSTER_PART_H

#include "daemon/bridge/cluster_internal.h"
#include "proto/wire/log_message.h"

#define HK_PART_RANGE (1ull << 40) /* messages of a log */
#define HK_PART_LOGS 1024u         /* of a partition, one after the other */
#define HK_PART_PIECE 4096u        /* points of a frame to the daemon */
#define HK_PART_FRAME (96u << 10)  /* maximum bytes of such a frame */

/* Memory shared by parts, used by one at a time. */
struct hk_part_room {
  uint64_t bad, refused; /* not yet added to the look */
  uint32_t *after;       /* by slot: 1 + the slot of the name that last followed its name in a message; 0: none yet */
  struct hk_string name[HK_LOG_POINTS_MAX];
  uint32_t handle[HK_LOG_POINTS_MAX];  /* of these names */
  uint32_t lacking[HK_LOG_POINTS_MAX]; /* indices of names without a handle */
  uint32_t handles[HK_PART_PIECE];
  int64_t times[HK_PART_PIECE];
  double values[HK_PART_PIECE];
  uint8_t frame[HK_PART_FRAME];
};

struct hk_part {
  uint32_t partition;
  struct hk_broker_engine *engine; /* the connection to read from; the caller's */
  struct hk_part_room *room;
  int fd; /* the inner connection; -1: none */
  struct hk_inbox inbox;
  uint64_t before; /* number of the log's message of offset 0 */
  uint64_t wanted; /* minimum offset of the next message */
  bool followed;   /* a message has come since hk_part_follow */
  bool behind;     /* and more may wait */
  uint32_t last;   /* 1 + the slot of the last name of the last message; 0: none */
  bool owed;       /* the last message is not acknowledged to the broker: it sends only a few more */
  uint8_t needs;   /* 0; or the version of message `wanted`, which is later than ours: nothing is read from there on, */
  int64_t sent;    /* and when that message was published, ns, wall clock; 0: unknown; */
  int64_t look;    /* and when to look whether it is still there, ns, hk_now */
};

/* Returns 0 or -ENOMEM. */
int hk_part_room_init(struct hk_part_room *room, const struct hk_cluster *c);
void hk_part_room_free(struct hk_part_room *room);
void hk_part_init(struct hk_part *part, uint32_t partition, struct hk_part_room *room);
/* Opens its feed, of this name; sets *at to the feed's position, in points. */
int hk_part_open(struct hk_cluster *c, struct hk_part *part, const char *feed, uint64_t *at);
/* The offset of the message of a position, in points. */
static inline uint64_t hk_part_offset(uint64_t at)
{
  return at / HK_LOG_POINTS_MAX % HK_PART_RANGE;
}
/* Requests messages from this position on. */
int hk_part_follow(struct hk_cluster *c, struct hk_part *part, uint64_t at);
/* A message of the partition has come. */
int hk_part_came(struct hk_cluster *c, struct hk_part *part, const struct hk_broker_engine_event *event);
/* While too many of our events wait for the broker, which may accept nothing and still send, messages are not acknowledged to it:
 * so it stops sending, and the number of waiting events is bounded. Sends overdue acknowledgements once that is over. */
int hk_part_settle(struct hk_cluster *c, struct hk_part *part);
/* No message of the partition waits. */
void hk_part_rests(struct hk_cluster *c, struct hk_part *part);
/* Sends a sign of life to the daemon, which may close silent connections, and reads its replies. To call every second. */
int hk_part_sign(struct hk_cluster *c, struct hk_part *part);
void hk_part_close(struct hk_part *part);
/* Sets the reason for giving up, if the engine did not fail. Returns -EPIPE. */
int hk_part_fail(const struct hk_part *part, const char *why);

#endif
