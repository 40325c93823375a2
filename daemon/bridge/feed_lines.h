/* Feeds lines of the line protocol over an inner connection (net/inner.h), and waits until the daemon has processed each point
 * (with a journal: committed it) and reports the counts. Thread: a bridge's. */
#ifndef HK_FEED_LINES_H
#define HK_FEED_LINES_H

#include "daemon/net/inner.h"

#define HK_FEED_FAULTS 8u /* maximum number of reported faults */
#define HK_FEED_WHY 128

struct hk_lines_fed {
  uint64_t taken;            /* points */
  uint64_t refused, dropped; /* lines and points, as in net/inner.h */
  uint32_t n;
  struct {
    uint64_t line; /* from 1 */
    char why[HK_FEED_WHY];
  } fault[HK_FEED_FAULTS];
};

/* Returns 0; -EPIPE: the daemon closed the connection, and it is unknown how much was taken; another negative errno: nothing was
 * taken. */
int hk_feed_lines(struct hk_net *net, const struct hk_inner *inner, const char *lines, size_t size, struct hk_lines_fed *out);

#endif
