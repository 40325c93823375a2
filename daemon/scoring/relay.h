/* Relay: what a gateway ([cluster] role = gateway) does with points instead of scoring. The shard's thread takes chunks of all
 * loops and packs them into messages, at least one for each partition that has points. Another thread publishes these and reports
 * when the broker has them. Only then are the points processed: feeds are acknowledged, and chunks go back to their loops.
 *
 * A round is some chunks and their messages.
 *
 *     shard: chunks -> hk_relay_turn: a round -> ring -> publishing thread: hk_relay_take -> confirmed -> hk_relay_give
 *            chunks back, acknowledgements <- hk_relay_turn <- ring <-
 *
 * A round begins as soon as any point waits and few rounds are on their way, so a lone point is not delayed; else once there are
 * enough points for full messages, or a round has come back. So messages grow under load. While the broker is unavailable the
 * rounds stay where they are, chunks are not taken, and loops run out of empty ones: they stop reading from their peers.
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

/* Makes a relay. config, registry: outlive it. wake: of the shard. Returns 0 and *out, or a negative errno. Thread: main. */
int hk_relay_new(struct hk_relay **out, const struct hk_config *config, struct hk_registry *registry, struct hk_wake *wake);
/* Frees a relay that no thread uses any more: points in it are lost. NULL is fine. */
void hk_relay_free(struct hk_relay *relay);

/* Takes back rounds that the broker has, and makes rounds of waiting chunks. Returns whether there were any. Thread: the shard's.
 * */
bool hk_relay_turn(struct hk_shard *shard);
/* Whether points wait for the broker. Thread: the shard's. */
bool hk_relay_waits(const struct hk_relay *relay);

/* For the publishing thread. hk_relay_fd: readable if there may be another round; hk_relay_woken empties it. hk_relay_take: the
 * next round; NULL: none now. hk_relay_give: the broker has all messages of a taken round; called in the order of taking. */
int hk_relay_fd(const struct hk_relay *relay);
void hk_relay_woken(struct hk_relay *relay);
struct hk_round *hk_relay_take(struct hk_relay *relay);
void hk_relay_give(struct hk_relay *relay, struct hk_round *round);

#endif
