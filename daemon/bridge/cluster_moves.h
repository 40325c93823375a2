/* Moves: the partitions that operators want this machine to have (`hankel cluster move`), and what became of each request.
 *
 *     hk_moves_ask -> WAITS -> DONE       this machine has taken the partition
 *                           -> OVERRULED  another machine was asked to take it since
 *                           -> OVER       HK_MOVES_OVER has passed, or hk_moves_end
 *
 * A request is a record of the log of events, which counts for HK_HOLDERS_WISH (durable/event_holders.h). Its reader may be
 * slower than that: so it is sent again every HK_MOVES_AGAIN, until the last one counts up to the end. It is not once the
 * partition came and could not be taken: meanwhile no other machine takes it.
 *
 * What was moved here is given away last when the machine has more than its share, and of that the latest move last of all: a
 * partition that came by a move and went at once, for one that had come by an earlier move, would be a move that nobody saw.
 *
 * Thread: any. */
#ifndef HK_CLUSTER_MOVES_H
#define HK_CLUSTER_MOVES_H

#include "daemon/bridge/engine.h"
#include "daemon/durable/event_holders.h"
#include "daemon/durable/event_shared.h"

#define HK_MOVES_OVER INT64_C(90000000000)  /* ns: as long as clients wait */
#define HK_MOVES_AGAIN INT64_C(10000000000) /* ns */

enum hk_move_state { HK_MOVE_NONE, HK_MOVE_WAITS, HK_MOVE_DONE, HK_MOVE_OVERRULED, HK_MOVE_OVER };

/* The last request for a partition. */
struct hk_move {
  enum hk_move_state state;
  int64_t asked;           /* ns, hk_now */
  int64_t sent;            /* ns: when the request was sent last */
  bool heard;              /* the log of events has it */
  bool here;               /* this machine has the partition, */
  int64_t came;            /* ns: when the partition came by a move; 0: it did not, or is not here */
  char why[HK_ENGINE_WHY]; /* why the partition could not be taken; "": that was not tried, or not in vain */
};

struct hk_moves;

int hk_moves_new(struct hk_moves **out, uint32_t partitions); /* 0 or -ENOMEM */
void hk_moves_free(struct hk_moves *moves);                   /* NULL is allowed */

/* A request is about to be sent. False: it is not to be, since the partition is here. */
bool hk_moves_ask(struct hk_moves *moves, uint32_t partition, int64_t now);
void hk_moves_withdraw(struct hk_moves *moves, uint32_t partition); /* it could not be sent */
/* No request waits any longer: each that did is withdrawn. */
void hk_moves_end(struct hk_moves *moves, struct hk_event_shared *log, const char *why);
bool hk_moves_wait(const struct hk_moves *moves); /* whether any request waits */
/* Goes on with a request that waits, if there is one. wish: of the partition. True: the request is to be sent again. */
bool hk_moves_turn(struct hk_moves *moves, uint32_t partition, enum hk_holders_wish wish, int64_t now);
/* The same for all partitions; sends what is to be sent. */
void hk_moves_send_again(struct hk_moves *moves, struct hk_event_shared *log, int64_t now);
void hk_moves_fail(struct hk_moves *moves, uint32_t partition, const char *why); /* the partition could not be taken */
/* The partition was taken. wished: its wish is this machine's. */
void hk_moves_take(struct hk_moves *moves, uint32_t partition, bool wished, int64_t now);
void hk_moves_leave(struct hk_moves *moves, uint32_t partition); /* it was given away, or lost */
/* Which of the partitions marked in `may`, one for each, is to be given away first; UINT32_MAX: none is marked. */
uint32_t hk_moves_shed(struct hk_moves *moves, const bool *may);
void hk_moves_look(struct hk_moves *moves, uint32_t partition, struct hk_move *out);

#endif
