/* Engine: a broker that keeps logs, and what the daemon needs of one. Each kind of broker has an adapter, one file that fills a
 * struct hk_engine_kind; whoever uses it (cluster_gateway.c, cluster_scorer.c) knows no kind.
 *
 * A log is a row of messages that the broker numbers as they come (offsets, which grow and may leave some out), keeps for the
 * configured time, and gives to anybody from any offset on, in order, as often as asked. There is one a partition: the points of
 * its sensors. What an adapter has to promise:
 *
 *  - A message that was confirmed is in its log, whatever happens to us; with replicas, to a minority of the brokers. One that
 *    was not may be in it or not. Messages of one connection stand in a log in the order in which they were published.
 *  - Nothing waits for ever: a call may wait for the broker for WAIT s (below) at most, and a broker that says nothing for
 *    SILENCE s is lost. A broker that is lost says so by a negative status, and then there is nothing but `close`; who wants to
 *    go on opens another connection, and publishes again what was not confirmed.
 *  - A broker may forget a message, and then never confirms it: whoever publishes goes by the clock.
 *  - Nothing the broker sends makes it read or write beyond its memory, or keep more than a message.
 *
 * So there are two states, open and lost, and all that has to be remembered over a loss is with the caller.
 *
 *     open -> log... -> publish -> next: CONFIRMED                      a gateway
 *     open -> log... -> follow... -> next: MESSAGE -> took              a scorer of partitions that it was told
 *     open -> lease -> next: LEASED -> follow -> next: MESSAGE -> took  one of a partition that it shares with others: each has a
 *                                                                       connection of its own, and gives it up by closing that
 *
 * A lease is one connection's at a time, and goes to the next that waits for it when that one is gone, or was silent for so long
 * that the broker takes it for gone. Who has lost it may not know for as long: what it does meanwhile has to be harmless.
 *
 * Thread: that of whoever has opened it, but for `hk_engine_kind.fd`'s socket, which any may shut down to end a wait. */
#ifndef HK_BRIDGE_ENGINE_H
#define HK_BRIDGE_ENGINE_H

#include "daemon/config/cluster_rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_ENGINE_WAIT 5u                        /* s */
#define HK_ENGINE_SILENCE 20u                    /* s */
#define HK_ENGINE_WHY 256                        /* bytes of a reason, with the 0 */
#define HK_ENGINE_MESSAGE_MAX (8u << 20)         /* bytes of a message; one that is longer is no message of ours */
#define HK_ENGINE_FIRST UINT64_MAX               /* the oldest message that there is */
#define HK_ENGINE_OFFSET_MOST ((1ull << 50) - 1) /* no offset is higher */

enum hk_engine_what {
  HK_ENGINE_NOTHING,   /* for now: wait until the socket can be read */
  HK_ENGINE_CONFIRMED, /* message `number` is in its log; `all`: and all before it */
  HK_ENGINE_MESSAGE,   /* of `partition`, at `offset`; data is valid until the next call */
  HK_ENGINE_LEASED,    /* the lease of `partition` is ours, until the connection is closed */
  HK_ENGINE_BLOCKED,   /* the broker takes no messages for now, for `why` (its memory, its disk); what comes is kept by us */
  HK_ENGINE_UNBLOCKED  /* it does again */
};

struct hk_engine_event {
  enum hk_engine_what what;
  uint64_t number;
  bool all;
  uint32_t partition;
  uint64_t offset;
  const void *data;
  size_t size;  /* at most HK_ENGINE_MESSAGE_MAX */
  int64_t sent; /* ns, wall clock, to a second: when it was published; 0: it does not say */
};

struct hk_engine; /* each adapter's own begins with this */

struct hk_engine_kind {
  const char *name;
  /* Connects to one of the rule's brokers, which is read again: secrets may have changed. 0 and *out, or a negative errno with
   * why. fd: room for the socket, for others to shut down; set before anything waits for it, and -1 before it is closed. */
  int (*open)(struct hk_engine **out, const struct hk_cluster_rule *rule, uint32_t broker, char why[HK_ENGINE_WHY]);
  int (*fd)(const struct hk_engine *engine); /* its socket, to wait for */
  /* Makes the log of a partition where there is none, with the retention of the rule. */
  int (*log)(struct hk_engine *engine, uint32_t partition);
  /* Sends a message. Messages of a connection are numbered 1, 2, 3..., and each is confirmed once, in any order. */
  int (*publish)(struct hk_engine *engine, uint32_t partition, const void *data, size_t size);
  /* Messages of a partition are wanted, from an offset on, or HK_ENGINE_FIRST. Where there is none of that offset any more they
   * begin with the next that there is. */
  int (*follow)(struct hk_engine *engine, uint32_t partition, uint64_t offset);
  /* Waits for the lease of a partition, behind those that wait already; LEASED says when it is ours. Once on a connection, which
   * has nothing to do with other partitions. */
  int (*lease)(struct hk_engine *engine, uint32_t partition);
  /* From the first call until the connection is closed this is one of those who share the partitions. *out: how many there are,
   * with it. */
  int (*members)(struct hk_engine *engine, uint32_t *out);
  /* Tells the broker that we are there, whatever there is to read: for those who cannot call `next` for seconds. Waits for the
   * broker at most. */
  int (*alive)(struct hk_engine *engine);
  /* What comes next; never waits. This, or `alive`, has to be called every few seconds at least. */
  int (*next)(struct hk_engine *engine, struct hk_engine_event *out);
  /* The message that came last was taken: so many more may come as were. */
  int (*took)(struct hk_engine *engine);
  void (*close)(struct hk_engine *engine);
};

struct hk_engine {
  const struct hk_engine_kind *kind;
  char why[HK_ENGINE_WHY]; /* why it is lost, or blocked */
};

#ifdef HK_HAVE_RABBITMQ
extern const struct hk_engine_kind hk_engine_rabbitmq;
#endif

#endif
