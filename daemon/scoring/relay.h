/* Relay: of a gateway ([cluster] role = gateway), what becomes of points instead of scores. The shard's thread takes chunks of
 * all loops and makes messages of them, one or more for each partition that has points; another thread publishes these and says
 * when the broker has them; only then are the points dealt with: feeds are acknowledged, and chunks go back to their loops.
 *
 * What goes to and fro is a round: some chunks and their messages.
 *
 *     shard: chunks -> hk_relay_turn: a round -> ring -> publishing thread: hk_relay_take -> confirmed -> hk_relay_give
 *            chunks back, acknowledgements <- hk_relay_turn <- ring <-
 *
 * A round begins as soon as anything waits and few rounds are on their way, so a lone point waits for nothing; else once there is
 * enough for full messages, or a round has come back. So messages grow by themselves under load. While the broker is away the
 * rounds stay where they are, chunks are not taken, and loops run out of empty ones: they read no more from their peers.
 *
 * Thread: as each function says. */
#ifndef HK_RELAY_H
#define HK_RELAY_H

#include "daemon/base/counters.h"
#include "daemon/intake/chunk.h"
#include "daemon/scoring/relay_pack.h"

struct hk_relay;
struct hk_shard;
struct hk_wake;

#define HK_RELAY_ROUNDS 4u
#define HK_RELAY_CHUNKS 4u /* of a round */

struct hk_round {
  struct hk_packed packed; /* its messages */
  uint32_t n_chunks;
  struct hk_chunk *chunk[HK_RELAY_CHUNKS];
};

/* 0 and *out, or -ENOMEM, or another negative errno. config, registry: outlive it. wake: of the shard. Thread: main. */
int hk_relay_new(struct hk_relay **out, const struct hk_config *config, struct hk_registry *registry, struct hk_wake *wake);
/* No thread has to do with it any more: points in it are given up. NULL is fine. */
void hk_relay_free(struct hk_relay *relay);

/* Takes back rounds that the broker has, and makes others of chunks that wait. True when there were any. Thread: the shard's. */
bool hk_relay_turn(struct hk_shard *shard);
/* Whether points wait for the broker. Thread: the shard's. */
bool hk_relay_waits(const struct hk_relay *relay);

/* For the thread that publishes. hk_relay_fd: can be read when there may be another round; hk_relay_woken empties it.
 * hk_relay_take: the next round; NULL: there is none now. hk_relay_give: the broker has all messages of a round that was taken;
 * in the order in which they were. */
int hk_relay_fd(const struct hk_relay *relay);
void hk_relay_woken(struct hk_relay *relay);
struct hk_round *hk_relay_take(struct hk_relay *relay);
void hk_relay_give(struct hk_relay *relay, struct hk_round *round);

#endif
