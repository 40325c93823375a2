/* Progress on a terminal. */
#include "daemon/cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST 500000000 /* ns before the first drawing, and between two */
#define EVERY 200000000
#define BAR 30

int64_t hk_clock(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct hk_progress hk_progress_start(bool prints)
{
  struct hk_progress progress = { 0 };
  progress.shown_at_all = isatty(STDERR_FILENO) && !(prints && isatty(STDOUT_FILENO));
  progress.started = hk_clock();
  progress.next = progress.started + FIRST;
  return progress;
}

void hk_progress_show(struct hk_progress *progress, double share, uint64_t points)
{
  if (!progress->shown_at_all)
    return;
  const int64_t now = hk_clock();
  if (now < progress->next)
    return;
  progress->next = now + EVERY;
  progress->drawn = true;
  const double rate = (double)points * 1e9 / (double)(now - progress->started);
  fprintf(stderr, "\r\033[K");
  if (share >= 0) {
    char bar[BAR + 1];
    memset(bar, ' ', BAR);
    memset(bar, '#', (size_t)(BAR * (share < 1 ? share : 1)));
    bar[BAR] = 0;
    fprintf(stderr, "[%s] %3.0f %%  ", bar, 100 * share);
  }
  fprintf(stderr, "%" PRIu64 " points, %.0f a second", points, rate);
  fflush(stderr);
}

void hk_progress_end(struct hk_progress *progress)
{
  if (progress->drawn)
    fprintf(stderr, "\r\033[K");
  progress->drawn = false;
}
