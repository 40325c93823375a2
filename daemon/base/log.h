/* Log: lines on standard error, for a terminal or the journal.
 *
 * A line is `hankeld: LEVEL: MESSAGE`, or `<N>MESSAGE` when standard error is the journal (systemd tells by $JOURNAL_STREAM).
 * Two kinds of lines are bare in both cases, because programs read them:
 *     listening PROTOCOL TRANSPORT ADDRESS:PORT      for each listener, with the port actually bound
 *     ready                                          the daemon serves
 *
 * Lines that peers cause go through hk_log_peer, which limits them for each peer and for all peers together, per ten seconds; it
 * counts the omitted lines and logs their number. Thread: any. */
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

/* Limit of lines per period. Zero-initialise. */
struct hk_log_quota {
  int64_t since; /* ns, monotonic: start of the present period */
  uint32_t lines;
  uint32_t left_out;
};

struct hk_log {
  atomic_uint level;         /* enum hk_level: lines of a higher level are not written */
  bool journal;              /* standard error is the journal, which adds times and levels */
  bool coloured;             /* standard error is a terminal with colours */
  pthread_mutex_t lock;      /* protects all quotas */
  struct hk_log_quota peers; /* of all peers together */
};

void hk_log_init(struct hk_log *log, enum hk_level level);

void hk_log(struct hk_log *log, enum hk_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Writes a line that a peer caused: `PEER: MESSAGE`. quota: the peer's. */
void hk_log_peer(struct hk_log *log, struct hk_log_quota *quota, enum hk_level level, const char *peer, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Writes at most `lines` lines of a kind per period. whose: the beginning of the message about omitted lines. */
void hk_log_some(struct hk_log *log, struct hk_log_quota *quota, uint32_t lines, enum hk_level level, const char *whose,
                 const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Whether a line would be omitted; if so, counts it. To ask before formatting an expensive message. */
bool hk_log_spent(struct hk_log *log, struct hk_log_quota *quota, enum hk_level level);
/* The same of a line for hk_log_some. */
bool hk_log_some_spent(struct hk_log *log, struct hk_log_quota *quota, uint32_t lines, enum hk_level level);

/* At the end of a peer: logs how many of its lines were omitted. */
void hk_log_peer_gone(struct hk_log *log, struct hk_log_quota *quota, const char *peer);

/* Writes a line without level, for programs. */
void hk_log_bare(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Monotonic clock, ns. */
int64_t hk_now(void);
/* Wall clock, ns since the epoch. */
int64_t hk_wall(void);
/* The wall clock, which continues from the later time if it is set back. offset: ns, the caller's, 0 at first: the most by which
 * it was ahead of the monotonic clock. */
int64_t hk_wall_forward(int64_t *offset);
#define HK_TIME_TEXT_MAX 40
/* Formats seconds since the epoch in UTC, as "2026-01-31T12:00:00Z". Thread: any. */
void hk_time_text(int64_t seconds, char out[HK_TIME_TEXT_MAX]);

#endif
