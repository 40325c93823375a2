/* The turns of a receiver. */
#include "daemon/notify/receiver.h"

#include "daemon/base/thread.h"
#include "daemon/notify/receiver_batch.h"
#include "daemon/notify/receiver_send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define SECOND 1000000000ll
#define TURN_MS 250
#define PREFIXES 10 /* messages about prefixes or sensors of one batch; with more of them there is one message about all */

static int write_place(struct hk_receiver *r)
{
  const int status = hk_place_write(&r->durable->disk, r->durable->folder, "notify", r->rule.name, &r->place);
  if (status != 0)
    hk_log(r->log, HK_LOG_WARNING,
           "[notify %s]: its place in the event log cannot be written: %s; what is sent may be sent again", r->rule.name,
           strerror(-status));
  pthread_mutex_lock(&r->lock);
  r->look.position = r->place.position;
  pthread_mutex_unlock(&r->lock);
  return status;
}

static void read_place(struct hk_receiver *r)
{
  const uint64_t last = hk_eventlog_shown(r->durable->events);
  const int status = hk_place_read(&r->durable->disk, r->durable->folder, "notify", r->rule.name, &r->place);
  if (status == 0 && r->place.position <= last) {
    r->place.until = r->place.until <= last ? r->place.until : last;
  } else {
    if (status != -ENOENT)
      hk_log(r->log, HK_LOG_WARNING, "[notify %s]: its place is not known (%s): it begins with the alerts from now on",
             r->rule.name, status == 0 ? "it lies beyond the end of the event log, which is another one" : strerror(-status));
    r->place = (struct hk_place){ .position = last, .until = last };
    if (getrandom(&r->place.id, sizeof r->place.id, 0) != (ssize_t)sizeof r->place.id)
      r->place.id = (uint64_t)hk_wall();
  }
  (void)write_place(r);
}

/* What an operator should know of the file that the secret is in; one that is not there is told when it is needed. */
static void look_at_secret(const struct hk_receiver *r)
{
  struct stat s;
  if (r->rule.secret[0] && stat(r->rule.secret, &s) == 0 && (s.st_mode & (S_IROTH | S_IWOTH)))
    hk_log(
        r->log, HK_LOG_WARNING,
        "[notify %s]: secret_file %s is open to everybody on this machine (mode %03o): chmod o-rw it, and have a new secret made",
        r->rule.name, r->rule.secret, (unsigned)(s.st_mode & 0777));
}

/* Takes the rule that was given last. */
static void adopt(struct hk_receiver *r)
{
  pthread_mutex_lock(&r->lock);
  const bool changed = r->changed;
  r->changed = false;
  if (changed)
    r->rule = r->next;
  if (!atomic_load(&r->stop))
    atomic_store(&r->quit, false);
  pthread_mutex_unlock(&r->lock);
  if (!changed)
    return;
  struct hk_glob *glob;
  if (hk_glob_new(&glob, r->rule.match, strlen(r->rule.match)) == 0) { /* else the one before stays */
    hk_glob_free(r->glob);
    r->glob = glob;
  }
  look_at_secret(r);
  r->refilled = 0;
  r->repeated = hk_now();
  if (r->place.id == 0)
    read_place(r);
  if (r->glob)
    hk_receiver_remember(r);
}

/* How far the log was `after` ago. */
static uint64_t ripe(struct hk_receiver *r, int64_t now)
{
  const uint64_t shown = hk_eventlog_shown(r->durable->events);
  const int64_t step = r->rule.after / (int64_t)(HK_MOMENTS / 2);
  if (r->rule.after == 0)
    return shown;
  if (r->moments == 0 || now - r->moment[(r->moments - 1) % HK_MOMENTS].time >= step) {
    r->moment[r->moments % HK_MOMENTS].shown = shown;
    r->moment[r->moments++ % HK_MOMENTS].time = now;
  }
  uint64_t best = 0;
  for (uint64_t i = r->moments < HK_MOMENTS ? 0 : r->moments - HK_MOMENTS; i < r->moments; i++)
    if (now - r->moment[i % HK_MOMENTS].time >= r->rule.after)
      best = r->moment[i % HK_MOMENTS].shown;
  return best;
}

/* One message about some of the batch. */
static int tell(struct hk_receiver *r, uint32_t n, const char *prefix, bool again)
{
  struct hk_message m = { 0 };
  const struct hk_told_of what = {
    .notice = r->chosen, .n = n, .prefix = prefix, .id = r->place.id, .again = again ? r->again : 0, .now = hk_wall()
  };
  int status;
  while ((status = hk_message_make(&m, &r->rule, &what)) == -ENOMEM && !atomic_load(&r->quit)) { /* later there may be some */
    const struct timespec second = { 1, 0 };
    hk_buffer_free(&m.body);
    m = (struct hk_message){ 0 };
    (void)nanosleep(&second, NULL);
  }
  if (status == 0)
    status = hk_receiver_deliver(r, &m);
  hk_buffer_free(&m.body);
  return status;
}

/* What messages are made by: the length of the name that those of one message share. */
static size_t shared(const struct hk_receiver *r, struct hk_string name)
{
  return r->rule.group == HK_NOTIFY_SENSOR || r->rule.incidents ? name.length : hk_message_prefix(name);
}

static bool same_group(const struct hk_receiver *r, const struct hk_notice *a, const struct hk_notice *b)
{
  const size_t x = shared(r, a->logged.name), y = shared(r, b->logged.name);
  return x == y && memcmp(a->logged.name.data, b->logged.name.data, x) == 0;
}

/* The first event of each group in the batch; more than PREFIXES: there are more. */
static uint32_t groups_of(const struct hk_receiver *r, uint32_t first[PREFIXES + 1])
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->n && n <= PREFIXES; i++) {
    bool known = false;
    for (uint32_t k = 0; k < n && !known; k++)
      known = same_group(r, &r->batch[first[k]], &r->batch[i]);
    if (!known)
      first[n++] = i;
  }
  return n;
}

static int tell_batch(struct hk_receiver *r, bool again)
{
  uint32_t first[PREFIXES + 1], groups = r->rule.group == HK_NOTIFY_ALL && !r->rule.incidents ? 0 : groups_of(r, first);
  char prefix[HK_NAME_MAX + 1];
  int status = 0;
  if (groups == 0 || groups > PREFIXES) {
    for (uint32_t i = 0; i < r->n; i++)
      r->chosen[i] = &r->batch[i];
    return tell(r, r->n, "", again);
  }
  for (uint32_t k = 0; k < groups && status == 0; k++) {
    const struct hk_notice *one = &r->batch[first[k]];
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++)
      if (same_group(r, one, &r->batch[i]))
        r->chosen[n++] = &r->batch[i];
    snprintf(prefix, sizeof prefix, "%.*s", (int)shared(r, one->logged.name), one->logged.name.data);
    status = tell(r, n, prefix, again);
  }
  return status;
}

static int before(const void *a, const void *b)
{
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Tells alerts that stand again. */
static void repeat(struct hk_receiver *r, int64_t now)
{
  if (r->rule.repeat == 0 || now - r->repeated < r->rule.repeat)
    return;
  r->repeated = now;
  uint64_t *position = malloc((r->told.n + 1) * sizeof *position);
  uint32_t n = 0;
  for (uint32_t i = 0; position && i < 2 * HK_TOLD_MOST; i++)
    if (r->told.place[i].key != 0 && r->told.place[i].position != 0)
      position[n++] = r->told.place[i].position;
  if (n > 0) {
    qsort(position, n, sizeof *position, before);
    r->again++;
  }
  for (uint32_t i = 0; i < n; i += HK_BATCH)
    if (hk_receiver_again(r, position + i, n - i < HK_BATCH ? n - i : HK_BATCH) > 0 && tell_batch(r, true) != 0)
      break;
  free(position);
}

/* Sends what there is to send. */
static void turn(struct hk_receiver *r)
{
  const int64_t now = hk_now();
  const bool unfinished = r->place.until > r->place.position; /* of the run before, or broken off */
  const uint64_t last = unfinished ? r->place.until : ripe(r, now);
  pthread_mutex_lock(&r->lock);
  const uint64_t shown = hk_eventlog_shown(r->durable->events);
  r->look.waiting = shown - r->place.position;
  pthread_mutex_unlock(&r->lock);
  if (last <= r->place.position) {
    r->waiting_since = 0;
    repeat(r, now);
    return;
  }
  if (r->waiting_since == 0)
    r->waiting_since = now;
  if (!unfinished && now - r->waiting_since < r->rule.gather)
    return;
  hk_receiver_choose(r, last);
  if (r->n > 0) {
    (void)write_place(r);
    if (tell_batch(r, false) != 0) {
      hk_receiver_remember(r); /* as if it had not begun */
      return;
    }
  }
  r->place.position = r->place.until;
  (void)write_place(r);
  if (r->place.position >= hk_eventlog_shown(r->durable->events))
    r->waiting_since = 0;
}

static void *run(void *arg)
{
  struct hk_receiver *r = arg;
  hk_thread_name("notify", 0);
  while (!atomic_load(&r->stop)) {
    adopt(r);
    if (r->glob)
      turn(r);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TURN_MS * 1000000;
    until.tv_sec += until.tv_nsec / SECOND;
    until.tv_nsec %= SECOND;
    pthread_mutex_lock(&r->lock);
    if (!r->changed && !atomic_load(&r->stop))
      pthread_cond_timedwait(&r->woken, &r->lock, &until);
    pthread_mutex_unlock(&r->lock);
  }
  return NULL;
}

int hk_receiver_start(struct hk_receiver *r)
{
  r->changed = true;
  memcpy(r->look.name, r->next.name, sizeof r->look.name);
  r->look.type = r->next.type;
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->woken, NULL);
  r->batch = calloc(HK_BATCH, sizeof *r->batch);
  r->chosen = calloc(HK_BATCH, sizeof *r->chosen);
  int status = r->batch && r->chosen && hk_buffer_room(&r->names, (size_t)HK_BATCH * HK_NAME_MAX) ? 0 : -ENOMEM;
  if (status == 0)
    status = hk_told_open(&r->told);
  if (status == 0)
    status = hk_told_open(&r->ended);
  if (status == 0)
    status = hk_sender_new(&r->sender, &r->quit);
  if (status == 0)
    status = -pthread_create(&r->thread, NULL, run, r);
  r->running = status == 0;
  return status;
}

void hk_receiver_take(struct hk_receiver *r, const struct hk_notify_rule *rule)
{
  pthread_mutex_lock(&r->lock);
  if (memcmp(&r->next, rule, sizeof *rule) != 0) {
    r->next = *rule;
    r->changed = true;
    r->look.type = rule->type;
    atomic_store(&r->quit, true);
    pthread_cond_signal(&r->woken);
  }
  pthread_mutex_unlock(&r->lock);
}

bool hk_receiver_stop(struct hk_receiver *r, unsigned seconds)
{
  if (!r->running)
    return true;
  pthread_mutex_lock(&r->lock);
  atomic_store(&r->stop, true);
  atomic_store(&r->quit, true);
  pthread_cond_signal(&r->woken);
  pthread_mutex_unlock(&r->lock);
  r->running = !(seconds > 0 ? hk_thread_join(r->thread, seconds) : pthread_tryjoin_np(r->thread, NULL) == 0);
  return !r->running;
}

void hk_receiver_close(struct hk_receiver *r)
{
  hk_sender_free(r->sender);
  hk_glob_free(r->glob);
  hk_told_close(&r->told);
  hk_told_close(&r->ended);
  hk_buffer_free(&r->names);
  hk_buffer_free(&r->texts);
  free(r->batch);
  free(r->chosen);
  pthread_cond_destroy(&r->woken);
  pthread_mutex_destroy(&r->lock);
}
