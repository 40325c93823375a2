/* Sending, and setting aside what cannot be sent. */
#include "daemon/notify/receiver_send.h"

#include "daemon/durable/event_shared.h"
#include "daemon/notify/send.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND 1000000000ll
#define LONGEST_WAIT (60 * SECOND)
#define ASIDE_MOST (64ull << 20) /* bytes of the file of undelivered messages */
#define TURN (250 * 1000000ll)   /* ns */

/* Waits, and checks now and then whether the receiver is to stop. 0 or -ECANCELED. */
static int receiver_send_rest(struct hk_receiver *r, int64_t until)
{
  for (int64_t left = until - hk_now(); left > 0 && !atomic_load(&r->thread.quit); left = until - hk_now()) {
    const int64_t step = left < TURN ? left : TURN;
    const struct timespec t = { .tv_sec = 0, .tv_nsec = (long)step };
    (void)nanosleep(&t, NULL);
  }
  return atomic_load(&r->thread.quit) ? -ECANCELED : 0;
}

/* Limits messages to the rule's rate a minute, and bursts to a sixth of that. */
static int wait_for_rate(struct hk_receiver *r)
{
  const double most = fmax(1, r->rule.rate / 6.0), each = r->rule.rate / 60e9;
  for (;;) {
    const int64_t now = hk_now();
    r->pace.tokens = r->pace.refilled == 0 ? most : fmin(most, r->pace.tokens + (double)(now - r->pace.refilled) * each);
    r->pace.refilled = now;
    if (r->pace.tokens >= 1) {
      r->pace.tokens -= 1;
      return 0;
    }
    const int status = receiver_send_rest(r, now + (int64_t)((1 - r->pace.tokens) / each) + 1000000);
    if (status != 0)
      return status;
  }
}

static int receiver_send_append(int folder, const char *name, const struct hk_buffer *line)
{
  const int file = openat(folder, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0)
    return -errno;
  size_t done = 0;
  int status = lseek(file, 0, SEEK_END) + (off_t)line->size > (off_t)ASIDE_MOST ? -EFBIG : 0;
  while (status == 0 && done < line->size) {
    const ssize_t n = write(file, line->data + done, line->size - done);
    if (n < 0 && errno != EINTR)
      status = -errno;
    done += n > 0 ? (size_t)n : 0;
  }
  if (status == 0 && fdatasync(file) != 0)
    status = -errno;
  close(file);
  return status;
}

static void receiver_send_set_aside(struct hk_receiver *r, const struct hk_notify_message *m, const char *why)
{
  struct hk_buffer line = { 0 };
  char name[HK_CONFIG_NAME_MAX + 32], when[HK_TIME_TEXT_MAX];
  hk_time_text(hk_wall() / SECOND, when);
  snprintf(name, sizeof name, "notify-%s.undelivered", r->rule.name);
  hk_buffer_print(&line, "{\"time\":\"%s\",\"key\":\"%s\",\"events\":%u,\"why\":", when, m->key, m->events);
  hk_json_string(&line, why, strlen(why));
  hk_buffer_print(&line, ",\"message\":");
  hk_json_string(&line, m->body.data, m->body.size);
  hk_buffer_put(&line, "}\n", 2);
  const int status = line.failed              ? -ENOMEM
                     : r->durable->folder < 0 ? -ENOTDIR
                                              : receiver_send_append(r->durable->folder, name, &line);
  hk_buffer_free(&line);
  if (status != 0)
    hk_log(r->log, HK_LOG_ERROR, "[notify %s]: a message about %u events was not delivered (%s) and cannot be set aside: %s",
           r->rule.name, m->events, why, strerror(-status));
  else
    hk_log(r->log, HK_LOG_WARNING, "[notify %s]: a message about %u events was not delivered and is set aside in %s: %s",
           r->rule.name, m->events, name, why);
}

/* The result of an attempt, for the status; logs changes. */
static void receiver_send_note(struct hk_receiver *r, const struct hk_notify_message *m, enum hk_sent sent,
                               const struct hk_answer *a)
{
  pthread_mutex_lock(&r->lock);
  const bool before = r->look.failing;
  r->look.failing = sent != HK_SENT;
  r->look.answered = hk_wall();
  memcpy(r->look.answer, a->text, sizeof r->look.answer);
  r->look.messages += sent == HK_SENT;
  r->look.events += sent == HK_SENT ? m->events : 0;
  r->look.tries_failed += sent != HK_SENT;
  pthread_mutex_unlock(&r->lock);
  if (sent == HK_SENT_LATER && !before && !r->aside.now) {
    r->aside.warned = true;
    hk_log(r->log, HK_LOG_WARNING, "[notify %s]: a message cannot be delivered at the moment, and is retried: %s", r->rule.name,
           a->text);
  } else if (sent == HK_SENT && r->aside.warned) {
    r->aside.warned = false;
    hk_log(r->log, HK_LOG_NOTICE, "[notify %s]: messages are delivered again", r->rule.name);
  }
}

static void receiver_send_give_up(struct hk_receiver *r, const struct hk_notify_message *m, const char *why)
{
  receiver_send_set_aside(r, m, why);
  r->aside.warned = true;
  pthread_mutex_lock(&r->lock);
  r->look.given_up += m->events;
  pthread_mutex_unlock(&r->lock);
}

int hk_receiver_deliver(struct hk_receiver *r, struct hk_notify_message *m, int64_t *retry_after)
{
  const int64_t begun = hk_now();
  int64_t wait = SECOND;
  struct hk_answer a;
  for (;;) {
    if (wait_for_rate(r) != 0 || (hk_eventlog_shared(r->events) && !hk_shared_leads(hk_eventlog_shared(r->events))))
      return -ECANCELED;
    const enum hk_sent sent = hk_sender_send(r->sender, &r->rule, m, &a);
    if (sent != HK_SENT && atomic_load(&r->thread.quit))
      return -ECANCELED;
    receiver_send_note(r, m, sent, &a);
    *retry_after = a.retry_after;
    if (sent == HK_SENT)
      return 0;
    if (sent == HK_SENT_NEVER || r->aside.now || hk_now() - begun >= r->rule.give_up) {
      if (!r->aside.now) /* it is in the file already */
        receiver_send_give_up(r, m, a.text);
      return sent == HK_SENT_NEVER ? -EPERM : -ETIMEDOUT;
    }
    const int64_t jittered = wait / 2 + (int64_t)(erand48(r->pace.seed) * (double)wait);
    if (receiver_send_rest(r, hk_now() + (a.retry_after > 0 ? a.retry_after : jittered)) != 0)
      return -ECANCELED;
    wait = 2 * wait < LONGEST_WAIT ? 2 * wait : LONGEST_WAIT;
  }
}
