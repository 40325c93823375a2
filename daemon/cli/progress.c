/* Shows progress on a terminal: one line, never wider than the terminal, because a wrapped line could not be overwritten. */
#include "daemon/cli/progress.h"

#include "cpu/monotonic.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FIRST 500000000 /* ns before the first drawing, and between two */
#define EVERY 200000000
#define BAR 30

static int columns(void)
{
  struct winsize size;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

struct hk_progress_line hk_progress_start(bool prints)
{
  struct hk_progress_line progress = { 0 };
  progress.shown_at_all = isatty(STDERR_FILENO) && !(prints && isatty(STDOUT_FILENO));
  progress.started = hk_monotonic();
  progress.next = progress.started + FIRST;
  return progress;
}

void hk_progress_show(struct hk_progress_line *progress, double share, uint64_t points)
{
  if (!progress->shown_at_all)
    return;
  const int64_t now = hk_monotonic();
  if (now < progress->next)
    return;
  progress->next = now + EVERY;
  progress->drawn = true;
  const double rate = (double)points * 1e9 / (double)(now - progress->started);
  char line[160];
  int at = 0;
  if (share >= 0) {
    char bar[BAR + 1];
    memset(bar, ' ', BAR);
    memset(bar, '#', (size_t)(BAR * (share < 1 ? share : 1)));
    bar[BAR] = 0;
    at = snprintf(line, sizeof line, "[%s] %3.0f %%  ", bar, 100 * share);
  }
  snprintf(line + at, sizeof line - (size_t)at, "%" PRIu64 " points, %.0f a second", points, rate);
  fprintf(stderr, "\r\033[K%.*s", columns() - 1, line);
  fflush(stderr);
}

void hk_progress_end(struct hk_progress_line *progress)
{
  if (progress->drawn)
    fprintf(stderr, "\r\033[K");
  progress->drawn = false;
}
