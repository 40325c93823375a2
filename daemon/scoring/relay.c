/* See relay.h. A round is in one of four places: free (the shard's), the ring `made`, the publishing thread's, the ring
 * `done`. */
#include "daemon/scoring/relay.h"

#include "daemon/scoring/hand_over.h"
#include "daemon/scoring/shard.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EAGER 2u     /* with fewer rounds on their way a point is sent at once */
#define MESSAGE 200u /* points per partition that are worth a round */

struct hk_relay {
  struct hk_packer *packer;
  const struct hk_config *config; /* in force for the packer */
  struct hk_wake *shard;
  struct hk_ring made, done;
  int wake;                /* eventfd of the publishing thread */
  uint64_t enough;         /* points for full messages */
  uint32_t away;           /* number of rounds that are not free */
  struct hk_round *making; /* has its chunks, but no messages yet for lack of memory; NULL: none */
  uint32_t n_free;
  struct hk_round *free[HK_RELAY_ROUNDS];
  struct hk_round round[HK_RELAY_ROUNDS];
};

int hk_relay_new(struct hk_relay **out, const struct hk_config *config, struct hk_registry *registry, struct hk_wake *wake)
{
  struct hk_relay *r = calloc(1, sizeof *r);
  if (!r)
    return -ENOMEM;
  r->config = config;
  r->shard = wake;
  r->enough = (uint64_t)MESSAGE * config->cluster.partitions;
  for (uint32_t i = 0; i < HK_RELAY_ROUNDS; i++)
    r->free[r->n_free++] = &r->round[i];
  r->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  int status = r->wake < 0 ? -errno : hk_ring_init(&r->made, HK_RELAY_ROUNDS);
  if (status == 0)
    status = hk_ring_init(&r->done, HK_RELAY_ROUNDS);
  if (status == 0)
    status = hk_packer_new(&r->packer, config, registry, HK_RELAY_CHUNKS * HK_CHUNK_POINTS);
  if (status != 0) {
    hk_relay_free(r);
    return status;
  }
  *out = r;
  return 0;
}

static void give_up_chunk(struct hk_chunk *c)
{
  for (uint32_t i = 0; i < c->n_runs; i++)
    hk_source_done(c->runs[i].source, c->runs[i].n);
  hk_chunk_free(c);
}

void hk_relay_free(struct hk_relay *r)
{
  if (!r)
    return;
  for (uint32_t i = 0; i < HK_RELAY_ROUNDS; i++) {
    for (uint32_t k = 0; k < r->round[i].n_chunks; k++)
      give_up_chunk(r->round[i].chunk[k]);
    hk_packed_free(&r->round[i].packed);
  }
  hk_packer_free(r->packer);
  hk_ring_free(&r->made);
  hk_ring_free(&r->done);
  if (r->wake >= 0)
    close(r->wake);
  free(r);
}

bool hk_relay_waits(const struct hk_relay *r)
{
  return r->away > 0;
}

/* --- the shard's thread ---------------------------------------------------------------------------------------------------- */

/* The broker has the round: its points are processed, and its chunks go back to their loops. */
static void relay_take_back(struct hk_shard *s, struct hk_round *round)
{
  struct hk_relay *r = s->all->relay;
  for (uint32_t i = 0; i < round->n_chunks; i++) {
    struct hk_chunk *c = round->chunk[i];
    struct hk_lane *lane = &s->lanes[c->loop];
    hk_commit_gate_passed(&s->gate, c);
    hk_count(&s->counters.relayed, c->n);
    for (uint32_t k = 0; k < c->n_runs; k++)
      hk_source_done(c->runs[k].source, c->runs[k].n);
    hk_chunk_clear(c);
    (void)hk_ring_put(&lane->emptied, c); /* the ring has room for all */
    hk_wake_up(lane->loop, HK_WAKE_ROOM);
  }
  round->n_chunks = 0;
  r->away--;
  r->free[r->n_free++] = round;
  hk_shard_settled(s);
}

static uint64_t relay_waiting(const struct hk_shard *s)
{
  uint64_t n = 0;
  for (uint32_t i = 0; i < s->all->n_loops; i++) {
    const struct hk_ring *sealed = &s->lanes[i].sealed;
    const uint32_t chunks = hk_ring_count(sealed);
    for (uint32_t k = 0; k < chunks; k++)
      n += ((const struct hk_chunk *)hk_ring_look(sealed, k))->n;
  }
  return n;
}

/* Takes chunks of the loops in turn into a round, until it is full or there are none. */
static void relay_fill(struct hk_shard *s, struct hk_round *round)
{
  for (uint32_t idle = 0; idle < s->all->n_loops && round->n_chunks < HK_RELAY_CHUNKS;) {
    struct hk_lane *lane = &s->lanes[s->taking.turn];
    struct hk_chunk *chunk = hk_ring_take(&lane->sealed);
    s->taking.turn = (s->taking.turn + 1) % s->all->n_loops;
    if (!chunk) {
      idle++;
      continue;
    }
    idle = 0;
    hk_wake_up(lane->loop, HK_WAKE_TAKEN);
    if (chunk == &lane->token) {
      lane->tokens++;
      continue;
    }
    hk_commit_gate_pass(&s->gate, chunk);
    hk_count(&s->counters.launched, chunk->n);
    round->chunk[round->n_chunks++] = chunk;
  }
}

/* Hands a round with its messages to the publishing thread. */
static bool relay_make(struct hk_relay *r, struct hk_round *round)
{
  const uint64_t one = 1;
  r->making = hk_packer_pack(r->packer, round->chunk, round->n_chunks, &round->packed) == 0 ? NULL : round;
  if (r->making)
    return false;                                     /* retried at the next check of the clock; nothing is taken until then */
  (void)hk_ring_put(&r->made, round);                 /* the ring has room for all */
  const ssize_t n = write(r->wake, &one, sizeof one); /* fails only if the eventfd is full, and so readable */
  (void)n;
  return true;
}

/* Tokens need no round: a thread that waits for them does not wait for the broker. */
static bool take_tokens(struct hk_shard *s)
{
  bool any = false;
  for (uint32_t i = 0; i < s->all->n_loops; i++) {
    struct hk_lane *lane = &s->lanes[i];
    while (!hk_ring_empty(&lane->sealed) && hk_ring_look(&lane->sealed, 0) == &lane->token) {
      (void)hk_ring_take(&lane->sealed);
      lane->tokens++;
      any = true;
    }
  }
  return any;
}

static bool relay_begin(struct hk_shard *s)
{
  struct hk_relay *r = s->all->relay;
  if (r->making)
    return relay_make(r, r->making);
  const bool tokens = take_tokens(s);
  const uint64_t n = r->n_free > 0 && !hk_reload_waits(&s->reload) ? relay_waiting(s) : 0;
  if (n == 0 || (r->away >= EAGER && n < r->enough && n < HK_RELAY_CHUNKS * HK_CHUNK_POINTS / 2))
    return tokens;
  struct hk_round *round = r->free[r->n_free - 1];
  relay_fill(s, round);
  if (round->n_chunks == 0)
    return true;
  r->n_free--;
  r->away++;
  return relay_make(r, round);
}

bool hk_relay_turn(struct hk_shard *s)
{
  struct hk_relay *r = s->all->relay;
  struct hk_round *round;
  bool any = false;
  if (r->config != s->config && hk_packer_adopt(r->packer, s->config) == 0)
    r->config = s->config;
  while ((round = hk_ring_take(&r->done)) != NULL) {
    relay_take_back(s, round);
    any = true;
  }
  return relay_begin(s) || any;
}

/* --- the publishing thread ------------------------------------------------------------------------------------------------- */

int hk_relay_fd(const struct hk_relay *r)
{
  return r->wake;
}

void hk_relay_woken(struct hk_relay *r)
{
  uint64_t count;
  const ssize_t n = read(r->wake, &count, sizeof count);
  (void)n;
}

struct hk_round *hk_relay_take(struct hk_relay *r)
{
  return hk_ring_take(&r->made);
}

void hk_relay_give(struct hk_relay *r, struct hk_round *round)
{
  (void)hk_ring_put(&r->done, round); /* the ring has room for all */
  hk_wake_up(r->shard, HK_WAKE_WORK);
}
