/* Lines on standard error. A line is written with one write, so that lines of two programs never mix. What cannot be written
 * is lost: a daemon must not fail for its log. */
#include "daemon/base/log.h"

#include "proto/wire/name.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STRETCH 10000000000 /* ns */
#define LINES_PEER 5
#define LINES_ALL 50
#define LINE_MAX_BYTES 1024

static const char *const names[] = {
  [HK_LOG_ERROR] = "error", [HK_LOG_WARNING] = "warning", [HK_LOG_NOTICE] = "notice",
  [HK_LOG_INFO] = "info",   [HK_LOG_DEBUG] = "debug",
};

static int64_t clock_ns(clockid_t id)
{
  struct timespec t;
  clock_gettime(id, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t hk_now(void)
{
  return clock_ns(CLOCK_MONOTONIC);
}

int64_t hk_wall(void)
{
  return clock_ns(CLOCK_REALTIME);
}

int64_t hk_wall_forward(int64_t *offset)
{
  const int64_t wall = hk_wall(), now = hk_now(); /* in this order: a delay in between cannot make `offset` too large */
  if (wall - now > *offset)
    *offset = wall - now;
  return now + *offset;
}

void hk_time_text(int64_t seconds, char out[HK_TIME_TEXT_MAX])
{
  const time_t time = (time_t)seconds;
  struct tm utc;
  if (!gmtime_r(&time, &utc) || strftime(out, HK_TIME_TEXT_MAX, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
    out[0] = 0; /* the year does not fit into an int */
}

void hk_log_init(struct hk_log *log, enum hk_level level)
{
  *log = (struct hk_log){ .level = level, .lock = PTHREAD_MUTEX_INITIALIZER };
  const char *stream = getenv("JOURNAL_STREAM");
  unsigned long long device, inode;
  struct stat status;
  if (stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &status) == 0)
    log->journal = status.st_dev == device && status.st_ino == inode;
  const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
  log->coloured = isatty(STDERR_FILENO) && !(no_colour && *no_colour) && terminal && strcmp(terminal, "dumb") != 0;
}

/* Writes the line, on which only printable characters and UTF-8 may stand: names of peers' making must not move the cursor, nor
 * turn the text around them. */
static void log_put(const char *line, size_t length, const char *colour)
{
  char out[4 * LINE_MAX_BYTES + 32]; /* two bytes become eight at the most */
  size_t size = (size_t)snprintf(out, 16, "%s", colour);
  for (size_t i = 0; i < length;) {
    uint32_t code;
    const size_t n = hk_text_character(line + i, length - i, &code);
    if (code == HK_SHOWN_AS_IT_IS) {
      memcpy(out + size, line + i, n);
      size += n;
    } else if (n == 1) {
      out[size++] = '?';
    } else {
      size += (size_t)snprintf(out + size, 9, "<U+%04X>", code);
    }
    i += n;
  }
  size += (size_t)snprintf(out + size, 8, "%s\n", *colour ? "\033[0m" : "");
  const ssize_t written = write(STDERR_FILENO, out, size);
  (void)written;
}

/* peer may be NULL. */
static void write_line(const struct hk_log *log, enum hk_level level, const char *peer, const char *format, va_list arguments)
{
  char line[LINE_MAX_BYTES + 1];
  char time[HK_TIME_TEXT_MAX];
  int at;
  if (log->journal) {
    at = snprintf(line, LINE_MAX_BYTES, "<%d>", level);
  } else {
    hk_time_text(hk_wall() / 1000000000, time);
    at = snprintf(line, LINE_MAX_BYTES, "%s hankeld: %s: ", time, names[level]);
  }
  if (peer)
    at += snprintf(line + at, (size_t)(LINE_MAX_BYTES - at), "%.128s: ", peer);
  const int more = vsnprintf(line + at, (size_t)(LINE_MAX_BYTES - at), format, arguments);
  at = more < 0 ? at : at + more < LINE_MAX_BYTES ? at + more : LINE_MAX_BYTES - 1;
  log_put(line, (size_t)at, !log->coloured ? "" : level <= HK_LOG_ERROR ? "\033[31m" : level == HK_LOG_WARNING ? "\033[33m" : "");
}

void hk_log(struct hk_log *log, enum hk_level level, const char *format, ...)
{
  if (level > log->level)
    return;
  va_list arguments;
  va_start(arguments, format);
  write_line(log, level, NULL, format, arguments);
  va_end(arguments);
}

/* Under the lock: takes a line off the quota; says how many were left out when a new stretch begins. */
static bool allowed(struct hk_log *log, struct hk_log_quota *quota, uint32_t lines, const char *whose, int64_t now)
{
  if (quota->since == 0 || now - quota->since >= STRETCH) {
    if (quota->left_out > 0)
      hk_log(log, HK_LOG_WARNING, "%s: %u more lines were left out", whose, quota->left_out);
    *quota = (struct hk_log_quota){ .since = now };
  }
  if (quota->lines >= lines) {
    quota->left_out++;
    return false;
  }
  quota->lines++;
  return true;
}

/* Writes a line of a quota; a peer's counts among those of all peers, too, and has its name in front. */
static void write_some(struct hk_log *log, struct hk_log_quota *quota, uint32_t lines, enum hk_level level, const char *whose,
                       bool peer, const char *format, va_list arguments)
{
  const int64_t now = hk_now();
  pthread_mutex_lock(&log->lock);
  const bool fine = allowed(log, quota, lines, whose, now) && (!peer || allowed(log, &log->peers, LINES_ALL, "all peers", now));
  pthread_mutex_unlock(&log->lock);
  if (fine)
    write_line(log, level, peer ? whose : NULL, format, arguments);
}

void hk_log_peer(struct hk_log *log, struct hk_log_quota *quota, enum hk_level level, const char *peer, const char *format, ...)
{
  if (level > log->level)
    return;
  va_list arguments;
  va_start(arguments, format);
  write_some(log, quota, LINES_PEER, level, peer, true, format, arguments);
  va_end(arguments);
}

void hk_log_some(struct hk_log *log, struct hk_log_quota *quota, uint32_t lines, enum hk_level level, const char *whose,
                 const char *format, ...)
{
  if (level > log->level)
    return;
  va_list arguments;
  va_start(arguments, format);
  write_some(log, quota, lines, level, whose, false, format, arguments);
  va_end(arguments);
}

/* Under the lock. True: a line more is left out, and counted. */
static bool spent(struct hk_log_quota *quota, uint32_t lines, int64_t now)
{
  const bool full = quota->lines >= lines && now - quota->since < STRETCH;
  quota->left_out += full;
  return full;
}

bool hk_log_spent(struct hk_log *log, struct hk_log_quota *quota, enum hk_level level)
{
  if (level > log->level)
    return true;
  const int64_t now = hk_now();
  pthread_mutex_lock(&log->lock);
  const bool left_out = spent(quota, LINES_PEER, now) || spent(&log->peers, LINES_ALL, now);
  pthread_mutex_unlock(&log->lock);
  return left_out;
}

bool hk_log_some_spent(struct hk_log *log, struct hk_log_quota *quota, uint32_t lines, enum hk_level level)
{
  if (level > log->level)
    return true;
  pthread_mutex_lock(&log->lock);
  const bool left_out = spent(quota, lines, hk_now());
  pthread_mutex_unlock(&log->lock);
  return left_out;
}

void hk_log_peer_gone(struct hk_log *log, struct hk_log_quota *quota, const char *peer)
{
  pthread_mutex_lock(&log->lock);
  if (quota->left_out > 0 && allowed(log, &log->peers, LINES_ALL, "all peers", hk_now()))
    hk_log(log, HK_LOG_WARNING, "%s: %u more lines were left out", peer, quota->left_out);
  quota->left_out = 0;
  pthread_mutex_unlock(&log->lock);
}

void hk_log_bare(const char *format, ...)
{
  char line[LINE_MAX_BYTES + 1];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, LINE_MAX_BYTES, format, arguments);
  va_end(arguments);
  if (length > 0)
    log_put(line, length < LINE_MAX_BYTES ? (size_t)length : LINE_MAX_BYTES - 1, "");
}
