/* Progress of long work: one line on the terminal, redrawn a few times a second; nothing where standard error is no
 * terminal, where the output itself goes to the same terminal, or in the first half second. Thread: the caller's. */
#ifndef HK_CLI_PROGRESS_H
#define HK_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct hk_progress {
  bool shown_at_all; /* there is a terminal to draw on */
  bool drawn;        /* a line stands there now */
  int64_t started, next;
};

/* prints: the command's output is standard output. */
struct hk_progress hk_progress_start(bool prints);
/* share: 0..1, negative when not known. */
void hk_progress_show(struct hk_progress *progress, double share, uint64_t points);
/* Wipes the line. */
void hk_progress_end(struct hk_progress *progress);

/* Monotonic clock, ns. */
int64_t hk_clock(void);

#endif
