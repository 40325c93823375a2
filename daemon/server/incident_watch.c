#include "daemon/server/incident_watch.h"

#include "daemon/base/thread.h"
#include "daemon/durable/event_log.h"
#include "daemon/incidents/incident_text.h"
#include "daemon/incidents/incidents_image.h"
#include "daemon/incidents/ticks.h"
#include "daemon/server/incident_board.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define TURN 200000000             /* ns between two looks at the log */
#define SETTLE INT64_C(2000000000) /* ns that a tick waits for events of other shards */
#define SHOW INT64_C(500000000)    /* ns between two writings of the board */
#define SAVE INT64_C(60000000000)  /* ns between two states, where nothing is told */
#define PIECE 256                  /* events, or names, that are looked at together */
#define END 10                     /* s that the thread gets to end */
#define FILE_MOST (UINT64_C(1) << 32)

static const char file_name[] = "incidents", file_new[] = "incidents.new";

struct header {
  char magic[8];
  uint64_t size, checksum; /* of what stands behind it */
  uint64_t position, ticks;
  struct hk_incident_day day;
};
static const char magic[8] = "HKINC 1\n";

struct hk_incident_watch {
  struct hk_durable *durable;
  struct hk_registry *registry;
  struct hk_log *log;
  pthread_t thread;
  pthread_mutex_t lock; /* of what other threads look at: budget, quit, status */
  pthread_cond_t woken;
  double a_day;
  bool quit;
  struct hk_watch_status status;
  struct hk_incident_board *board;
  /* the thread's own */
  struct hk_incidents *incidents;
  struct hk_ticks *ticks;
  struct hk_incident_day day;
  struct hk_eventlog_cursor cursor;
  struct hk_buffer told;                    /* messages, each ends with 0, that are given once the state is on the disk */
  uint64_t added;                           /* sensors of the registry, when their names were learned last */
  int64_t newest, settling, settling_since; /* ns: of the data; of the data, 0: nothing settles; monotonic */
  int64_t saved;                            /* ns, monotonic */
  bool changed, failed;                     /* since that; it could not be written */
  bool stale;                               /* the board, */
  int64_t shown;                            /* ns, monotonic: when it was written last */
};

/* --- decisions ---------------------------------------------------------------------------------------------------------- */

static void decided(void *arg, int64_t time, enum hk_incident_decision decision, const struct hk_incident *incident,
                    const struct hk_incident *into, double threshold)
{
  struct hk_incident_watch *w = arg;
  const struct hk_incident_news news = { w->incidents, incident, into, &w->day, time, threshold, decision };
  hk_incident_day_count(&w->day, time, decision, incident);
  w->stale = true;
  if (decision == HK_INCIDENT_CLOSED) {
    hk_board_over(w->board, &news);
    return;
  }
  hk_incident_sentence(&w->told, &news);
  hk_buffer_put(&w->told, "", 1);
}

/* --- state -------------------------------------------------------------------------------------------------------------- */

static void save(struct hk_incident_watch *w)
{
  struct hk_buffer bytes = { 0 };
  struct header header = { .position = w->cursor.next, .day = w->day };
  memcpy(header.magic, magic, sizeof magic);
  hk_buffer_put(&bytes, (const char *)&header, sizeof header);
  hk_ticks_write(w->ticks, &bytes);
  header.ticks = bytes.size - sizeof header;
  hk_incidents_write(w->incidents, &bytes);
  int status = -ENOMEM;
  if (!bytes.failed) {
    header.size = bytes.size - sizeof header;
    header.checksum = XXH3_64bits(bytes.data + sizeof header, header.size);
    memcpy(bytes.data, &header, sizeof header);
    status = hk_disk_replace(&w->durable->disk, w->durable->folder, file_name, file_new, bytes.data, bytes.size, NULL);
  }
  hk_buffer_free(&bytes);
  if (status != 0 && !w->failed)
    hk_log(w->log, HK_LOG_WARNING, "incidents: their state cannot be written: %s; after a crash some may be told again",
           strerror(-status));
  w->failed = status != 0;
  w->changed = false;
  w->saved = hk_now();
}

/* Takes up what a file has. 0; -ENOENT; -EBADMSG; -ENOMEM. */
static int take_up(struct hk_incident_watch *w, const char *bytes, size_t size)
{
  struct header header;
  if (size < sizeof header)
    return -EBADMSG;
  memcpy(&header, bytes, sizeof header);
  bytes += sizeof header;
  if (memcmp(header.magic, magic, sizeof magic) != 0 || header.size != size - sizeof header || header.ticks > header.size ||
      XXH3_64bits(bytes, header.size) != header.checksum)
    return -EBADMSG;
  int status = hk_incidents_read(w->incidents, bytes + header.ticks, header.size - header.ticks);
  if (status == 0)
    status = hk_ticks_read(w->ticks, bytes, header.ticks);
  w->cursor.next = header.position;
  w->day = header.day;
  return status;
}

static int restore(struct hk_incident_watch *w)
{
  uint64_t size;
  int file, status = hk_disk_open(&w->durable->disk, w->durable->folder, file_name, &file, &size);
  if (status != 0)
    return status;
  char *bytes = size <= FILE_MOST ? malloc(size + 1) : NULL;
  status = bytes ? hk_disk_read(&w->durable->disk, file, 0, bytes, size) : -ENOMEM;
  close(file);
  if (status == 0)
    status = take_up(w, bytes, size);
  free(bytes);
  return status;
}

/* --- events ------------------------------------------------------------------------------------------------------------- */

/* Names that are new. Sensors are scored that are nobody's companions. */
static void learn(struct hk_incident_watch *w)
{
  const uint64_t added = hk_registry_added(w->registry);
  const uint32_t slots = hk_registry_slots(w->registry);
  uint32_t sensors = 0;
  if (added == w->added)
    return;
  for (uint32_t slot = 0; slot < slots;) {
    hk_registry_read(w->registry);
    for (const uint32_t end = slot + PIECE; slot < end && slot < slots; slot++) {
      if (!hk_registry_holds(w->registry, slot) || hk_registry_derived(w->registry, slot))
        continue;
      sensors++;
      if (hk_incidents_learn(w->incidents, hk_registry_name(w->registry, slot), NULL, 0) == -ENOMEM)
        continue; /* an alert of it learns it, or is counted as lost */
    }
    hk_registry_read_end(w->registry);
  }
  hk_incidents_sensors(w->incidents, sensors);
  w->added = added;
}

/* Between hk_registry_read and its end. */
static void take(void *arg, const struct hk_logged *l)
{
  struct hk_incident_watch *w = arg;
  struct hk_string name = l->name;
  uint32_t slot;
  if (l->event.kind != HK_EVENT_RAISED && l->event.kind != HK_EVENT_CORRECTED)
    return;
  if (hk_registry_find(w->registry, name.data, name.length, &slot) == 0)
    name = hk_registry_name(w->registry, hk_registry_primary(w->registry, slot));
  w->changed = w->stale = true;
  w->newest = l->event.time > w->newest ? l->event.time : w->newest;
  if (hk_ticks_event(w->ticks, l->event.time, name, l->event.channel, (double)l->event.severity, l->event.instant) != 0)
    hk_log(w->log, HK_LOG_WARNING, "incidents: no memory for an alert; it belongs to none");
}

/* Judges the ticks that have settled; all: those that have not, too. */
static void settle(struct hk_incident_watch *w)
{
  const int64_t now = hk_now();
  if (w->settling != 0 && now - w->settling_since >= SETTLE) {
    (void)hk_ticks_reach(w->ticks, w->settling + 1);
    w->changed = w->stale = true;
    w->settling = 0;
  }
  if (w->settling == 0 && hk_ticks_waiting(w->ticks) > 0) {
    w->settling = w->newest;
    w->settling_since = now;
  }
}

static void give(struct hk_incident_watch *w)
{
  for (size_t at = 0; at < w->told.size; at += strlen(w->told.data + at) + 1)
    hk_log(w->log, HK_LOG_NOTICE, "incident: %s", w->told.data + at);
  if (w->told.failed)
    hk_log(w->log, HK_LOG_WARNING, "incidents: no memory to tell of one");
  hk_buffer_free(&w->told);
}

static void turn(struct hk_incident_watch *w)
{
  struct hk_eventlog *log = w->durable->events;
  const uint64_t shown = hk_eventlog_shown(log);
  uint32_t n = PIECE;
  if (w->cursor.next > shown + 1) /* of another log, or of one whose end is gone */
    w->cursor.next = shown + 1;
  learn(w);
  while (n == PIECE) {
    hk_registry_read(w->registry);
    n = hk_eventlog_read(log, &w->cursor, shown, PIECE, take, w);
    hk_registry_read_end(w->registry);
  }
  settle(w);
  if (w->told.size > 0 || w->told.failed || (w->changed && hk_now() - w->saved >= SAVE))
    save(w);
  give(w);
  if (w->stale && hk_now() - w->shown >= SHOW) {
    hk_board_stand(w->board, w->incidents, &w->day);
    w->stale = false;
    w->shown = hk_now();
  }
}

/* --- thread ------------------------------------------------------------------------------------------------------------- */

static void publish(struct hk_incident_watch *w)
{
  const struct hk_incidents_counts c = hk_incidents_count(w->incidents);
  w->status = (struct hk_watch_status){ .events = c.events,
                                        .told = c.told,
                                        .updates = c.updates,
                                        .merged = c.merged,
                                        .withheld = c.withheld,
                                        .unlisted = c.unlisted + c.not_finite,
                                        .open = c.open,
                                        .members = c.members,
                                        .told_today = w->day.told,
                                        .withheld_today = w->day.withheld,
                                        .gravest_today = w->day.gravest,
                                        .budget = w->a_day,
                                        .position = w->cursor.next - 1 };
}

static void *run(void *arg)
{
  struct hk_incident_watch *w = arg;
  double a_day = w->a_day;
  bool quit = false;
  hk_thread_name("incidents", 0);
  while (!quit) {
    turn(w);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TURN;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&w->lock);
    publish(w);
    if (!w->quit)
      (void)pthread_cond_timedwait(&w->woken, &w->lock, &until);
    quit = w->quit;
    if (a_day != w->a_day)
      hk_incidents_budget(w->incidents, a_day = w->a_day);
    pthread_mutex_unlock(&w->lock);
  }
  turn(w);
  if (w->changed)
    save(w);
  return NULL;
}

static void discard(struct hk_incident_watch *w)
{
  hk_ticks_free(w->ticks);
  hk_incidents_free(w->incidents);
  hk_buffer_free(&w->told);
  hk_board_free(w->board);
  free(w);
}

static int make(struct hk_incident_watch *w, const struct hk_incidents_rule *rule)
{
  const struct hk_incidents_rules rules = { .a_day = rule->a_day, .interval = rule->interval, .most_members = rule->members };
  hk_ticks_free(w->ticks);
  hk_incidents_free(w->incidents);
  w->ticks = NULL;
  w->incidents = NULL;
  w->day = (struct hk_incident_day){ 0 };
  w->cursor = (struct hk_eventlog_cursor){ .next = hk_eventlog_first(w->durable->events) };
  const int status = hk_incidents_new(&w->incidents, &rules, decided, w);
  return status == 0 ? hk_ticks_new(&w->ticks, w->incidents) : status;
}

int hk_watch_start(struct hk_incident_watch **out, const struct hk_incidents_rule *rule, struct hk_durable *durable,
                   struct hk_registry *registry, struct hk_log *log)
{
  struct hk_incident_watch *w = calloc(1, sizeof *w);
  if (!w)
    return -ENOMEM;
  w->durable = durable;
  w->registry = registry;
  w->log = log;
  w->a_day = rule->a_day;
  w->added = UINT64_MAX;
  w->saved = hk_now();
  w->stale = true;
  w->board = hk_board_new();
  int status = w->board ? make(w, rule) : -ENOMEM;
  const int restored = status == 0 ? restore(w) : status;
  if (status == 0 && restored != 0) {
    if (restored != -ENOENT)
      hk_log(log, HK_LOG_WARNING, "incidents: their state cannot be taken up: %s; they begin anew, with the alerts of the log",
             restored == -EBADMSG ? "it is damaged, or of another interval" : strerror(-restored));
    status = make(w, rule); /* what was read in part is gone */
  }
  w->newest = hk_ticks_newest(w->ticks);
  if (status == 0) {
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->woken, NULL);
    status = -pthread_create(&w->thread, NULL, run, w);
  }
  if (status != 0)
    discard(w);
  else
    *out = w;
  return status;
}

void hk_watch_budget(struct hk_incident_watch *w, double a_day)
{
  if (!w)
    return;
  pthread_mutex_lock(&w->lock);
  w->a_day = a_day;
  pthread_mutex_unlock(&w->lock);
}

struct hk_watch_status hk_watch_status(struct hk_incident_watch *w)
{
  struct hk_watch_status status = { 0 };
  if (!w)
    return status;
  pthread_mutex_lock(&w->lock);
  status = w->status;
  pthread_mutex_unlock(&w->lock);
  return status;
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
  discard(w);
  return true;
}
