/* Feeds lines of the line protocol by an inner connection (net/inner.h), and waits until the daemon says what became of them,
 * each point dealt with: with a journal, committed. Thread: a bridge's. */
#ifndef HK_FEED_LINES_H
#define HK_FEED_LINES_H

#include "daemon/net/inner.h"

#define HK_FEED_FAULTS 8u /* that are told */
#define HK_FEED_WHY 128

struct hk_lines_fed {
  uint64_t taken;            /* points */
  uint64_t refused, dropped; /* lines and points, as net/inner.h has it */
  uint32_t n;
  struct {
    uint64_t line; /* from 1 */
    char why[HK_FEED_WHY];
  } fault[HK_FEED_FAULTS];
};

/* 0; -EPIPE: the daemon ended it, and nobody knows how much was taken; or another negative errno: nothing was. */
int hk_feed_lines(struct hk_net *net, const struct hk_inner *inner, const char *lines, size_t size, struct hk_lines_fed *out);

#endif
