/* The loop of a receiver's thread. */
#include "daemon/notify/receiver.h"

#include "cpu/monotonic.h"
#include "daemon/base/thread.h"
#include "daemon/durable/event_shared.h"
#include "daemon/notify/receiver_aside.h"
#include "daemon/notify/receiver_batch.h"
#include "daemon/notify/receiver_tell.h"
#include "daemon/notify/send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define SECOND 1000000000ll
#define TURN (SECOND / 4)
#define SHARE 10    /* s that a place gets to be in a shared log */
#define SELDOM 1024 /* positions between two places in a shared log, which has a position itself, while nothing is sent */

/* Of a cluster: appends it to the shared log, where the next leader finds it, and waits until it is read back from there: then no
 * other machine led before it. */
static int share_place(struct hk_receiver *r)
{
  const struct timespec moment = { 0, 1000000 };
  const int64_t until = hk_now() + SHARE * SECOND;
  struct hk_place there;
  if (hk_shared_append_place(hk_eventlog_shared(r->events), r->rule.name, &r->place) == 0)
    return -ENOMEM;
  while (!hk_shared_place(hk_eventlog_shared(r->events), r->rule.name, &there) || memcmp(&there, &r->place, sizeof there) != 0) {
    if (hk_now() > until || atomic_load(&r->thread.stop) || !hk_shared_leads(hk_eventlog_shared(r->events)))
      return hk_shared_leads(hk_eventlog_shared(r->events)) ? -ETIMEDOUT : -ECANCELED;
    (void)nanosleep(&moment, NULL);
  }
  r->shared = r->place.position;
  return 0;
}

static int receiver_write_place(struct hk_receiver *r)
{
  const int status = hk_eventlog_shared(r->events)
                         ? share_place(r)
                         : hk_place_write(&r->durable->disk, r->durable->folder, "notify", r->rule.name, &r->place);
  if (status != 0 && status != -ECANCELED)
    hk_log(r->log, HK_LOG_WARNING, "[notify %s]: its position in the event log cannot be written: %s; messages may be sent twice",
           r->rule.name, strerror(-status));
  pthread_mutex_lock(&r->lock);
  r->look.position = r->place.position;
  pthread_mutex_unlock(&r->lock);
  return status;
}

static void receiver_read_place(struct hk_receiver *r)
{
  const uint64_t last = hk_eventlog_shown(r->events);
  const bool shared = hk_eventlog_shared(r->events);
  const int status = !shared ? hk_place_read(&r->durable->disk, r->durable->folder, "notify", r->rule.name, &r->place)
                     : hk_shared_place(hk_eventlog_shared(r->events), r->rule.name, &r->place) ? 0
                                                                                               : -ENOENT;
  if (status == 0 && r->place.position <= last) {
    r->place.until = r->place.until <= last ? r->place.until : last;
    r->shared = r->place.position;
    if (shared)
      return;
  } else {
    if (status != -ENOENT)
      hk_log(r->log, HK_LOG_WARNING, "[notify %s]: its position in the event log is unknown (%s): it begins with new alerts",
             r->rule.name, status == 0 ? "it is beyond the end of the event log, which was replaced" : strerror(-status));
    r->place = (struct hk_place){ .position = last, .until = last };
    if (getrandom(&r->place.id, sizeof r->place.id, 0) != (ssize_t)sizeof r->place.id)
      r->place.id = (uint64_t)hk_wall();
  }
  (void)receiver_write_place(r);
}

/* Warns of a secret's file that others can access; a missing file is reported when it is needed. */
static void look_at_secret(const struct hk_receiver *r)
{
  struct stat s;
  if (r->rule.secret[0] && stat(r->rule.secret, &s) == 0 && (s.st_mode & (S_IROTH | S_IWOTH)))
    hk_log(r->log, HK_LOG_WARNING,
           "[notify %s]: every user of this machine can access secret_file %s (mode %03o): run chmod o-rw on it, and replace the "
           "secret",
           r->rule.name, r->rule.secret, (unsigned)(s.st_mode & 0777));
}

/* Takes the latest rule. */
static void receiver_adopt(struct hk_receiver *r)
{
  pthread_mutex_lock(&r->lock);
  const bool changed = r->given.changed;
  r->given.changed = false;
  if (changed) {
    struct hk_sections *before = r->machines;
    r->rule = r->given.rule;
    r->machines = r->given.machines;
    r->given.machines = NULL;
    hk_sections_release(before);
  }
  if (!atomic_load(&r->thread.stop))
    atomic_store(&r->thread.quit, false);
  pthread_mutex_unlock(&r->lock);
  if (!changed)
    return;
  struct hk_glob *glob;
  if (hk_glob_new(&glob, r->rule.match, strlen(r->rule.match)) == 0) { /* without memory the previous one stays */
    hk_glob_free(r->glob);
    r->glob = glob;
  }
  hk_glob_free(r->sections);
  r->sections = NULL;
  if (r->rule.about.section[0] && hk_glob_new(&r->sections, r->rule.about.section, strlen(r->rule.about.section)) != 0)
    hk_log(r->log, HK_LOG_WARNING, "[notify %s]: no memory for `section`: it gets the incidents of all sections", r->rule.name);
  hk_told_close(&r->alerts.of_incidents);
  if (r->rule.about.incidents && r->rule.type == HK_NOTIFY_PAGERDUTY && hk_told_open(&r->alerts.of_incidents) != 0)
    hk_log(r->log, HK_LOG_WARNING, "[notify %s]: no memory to follow which incidents are acknowledged", r->rule.name);
  look_at_secret(r);
  r->pace.refilled = 0;
  r->repeat.last = hk_now();
  r->remembers = false;
  hk_aside_renew(r);
}

/* Whether it may send: in a cluster, whether this machine leads. */
static bool may_send(struct hk_receiver *r)
{
  if (!r->glob)
    return false;
  if (hk_eventlog_shared(r->events) && !hk_shared_leads(hk_eventlog_shared(r->events))) {
    r->place.id = 0; /* the next leader's place counts */
    pthread_mutex_lock(&r->lock);
    r->look.rests = true;
    r->look.waiting = 0;
    pthread_mutex_unlock(&r->lock);
    return false;
  }
  const bool new = r->place.id == 0;
  if (new)
    receiver_read_place(r);
  if (new || !r->remembers)
    hk_receiver_remember(r);
  if (new)
    hk_aside_read(r);
  r->remembers = true;
  pthread_mutex_lock(&r->lock);
  r->look.rests = false;
  pthread_mutex_unlock(&r->lock);
  return true;
}

/* The position of the log `after` ago. */
static uint64_t ripe(struct hk_receiver *r, int64_t now)
{
  const uint64_t shown = hk_eventlog_shown(r->events);
  const int64_t step = r->rule.after / (int64_t)(HK_MOMENTS / 2);
  if (r->rule.after == 0)
    return shown;
  if (r->past.n == 0 || now - r->past.moment[(r->past.n - 1) % HK_MOMENTS].time >= step) {
    r->past.moment[r->past.n % HK_MOMENTS].shown = shown;
    r->past.moment[r->past.n++ % HK_MOMENTS].time = now;
  }
  uint64_t best = 0;
  for (uint64_t i = r->past.n < HK_MOMENTS ? 0 : r->past.n - HK_MOMENTS; i < r->past.n; i++)
    if (now - r->past.moment[i % HK_MOMENTS].time >= r->rule.after)
      best = r->past.moment[i % HK_MOMENTS].shown;
  return best;
}

static int before(const void *a, const void *b)
{
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Sends alerts again that stand and that nobody has acknowledged. */
static void tell_standing(struct hk_receiver *r)
{
  uint64_t *position = malloc((r->alerts.told.n + 1) * sizeof *position);
  uint32_t n = 0;
  int status = 0;
  for (uint32_t i = 0; position && i < 2 * HK_TOLD_MOST; i++) {
    const struct hk_told_place *one = &r->alerts.told.place[i];
    if (one->key != 0 && one->position != 0)
      position[n++] = one->position;
  }
  if (n > 0) {
    qsort(position, n, sizeof *position, before);
    r->repeat.times = (uint64_t)(hk_wall() / SECOND); /* different from those of earlier runs */
  }
  for (uint32_t i = 0; i < n && status == 0; i += HK_BATCH)
    if (hk_receiver_again(r, position + i, n - i < HK_BATCH ? n - i : HK_BATCH) > 0)
      status = hk_receiver_tell_batch(r, true);
  free(position);
}

/* Repeats standing alerts. */
static void repeat(struct hk_receiver *r, int64_t now)
{
  if (r->rule.repeat == 0 || now - r->repeat.last < r->rule.repeat || (r->quiet && hk_notify_for_people(&r->rule)))
    return;
  r->repeat.last = now;
  tell_standing(r);
}

/* After quiet hours, sends held alerts that still stand. */
static void tell_held(struct hk_receiver *r)
{
  const uint64_t next = hk_receiver_choose_held(r);
  if (r->batch.n > 0) {
    hk_log(r->log, HK_LOG_NOTICE, "[notify %s]: the quiet hours are over: sending %u alerts that were held back and still stand",
           r->rule.name, r->batch.n);
    if (hk_receiver_tell_batch(r, false) != 0) {
      hk_receiver_remember(r); /* as if it had not begun */
      return;
    }
  }
  r->place.held = next > r->place.position ? 0 : next;
  (void)receiver_write_place(r);
}

/* Sends what was set aside and is due, until an attempt fails or new events wait. The batch is free. */
static void tell_aside(struct hk_receiver *r)
{
  uint64_t *position = r->aside.n > 0 ? malloc(HK_BATCH * sizeof *position) : NULL;
  uint64_t told = 0;
  if (position && !atomic_load(&r->thread.quit)) /* otherwise what it remembers may not be complete */
    hk_aside_prune(r);
  r->aside.failed = false;
  while (position && !r->aside.failed && !atomic_load(&r->thread.quit)) {
    const uint64_t messages = r->look.messages;
    const uint32_t n = hk_aside_choose(r, hk_now(), position);
    if (n == 0)
      break;
    if (hk_receiver_again(r, position, n) < n)
      hk_aside_drop(r, position, n, true);
    r->aside.now = true;
    const int status = r->batch.n > 0 ? hk_receiver_tell_batch(r, true) : 0;
    r->aside.now = false;
    if (status != 0) /* it is to stop: as if it had not been tried */
      break;
    if (!r->aside.failed) /* also what needs no message, as a pager's end while others stand */
      hk_aside_drop(r, position, n, false);
    told += r->look.messages - messages;
    if (hk_eventlog_shown(r->events) > r->place.position)
      break;
  }
  free(position);
  if (told > 0 && r->aside.n == 0)
    hk_log(r->log, HK_LOG_NOTICE, "[notify %s]: all alerts that were set aside and still stand are delivered", r->rule.name);
}

/* Whether events of the log are due; *last: the position up to which. */
static bool receiver_is_due(struct hk_receiver *r, int64_t now, uint64_t *last)
{
  const bool unfinished = r->place.until > r->place.position; /* of the previous run, or aborted */
  *last = unfinished ? r->place.until : ripe(r, now);
  const bool quiet = hk_notify_quiet_at(&r->rule.quiet, hk_wall());
  pthread_mutex_lock(&r->lock);
  r->look.waiting = hk_eventlog_shown(r->events) - r->place.position;
  r->look.quiet = r->quiet = quiet;
  pthread_mutex_unlock(&r->lock);
  if (*last <= r->place.position) {
    r->past.waiting = 0;
    return false;
  }
  if (r->past.waiting == 0)
    r->past.waiting = now;
  return unfinished || now - r->past.waiting >= r->rule.gather;
}

/* Sends what is due. */
static void receiver_turn(struct hk_receiver *r)
{
  const int64_t now = hk_now();
  uint64_t last;
  const bool due = receiver_is_due(r, now, &last);
  if (!r->quiet && r->place.held != 0) {
    tell_held(r);
    return;
  }
  if (!due) {
    if (last <= r->place.position)
      repeat(r, now);
    tell_aside(r);
    return;
  }
  const uint64_t held = r->place.held;
  hk_receiver_choose(r, last);
  if (r->batch.n > 0 || r->place.held != held) {
    const int shared = receiver_write_place(r);
    if (shared != 0 && hk_eventlog_shared(r->events)) { /* another machine may lead */
      r->remembers = false;
      return;
    }
    if (r->batch.n > 0 && hk_receiver_tell_batch(r, false) != 0) {
      hk_receiver_remember(r); /* as if it had not begun */
      return;
    }
  }
  const bool nothing = r->batch.n == 0 && r->place.held == held;
  r->place.position = r->place.until;
  if (!nothing || !hk_eventlog_shared(r->events) || r->place.position - r->shared >= SELDOM)
    (void)receiver_write_place(r);
  if (r->place.position >= hk_eventlog_shown(r->events))
    r->past.waiting = 0;
  tell_aside(r);
}

static void *receiver_run(void *arg)
{
  struct hk_receiver *r = arg;
  hk_thread_name("notify", 0);
  while (!atomic_load(&r->thread.stop)) {
    receiver_adopt(r);
    if (may_send(r))
      receiver_turn(r);
    const struct timespec until = hk_monotonic_limit(TURN);
    pthread_mutex_lock(&r->lock);
    if (!r->given.changed && !atomic_load(&r->thread.stop))
      pthread_cond_timedwait(&r->woken, &r->lock, &until);
    pthread_mutex_unlock(&r->lock);
  }
  return NULL;
}

int hk_receiver_start(struct hk_receiver *r)
{
  r->given.changed = true;
  (void)!getrandom(r->pace.seed, sizeof r->pace.seed, 0);
  memcpy(r->look.name, r->given.rule.name, sizeof r->look.name);
  r->look.type = r->given.rule.type;
  pthread_mutex_init(&r->lock, NULL);
  hk_monotonic_condition(&r->woken);
  r->batch.notice = calloc(HK_BATCH, sizeof *r->batch.notice);
  r->batch.chosen = calloc(HK_BATCH, sizeof *r->batch.chosen);
  int status =
      r->batch.notice && r->batch.chosen && hk_buffer_room(&r->batch.names, (size_t)HK_BATCH * HK_NAME_MAX) ? 0 : -ENOMEM;
  if (status == 0)
    status = hk_told_open(&r->alerts.told);
  if (status == 0)
    status = hk_told_open(&r->alerts.ended);
  if (status == 0)
    status = hk_sender_new(&r->sender, &r->thread.quit);
  if (status == 0)
    status = -pthread_create(&r->thread.id, NULL, receiver_run, r);
  r->thread.running = status == 0;
  return status;
}

void hk_receiver_take(struct hk_receiver *r, const struct hk_notify_rule *rule, struct hk_sections *machines)
{
  pthread_mutex_lock(&r->lock);
  if (machines || memcmp(&r->given.rule, rule, sizeof *rule) != 0) {
    r->given.rule = *rule;
    hk_sections_release(r->given.machines);
    r->given.machines = machines ? hk_sections_hold(machines) : NULL;
    r->given.changed = true;
    r->look.type = rule->type;
    atomic_store(&r->thread.quit, true);
    pthread_cond_signal(&r->woken);
  }
  pthread_mutex_unlock(&r->lock);
}

bool hk_receiver_stop(struct hk_receiver *r, unsigned seconds)
{
  if (!r->thread.running)
    return true;
  pthread_mutex_lock(&r->lock);
  atomic_store(&r->thread.stop, true);
  atomic_store(&r->thread.quit, true);
  pthread_cond_signal(&r->woken);
  pthread_mutex_unlock(&r->lock);
  r->thread.running = !(seconds > 0 ? hk_thread_join(r->thread.id, seconds) : pthread_tryjoin_np(r->thread.id, NULL) == 0);
  return !r->thread.running;
}

void hk_receiver_close(struct hk_receiver *r)
{
  hk_sender_free(r->sender);
  hk_glob_free(r->glob);
  hk_glob_free(r->sections);
  hk_sections_release(r->given.machines);
  hk_sections_release(r->machines);
  hk_told_close(&r->alerts.told);
  hk_told_close(&r->alerts.ended);
  hk_told_close(&r->alerts.of_incidents);
  hk_buffer_free(&r->batch.names);
  hk_buffer_free(&r->batch.texts);
  free(r->aside.entry);
  free(r->batch.notice);
  free(r->batch.chosen);
  pthread_cond_destroy(&r->woken);
  pthread_mutex_destroy(&r->lock);
}
