/* Engine: a broker that keeps logs, and the functions of it that the daemon needs. Each kind of broker has an adapter, one file
 * that fills a struct hk_broker_engine_kind; its users (cluster_*.c) are independent of the kind.
 *
 * A log is a sequence of messages. The broker numbers them as they come (offsets, which ascend and may have gaps), keeps them for
 * the configured time, and sends them to any reader from any offset on, in order, as often as requested. Each partition has a log
 * with the points of its sensors. An adapter guarantees:
 *
 *  - A confirmed message is in its log, whatever happens to us; with replicas, whatever happens to a minority of the brokers. An
 *    unconfirmed message may be in it or not. Messages of one connection are in a log in the order in which they were published.
 *  - Nothing waits for ever: a call may wait for the broker for at most HK_ENGINE_WAIT, and a broker that owes an answer and is
 *    silent for HK_ENGINE_SILENCE is lost. A call reports a lost broker by a negative status, and then only `close` is
 *    allowed; to continue, the user opens another connection, and publishes unconfirmed messages again.
 *  - A broker may lose a message, and then never confirms it: so publishers use a timeout.
 *  - Nothing that the broker sends makes the adapter access invalid memory, or keep more of a partition than a few messages.
 *
 * So there are two states, open and lost, and everything that must survive a loss is stored by the caller.
 *
 *     open -> log... -> publish -> next: CONFIRMED                      a gateway
 *     open -> log... -> follow... -> next: MESSAGE -> took              a scorer of configured partitions
 *     open -> lease -> next: LEASED -> follow -> next: MESSAGE -> took  a scorer of a leased partition: each lease has its own
 *                                                                       connection, and ends when that is closed
 *
 *     open -> log -> follow -> publish... -> next: CONFIRMED, MESSAGE -> took  every machine, with the log of events
 *
 *     open -> mailbox -> post..., next: LETTER, RETURNED  every machine, to ask others and to answer
 *
 * One connection at a time has a lease. It goes to the next waiting connection when its holder is closed, or has been silent for
 * so long that the broker considers it dead. A holder that has lost its lease may not know this for as long, so what it does
 * meanwhile must be harmless: its snapshots are of its own epoch, and the events that it publishes are, to the bit, those that
 * its successor publishes, by whose numbers they are recognised (durable/event_copy.h). So an adapter needs no fencing of
 * writers.
 *
 * Thread: the one that opened it, except the socket of hk_broker_engine_kind.fd, which any thread may shut down to end a wait.
 * Errors: 0, or a negative errno with the reason in `why`: what an operator can act upon, without control characters, and the
 * same text as long as the reason is the same, since only another one is logged again.
 *
 * A further kind of broker needs: its adapter, engine_NAME.c; a row in `kinds` of cluster.c; its name in enum hk_cluster_engine,
 * the scheme of its URLs, and what it has no use for in look_at_engine (config/cluster_rule.c); a meson option; and its broker
 * for the tests of clusters, which are the same for all kinds (tests/integration/test_kafka.py shows how they are asked). */
#ifndef HK_BRIDGE_ENGINE_H
#define HK_BRIDGE_ENGINE_H

#include "daemon/config/cluster_rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_ENGINE_WAIT 5u                        /* s */
#define HK_ENGINE_SILENCE 20u                    /* s */
#define HK_ENGINE_RENEWAL 20u                    /* s; the least consumer_timeout of RabbitMQ is a minute */
#define HK_ENGINE_WHY 256                        /* bytes of a reason, with the 0 */
#define HK_ENGINE_MESSAGE_MAX (8u << 20)         /* maximum bytes of a message; the daemon writes no longer one */
#define HK_ENGINE_FIRST UINT64_MAX               /* the oldest existing message */
#define HK_ENGINE_OFFSET_MOST ((1ull << 50) - 1) /* maximum offset */
#define HK_ENGINE_NEXT (UINT64_MAX - 1)          /* the next message that comes */
#define HK_ENGINE_EVENTS UINT32_MAX       /* in place of a partition: the log of events; the lease of the machine that leads */
#define HK_ENGINE_SCORES (UINT32_MAX - 1) /* likewise the log of scores, kept for minutes */

enum hk_engine_what {
  HK_ENGINE_NOTHING,   /* no event now: wait until the socket is readable */
  HK_ENGINE_CONFIRMED, /* message `number` is in its log; `all`: and all before it */
  HK_ENGINE_MESSAGE,   /* of `partition`, at `offset`; data is valid until the next call */
  HK_ENGINE_LEASED,    /* we hold the lease of `partition`, until the connection is closed */
  HK_ENGINE_RECALLED,  /* the broker wants that lease back, for another: make a snapshot, and close the connection */
  HK_ENGINE_BLOCKED,   /* the broker accepts no messages at present, for `why` (its memory, its disk); we keep new ones */
  HK_ENGINE_UNBLOCKED, /* the broker accepts messages again */
  HK_ENGINE_LETTER,    /* to this machine, or to all, also from itself; data is valid until the next call */
  HK_ENGINE_RETURNED   /* likewise, one of ours: its machine has no mailbox, for it does not run */
};

enum hk_engine_group {
  HK_ENGINE_MEMBERS,   /* scorers that share the partitions */
  HK_ENGINE_LACKING,   /* those that have fewer than their share */
  HK_ENGINE_LISTENERS, /* machines that show the scores of others */
  HK_ENGINE_GROUPS
};

struct hk_broker_engine_event {
  enum hk_engine_what what;
  uint64_t number;
  bool all;
  uint32_t partition;
  uint64_t offset;
  const void *data;
  size_t size;  /* at most HK_ENGINE_MESSAGE_MAX */
  int64_t sent; /* ns, wall clock, to a second: when it was published; 0: unknown */
};

struct hk_broker_engine; /* each adapter's own begins with this */

struct hk_broker_engine_kind {
  const char *name;
  bool experimental; /* it has not run against real brokers so far; said in the log */
  /* Connects to one of the rule's brokers, reading its secrets again, since they may have changed. beside: NULL; or, for a lease,
   * the caller's connection without one, which outlives this, and whose `next` is called as often: what the two can share they
   * may. Returns 0 and *out, or a negative errno with why. */
  int (*open)(struct hk_broker_engine **out, const struct hk_cluster_rule *rule, uint32_t broker, struct hk_broker_engine *beside,
              char why[HK_ENGINE_WHY]);
  int (*fd)(const struct hk_broker_engine *engine); /* readable when events may wait: its socket, or an eventfd */
  /* Makes the log of a partition if there is none, with the retention of the rule. Before `publish` and `follow`, on each
   * connection: one that is there already and does not fit is refused here. */
  int (*log)(struct hk_broker_engine *engine, uint32_t partition);
  /* Sends a message, or copies it to be sent; never waits for its confirmation. Messages of a connection are numbered 1, 2, 3...,
   * and each is confirmed once, in any order. Of a partition's log at most one is unconfirmed; of those of events and scores many
   * may be, on a connection that publishes to no other log. */
  int (*publish)(struct hk_broker_engine *engine, uint32_t partition, const void *data, size_t size);
  /* Requests messages of a partition from an offset on, HK_ENGINE_FIRST or HK_ENGINE_NEXT; once for each partition. If that
   * offset no longer exists, they begin with the next existing one, or, where the log was made anew, with its first: the user
   * looks at the offset. since: with HK_ENGINE_NEXT, messages that came from this time on, ns, wall clock, and perhaps some of
   * just before, if the kind of broker can find them; 0: from now on. */
  int (*follow)(struct hk_broker_engine *engine, uint32_t partition, uint64_t offset, int64_t since);
  /* Waits for the lease of a partition, after earlier requests; LEASED reports it. Once on a connection, which is used for no
   * other partition. Publishes nothing. */
  int (*lease)(struct hk_broker_engine *engine, uint32_t partition);
  /* Offers the lease of a partition once it is waited for, without which nobody may ever get it, and renews one that another
   * connection holds. To do every HK_ENGINE_RENEWAL, over a connection that is used for nothing else (cluster_renewal.h); a
   * connection that reads no log offers its lease itself, and renews it by itself. NULL: leases need neither. */
  int (*renew)(struct hk_broker_engine *engine, uint32_t partition);
  /* Counts the connections of a group. in: whether this one belongs to it from now on; it does not at first. *out: their number,
   * including this one; where the broker does not know it (a queue without a leader), it may be too small, even 0. NULL: the
   * broker knows who waits, shares the leases out evenly, and recalls those that are another's; who listens to scores is not
   * known, so these are always shared. */
  int (*count)(struct hk_broker_engine *engine, enum hk_engine_group group, bool in, uint32_t *out);
  /* Makes the mailbox of this machine, for letters, which last for seconds at most; there is none as soon as the connection is
   * closed. On a connection that is used for nothing else. -EPIPE if another connection has it. NULL, and then `post` is, too:
   * the broker has no mailboxes. */
  int (*mailbox)(struct hk_broker_engine *engine, const char *machine);
  /* Sends a letter to a machine, or, NULL, to all that have a mailbox. It may be lost. CONFIRMED says nothing of it. */
  int (*post)(struct hk_broker_engine *engine, const char *machine, const void *data, size_t size);
  /* Sends a sign of life to the broker, regardless of data to read: for callers that cannot call `next` for seconds. May wait
   * for the broker only. */
  int (*alive)(struct hk_broker_engine *engine);
  /* Returns the next event; never waits. This, or `alive`, must be called at least every few seconds. */
  int (*next)(struct hk_broker_engine *engine, struct hk_broker_engine_event *out);
  /* The last message was processed, and all before it: lets the broker send as many more. Without it few more come. */
  int (*took)(struct hk_broker_engine *engine);
  void (*close)(struct hk_broker_engine *engine);
};

struct hk_broker_engine {
  const struct hk_broker_engine_kind *kind;
  char why[HK_ENGINE_WHY]; /* reason of the loss, or of the block */
  char untried[24];        /* version of the broker, if hankeld was not tried with it; else "" */
};

#ifdef HK_HAVE_RABBITMQ
extern const struct hk_broker_engine_kind hk_engine_rabbitmq;
#endif
#ifdef HK_HAVE_KAFKA
extern const struct hk_broker_engine_kind hk_engine_kafka;
#endif

#endif
