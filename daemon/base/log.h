/* Log: lines on standard error, for people at a terminal or for the journal.
 *
 * A line is `hankeld: LEVEL: MESSAGE`, or `<N>MESSAGE` when standard error is the journal (systemd tells by $JOURNAL_STREAM).
 * Two kinds of lines are bare in both cases, because programs read them:
 *     listening PROTOCOL TRANSPORT ADDRESS:PORT      once for each listener, the port being the one that was really taken
 *     ready                                          the daemon serves
 *
 * What peers cause goes through hk_log_peer: a few lines for each peer and a few more for all peers together in ten seconds;
 * the rest is counted and the count logged, so that a flood of faults is no flood of lines. Thread: any. */
#ifndef HK_LOG_H
#define HK_LOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum hk_level {
  HK_LOG_ERROR = 3,
  HK_LOG_WARNING = 4,
  HK_LOG_NOTICE = 5,
  HK_LOG_INFO = 6,
  HK_LOG_DEBUG = 7
}; /* as syslog numbers them */

/* Lines allowed in a stretch of time; all zero at the start. */
struct hk_log_quota {
  int64_t since; /* ns, monotonic: start of the present stretch */
  uint32_t lines;
  uint32_t left_out;
};

struct hk_log {
  atomic_uint level;         /* enum hk_level: lines beyond it are not written */
  bool journal;              /* standard error is the journal's, which knows times and levels */
  bool coloured;             /* it is a terminal that shows colours */
  pthread_mutex_t lock;      /* of all quotas */
  struct hk_log_quota peers; /* of all peers together */
};

void hk_log_init(struct hk_log *log, enum hk_level level);

void hk_log(struct hk_log *log, enum hk_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A line that a peer caused: `PEER: MESSAGE`. quota: the peer's own. */
void hk_log_peer(struct hk_log *log, struct hk_log_quota *quota, enum hk_level level, const char *peer, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Of one kind of lines, at most so many in a stretch; whose: what the message about those that were left out begins with. */
void hk_log_some(struct hk_log *log, struct hk_log_quota *quota, uint32_t lines, enum hk_level level, const char *whose,
                 const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Whether such a line is left out: to be asked before it costs something to put it into words. It is counted then. */
bool hk_log_spent(struct hk_log *log, struct hk_log_quota *quota, enum hk_level level);

/* The peer is gone: says how many of its lines were left out. */
void hk_log_peer_gone(struct hk_log *log, struct hk_log_quota *quota, const char *peer);

/* A bare line. */
void hk_log_bare(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Monotonic clock, ns. */
int64_t hk_now(void);
/* Wall clock, ns since the epoch. */
int64_t hk_wall(void);
#define HK_TIME_TEXT_MAX 40
/* Seconds since the epoch in UTC, as "2026-01-31T12:00:00Z". Thread: any. */
void hk_time_text(int64_t seconds, char out[HK_TIME_TEXT_MAX]);

#endif
