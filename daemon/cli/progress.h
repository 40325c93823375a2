/* Shows progress in a line on the terminal, redrawn several times a second. Shows nothing if standard error is not a terminal, if
 * the output goes to the same terminal, or in the first half second. Thread: the caller's. */
#ifndef HK_CLI_PROGRESS_H
#define HK_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct hk_progress_line {
  bool shown_at_all;     /* there is a terminal to draw on */
  bool drawn;            /* a line is shown now */
  int64_t started, next; /* ns, monotonic clock */
};

/* prints: the command writes to standard output. */
struct hk_progress_line hk_progress_start(bool prints);
/* share: 0..1; negative: unknown. */
void hk_progress_show(struct hk_progress_line *progress, double share, uint64_t points);
/* Clears the line. */
void hk_progress_end(struct hk_progress_line *progress);

#endif
