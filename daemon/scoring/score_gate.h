/* Score gate: a snapshot of partitions that other scorers may go on with counts only once the log of scores has all results that
 * it includes. Otherwise the next holder, which begins behind them, would not compute them again, and if this one died, no other
 * machine would show them.
 *
 *     saver's thread:    all loops have published them -> ask -> passed? -> the files count
 *     cluster's thread:  asked -> the inner connection has brought what was published before -> the broker has it -> pass
 *
 * Snapshots do not wait for ever: while none has passed for HK_SCORE_GATE_WITHOUT, they count all the same, since they also limit
 * how much of the log of points, which is not kept for ever, the next scorer has to read again.
 *
 * Zero-initialise both structs. */
#ifndef HK_SCORE_GATE_H
#define HK_SCORE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HK_SCORE_GATE_WITHOUT INT64_C(600000000000) /* ns */

struct hk_score_gate {
  bool open; /* results are shared with other machines; else nothing is to wait */
  int fd;    /* eventfd: readable when something was asked */
  atomic_uint_fast64_t asked, passed;
};

/* The waiting of one saver. */
struct hk_score_wait {
  uint64_t asked; /* for its last snapshot */
  int64_t since;  /* ns: when it asked for the first of those that have not passed; 0: the last one has */
  bool without;   /* its snapshots count all the same */
};

/* Returns 0 or a negative errno. Thread: main, before others use it; as of close, which an unopened one allows. */
int hk_score_gate_open(struct hk_score_gate *gate);
void hk_score_gate_close(struct hk_score_gate *gate);

/* Asks for the results that were published before; returns a number for hk_score_gate_passed. Thread: any, both. */
uint64_t hk_score_gate_ask(struct hk_score_gate *gate);
bool hk_score_gate_passed(struct hk_score_gate *gate, uint64_t asked);

/* Asks for a snapshot; snapshots wait again if the one before has passed by now. now: ns, hk_now. Thread: the saver's, both. */
void hk_score_wait_begin(struct hk_score_wait *wait, struct hk_score_gate *gate, int64_t now);
/* Whether the snapshot counts: it has passed, or snapshots do not wait. */
bool hk_score_wait_over(struct hk_score_wait *wait, struct hk_score_gate *gate, int64_t now);

/* The last number that was asked for; 0: none that has not passed. Thread: the cluster's, as of the next one. */
uint64_t hk_score_gate_asked(struct hk_score_gate *gate);
/* The log has the results up to a number. */
void hk_score_gate_pass(struct hk_score_gate *gate, uint64_t number);

#endif
