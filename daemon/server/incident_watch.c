#include "daemon/server/incident_watch.h"

#include "cpu/monotonic.h"
#include "daemon/base/thread.h"
#include "daemon/durable/commit_thread.h"
#include "daemon/durable/event_shared.h"
#include "daemon/server/distant_names.h"
#include "daemon/server/incident_maker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TURN 200000000             /* ns between two reads of the log */
#define SETTLE INT64_C(2000000000) /* ns that a tick waits for events of other shards if the data stand still, multiplied by */
#define BUSY 10                    /* this number while points wait to be scored */
#define SHOW INT64_C(500000000)    /* ns between two updates of the board */
#define SAVE INT64_C(60000000000)  /* ns between two states */
#define PIECE 256                  /* records of the log at a time */
#define END 10                     /* s that the thread gets to end */
#define FILE_MOST (UINT64_C(1) << 32)

static const char file_name[] = "incidents", file_new[] = "incidents.new";

struct hk_incident_watch {
  struct hk_durable *durable;
  struct hk_eventlog *events;
  struct hk_registry *registry;
  struct hk_incidents_sections rules; /* with the budgets that the maker has */
  struct hk_log *log;
  struct hk_watch_source source;
  pthread_t thread;
  pthread_mutex_t lock; /* protects what other threads read: budgets, quit, status */
  pthread_cond_t woken;
  double a_day[HK_INCIDENTS_MOST];
  bool quit;
  struct hk_watch_status status;
  struct hk_incident_word *posted; /* list, latest first */
  struct hk_buffer feedback;       /* the marks in force */
  struct hk_incident_board *board;
  struct hk_cluster *mail; /* to ask other machines by; NULL: none, or not yet */
  /* only used by the thread */
  struct hk_incident_maker *maker;
  struct hk_distant_names *distant;
  struct hk_cluster *asks;        /* as `mail`, in this turn */
  struct hk_incident_word *words; /* list: waiting to be logged, or to be on the disk */
  struct hk_incident_clock clock;
  int64_t over;                     /* ns, time of data: ticks before it are complete */
  int64_t settling, settling_since; /* ns: time of data, 0: nothing settles; monotonic */
  int64_t saved;                    /* ns, monotonic */
  uint64_t logged;                  /* the log's end after the last turn: what was decided is on the disk before the state is */
  bool leads;                       /* of a copy of a shared log: this machine does */
  bool changed, failed;             /* since `saved`; the state could not be written */
  bool stale;                       /* the board is outdated */
  int64_t shown;                    /* ns, monotonic: when the board was last written */
};

/* --- state -------------------------------------------------------------------------------------------------------------- */

static void watch_save(struct hk_incident_watch *w)
{
  if (hk_eventlog_shared(w->events)) /* the log restores it */
    return;
  struct hk_buffer bytes = { 0 };
  hk_maker_write(w->maker, &bytes);
  const int status =
      bytes.failed ? -ENOMEM
                   : hk_disk_replace(&w->durable->disk, w->durable->folder, file_name, file_new, bytes.data, bytes.size, NULL);
  hk_buffer_free(&bytes);
  if (status != 0 && !w->failed)
    hk_log(
        w->log, HK_LOG_WARNING,
        "incidents: their state cannot be written: %s; a restart restores an older state and repeats the decisions from the log",
        strerror(-status));
  w->failed = status != 0;
  w->changed = false;
  w->saved = hk_now();
}

static int watch_restore(struct hk_incident_watch *w)
{
  uint64_t size;
  int file, status = hk_disk_open(&w->durable->disk, w->durable->folder, file_name, &file, &size);
  if (status != 0)
    return status;
  char *bytes = size <= FILE_MOST ? malloc(size + 1) : NULL;
  status = bytes ? hk_disk_read(&w->durable->disk, file, 0, bytes, size) : -ENOMEM;
  close(file);
  if (status == 0)
    status = hk_maker_take(w->maker, bytes, size);
  free(bytes);
  return status;
}

/* --- turns -------------------------------------------------------------------------------------------------------------- */

static void watch_settle(struct hk_incident_watch *w, int64_t time, int64_t ends)
{
  hk_maker_settle(w->maker, time, ends);
  hk_durable_nudge(w->durable);
  w->over = time > w->over ? time : w->over;
  w->changed = w->stale = true;
}

static bool watch_is_due(const struct hk_incident_watch *w)
{
  return hk_maker_due(w->maker, w->clock.ticks > w->over, w->clock.ends);
}

/* Looks how far the data are. Returns whether the log has all events of before, once it is read up to its end of now. A shared
 * log is marked only if it matters, for others read the mark, too. */
static bool watch_look(struct hk_incident_watch *w, uint64_t shards)
{
  const bool shared = hk_eventlog_shared(w->events), decides = !hk_maker_look(w->maker).again;
  if (shared && !decides)
    return false;
  hk_clock_look(&w->clock, shards, w->asks, hk_maker_due(w->maker, false, INT64_MAX));
  if (!shared || watch_is_due(w))
    hk_clock_mark(&w->clock);
  return hk_clock_passed(&w->clock);
}

/* The data have passed some ticks, or the end of some incidents. */
static bool settle_reached(struct hk_incident_watch *w)
{
  const struct hk_incident_clock *c = &w->clock;
  const bool due = watch_is_due(w);
  if (due)
    watch_settle(w, c->ticks > w->over ? c->ticks : w->over, c->ends);
  return due;
}

/* The data stand still. */
static void settle_waiting(struct hk_incident_watch *w, const struct hk_maker_look *look)
{
  const int64_t now = hk_now(), waited = now - w->settling_since;
  if (look->waiting == 0) {
    w->settling = 0;
    if (look->fresh)
      watch_settle(w, w->over, 0);
    return;
  }
  if (w->settling == 0) {
    w->settling = look->newest;
    w->settling_since = now;
  } else if (waited >= SETTLE && (waited >= BUSY * SETTLE || w->source.idle(w->source.arg))) {
    watch_settle(w, w->settling + 1, 0);
    w->settling = 0;
  }
}

/* --- marks -------------------------------------------------------------------------------------------------------------- */

static void watch_answer(struct hk_incident_watch *w, struct hk_incident_word *word, int outcome)
{
  atomic_store_explicit(&word->outcome, outcome, memory_order_release);
  hk_word_release(word);
  w->source.answered(w->source.arg);
}

/* Logs the posted marks in order, and answers them once they are on the disk. */
static void watch_take_words(struct hk_incident_watch *w)
{
  struct hk_incident_word **last = &w->words;
  pthread_mutex_lock(&w->lock);
  struct hk_incident_word *posted = w->posted, *in_order = NULL;
  w->posted = NULL;
  pthread_mutex_unlock(&w->lock);
  for (struct hk_incident_word *next; posted; posted = next) {
    next = posted->next;
    posted->next = in_order;
    in_order = posted;
  }
  while (*last)
    last = &(*last)->next;
  *last = in_order;
  for (struct hk_incident_word **link = &w->words, *word; (word = *link) != NULL;) {
    int status = word->position == 0 ? hk_maker_feedback(w->maker, word, &word->position) : 0;
    if (status == 0)
      hk_durable_nudge(w->durable);
    if (status == -EAGAIN || (status == 0 && !hk_eventlog_safe(w->events, word->position))) {
      link = &word->next;
      continue;
    }
    *link = word->next;
    watch_answer(w, word, status);
  }
}

static void drop_words(struct hk_incident_word *word)
{
  for (struct hk_incident_word *next; word; word = next) {
    next = word->next;
    hk_word_release(word);
  }
}

void hk_watch_say(struct hk_incident_watch *w, struct hk_incident_word *word)
{
  if (!w) {
    atomic_store_explicit(&word->outcome, -ENOTSUP, memory_order_release);
    hk_word_release(word);
    return;
  }
  pthread_mutex_lock(&w->lock);
  word->next = w->posted;
  w->posted = word;
  pthread_cond_signal(&w->woken);
  pthread_mutex_unlock(&w->lock);
}

void hk_watch_feedback(struct hk_incident_watch *w, struct hk_buffer *out)
{
  if (!w)
    return;
  pthread_mutex_lock(&w->lock);
  if (w->feedback.size > 0)
    hk_buffer_put(out, w->feedback.data, w->feedback.size);
  pthread_mutex_unlock(&w->lock);
}

/* Of a copy of a shared log: one machine decides, the others repeat that. A former leader forgets what it has decided since. */
static void look_who_leads(struct hk_incident_watch *w)
{
  const bool leads = hk_shared_leads(hk_eventlog_shared(w->events));
  const struct hk_maker_parts parts = { w->events, w->registry, w->log, w->board };
  struct hk_incident_maker *maker;
  if (leads && !w->leads)
    hk_maker_lead(w->maker);
  if (w->leads && !leads) {
    if (hk_maker_new(&maker, &w->rules, &parts) != 0)
      return; /* in the next turn */
    hk_maker_free(w->maker);
    w->maker = maker;
    hk_distant_again(w->distant);
    w->settling = 0;
    hk_clock_forget(&w->clock);
  }
  w->leads = leads;
}

/* Learns what other machines score. */
static void learn_distant(struct hk_incident_watch *w)
{
  pthread_mutex_lock(&w->lock);
  w->asks = w->mail;
  pthread_mutex_unlock(&w->lock);
  w->stale |= hk_distant_turn(w->distant, w->asks);
  for (uint32_t i = 0; i < w->rules.n; i++)
    hk_maker_count_distant(w->maker, i, hk_distant_count(w->distant, i), w->source.scores);
}

static void watch_turn(struct hk_incident_watch *w)
{
  if (hk_eventlog_shared(w->events)) {
    look_who_leads(w);
    learn_distant(w);
  }
  if (w->changed && !hk_maker_look(w->maker).again && hk_now() - w->saved >= SAVE && hk_eventlog_safe(w->events, w->logged))
    watch_save(w);
  const bool passed = watch_look(w, hk_maker_learn(w->maker, w->source.shards));
  w->stale |= hk_maker_read(w->maker);
  watch_take_words(w);
  w->changed |= w->stale;
  const struct hk_maker_look look = hk_maker_look(w->maker);
  if (!look.again && !(passed && settle_reached(w)))
    settle_waiting(w, &look);
  w->logged = hk_eventlog_appended(w->events);
  if (w->stale && hk_now() - w->shown >= SHOW) {
    hk_maker_show(w->maker);
    w->stale = false;
    w->shown = hk_now();
  }
}

/* --- thread ------------------------------------------------------------------------------------------------------------- */

static void watch_publish(struct hk_incident_watch *w)
{
  struct hk_watch_status *status = &w->status;
  const struct hk_incident_section *s;
  int64_t day = 0;
  *status = (struct hk_watch_status){ .position = hk_maker_look(w->maker).position };
  for (; (s = hk_maker_section(w->maker, status->n)) != NULL; status->n++) {
    struct hk_watch_section *its = &status->section[status->n];
    memcpy(its->name, s->rule.name, sizeof its->name);
    its->counts = hk_counts_of(s);
    its->gone = s->gone;
    day = s->day.day > day ? s->day.day : day;
  }
  for (uint32_t i = 0; i < status->n; i++)
    hk_counts_add(&status->all, &status->section[i].counts, hk_maker_section(w->maker, i)->day.day == day);
  w->feedback.size = 0;
  hk_maker_show_feedback(w->maker, &w->feedback);
}

/* Takes over changed budgets. */
static void watch_adopt(struct hk_incident_watch *w)
{
  for (uint32_t i = 0; i < w->rules.n; i++)
    if (w->a_day[i] != w->rules.of[i].a_day)
      hk_maker_budget(w->maker, i, w->rules.of[i].a_day = w->a_day[i]);
}

static void *watch_run(void *arg)
{
  struct hk_incident_watch *w = arg;
  bool quit = false;
  hk_thread_name("incidents", 0);
  while (!quit) {
    watch_turn(w);
    const struct timespec until = hk_monotonic_limit(TURN);
    pthread_mutex_lock(&w->lock);
    watch_publish(w);
    if (!w->quit)
      (void)pthread_cond_timedwait(&w->woken, &w->lock, &until);
    quit = w->quit;
    watch_adopt(w);
    pthread_mutex_unlock(&w->lock);
  }
  watch_turn(w);
  if (w->changed && !hk_maker_look(w->maker).again)
    watch_save(w);
  return NULL;
}

static void watch_discard(struct hk_incident_watch *w)
{
  hk_distant_free(w->distant);
  hk_clock_finish(&w->clock);
  hk_maker_free(w->maker);
  hk_board_free(w->board);
  drop_words(w->posted);
  drop_words(w->words);
  hk_buffer_free(&w->feedback);
  free(w);
}

/* Makes a new maker, with the state of the file. */
static int watch_make(struct hk_incident_watch *w)
{
  const struct hk_maker_parts parts = { w->events, w->registry, w->log, w->board };
  int status = hk_maker_new(&w->maker, &w->rules, &parts);
  const int restored = status != 0 ? status : hk_eventlog_shared(w->events) ? 0 : watch_restore(w);
  if (status != 0 || restored == 0)
    return status;
  if (restored != -ENOENT)
    hk_log(w->log, HK_LOG_WARNING, "incidents: their state cannot be restored: %s; they start over from the alerts in the log",
           restored == -EBADMSG ? "it is damaged" : strerror(-restored));
  hk_maker_free(w->maker); /* a partly read state is dropped */
  w->maker = NULL;
  return hk_maker_new(&w->maker, &w->rules, &parts);
}

static void watch_take_past(void *arg, const struct hk_logged_incident *i)
{
  struct hk_incident_watch *w = arg;
  hk_board_recall(w->board, i);
}

/* Shows what was over before the state was written; the maker repeats the rest. */
static void watch_recall(struct hk_incident_watch *w)
{
  static const struct hk_eventlog_visit visit = { .incident = watch_take_past };
  struct hk_eventlog_cursor c = { .next = hk_eventlog_first(w->events) };
  const uint64_t upto = hk_maker_look(w->maker).position;
  while (!hk_eventlog_shared(w->events) && c.next <= upto && hk_eventlog_visit(w->events, &c, upto, PIECE, &visit, w) > 0)
    continue;
}

static int watch_learn(void *arg, struct hk_string name)
{
  struct hk_incident_watch *w = arg;
  return hk_maker_learn_distant(w->maker, name);
}

static void watch_wake(void *arg)
{
  struct hk_incident_watch *w = arg;
  pthread_cond_signal(&w->woken);
}

int hk_watch_start(struct hk_incident_watch **out, const struct hk_incidents_sections *rules,
                   const struct hk_watch_source *source, struct hk_durable *durable, struct hk_eventlog *events,
                   struct hk_registry *registry, struct hk_log *log)
{
  struct hk_incident_watch *w = calloc(1, sizeof *w);
  if (!w)
    return -ENOMEM;
  w->durable = durable;
  w->events = events;
  w->registry = registry;
  w->rules = *rules;
  for (uint32_t i = 0; i < rules->n; i++)
    w->a_day[i] = rules->of[i].a_day;
  w->source = *source;
  w->log = log;
  w->saved = hk_now();
  w->stale = true;
  w->board = hk_board_new();
  w->distant = hk_distant_new(&(struct hk_distant_hooks){ watch_learn, watch_wake, w });
  int status = hk_clock_begin(&w->clock, &w->source, rules, events, watch_wake, w);
  if (status == 0)
    status = w->board && w->distant ? watch_make(w) : -ENOMEM;
  if (status == 0) {
    watch_recall(w);
    hk_eventlog_settle(events, 0);
    pthread_mutex_init(&w->lock, NULL);
    hk_monotonic_condition(&w->woken);
    status = -pthread_create(&w->thread, NULL, watch_run, w);
  }
  if (status != 0)
    watch_discard(w);
  else
    *out = w;
  return status;
}

void hk_watch_ask(struct hk_incident_watch *w, struct hk_cluster *mail)
{
  if (!w)
    return;
  pthread_mutex_lock(&w->lock);
  w->mail = mail;
  pthread_mutex_unlock(&w->lock);
}

void hk_watch_budget(struct hk_incident_watch *w, const struct hk_incidents_sections *rules)
{
  if (!w)
    return;
  pthread_mutex_lock(&w->lock);
  for (uint32_t i = 0; i < w->rules.n; i++) {
    const struct hk_incidents_rule *now = hk_incidents_section(rules, w->rules.of[i].name);
    w->a_day[i] = now ? now->a_day : w->a_day[i];
  }
  pthread_mutex_unlock(&w->lock);
}

void hk_watch_status(struct hk_incident_watch *w, struct hk_watch_status *out)
{
  *out = (struct hk_watch_status){ 0 };
  if (!w)
    return;
  pthread_mutex_lock(&w->lock);
  *out = w->status;
  pthread_mutex_unlock(&w->lock);
}

bool hk_watch_incidents(struct hk_incident_watch *w, struct hk_buffer *out)
{
  if (w)
    hk_board_read(w->board, out);
  return w != NULL;
}

bool hk_watch_stop(struct hk_incident_watch *w)
{
  if (!w)
    return true;
  pthread_mutex_lock(&w->lock);
  w->quit = true;
  pthread_cond_signal(&w->woken);
  pthread_mutex_unlock(&w->lock);
  if (!hk_thread_join(w->thread, END))
    return false;
  watch_discard(w);
  return true;
}
