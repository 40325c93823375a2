/* The shard processes an acknowledgement (acknowledge.h); the windows that clients requested are written on a thread of
 * libuv's, since a disk may be slow. */
#include "daemon/server/operate.h"

#include "daemon/base/glob.h"
#include "daemon/durable/commit_thread.h"
#include "daemon/durable/event_copy.h"
#include "daemon/scoring/acknowledge.h"
#include "daemon/scoring/hand_over.h"
#include "daemon/sensors/maintenance.h"
#include "daemon/sensors/registry.h"
#include "daemon/server/incident_watch.h"
#include "daemon/server/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK 4096u /* slots that are looked at while others wait for the lock of the names */

struct hk_operation {
  uint8_t what; /* enum hankel_operation */
  struct hk_acknowledgement *acknowledgement;
  struct hk_incident_word *word;
  char subject[HK_NAME_MAX + 1];
  int status;     /* of operations that are done at once */
  uint32_t ended; /* number of ended windows */
  uint32_t number;
  char before[HK_WHO_MAX + 1], when[HK_TIME_TEXT_MAX]; /* who acknowledged before, and when */
  int64_t to;
  struct hk_eventlog *events; /* of a cluster: an acknowledgement is done once this log has */
  uint64_t appended;          /* so much; 0: nothing */
  /* saving */
  uv_work_t work;
  struct hk_server *server;
  bool saving, abandoned;
  int saved;
  bool unmatched; /* of a window that begins: no sensor matches it so far */
};

/* The name of the operator: that of the credentials precedes the claimed one. */
static void name_peer(const struct hk_connection *c, struct hk_string claimed, char by[HK_WHO_MAX + 1])
{
  if (c->identity.shown.name[0])
    snprintf(by, HK_WHO_MAX + 1, "%s", c->identity.shown.name);
  else if (claimed.length > 0)
    snprintf(by, HK_WHO_MAX + 1, "%.*s", (int)claimed.length, claimed.data);
  else
    snprintf(by, HK_WHO_MAX + 1, "%s", c->peer);
}

/* In a cluster: whichever machine has the sensor, by the log that all share. */
static void acknowledge_shared(struct hk_operation *o, struct hk_eventlog *events, const struct hk_operate *m, const char *by)
{
  int64_t when = hk_wall();
  o->number = m->number;
  snprintf(o->before, sizeof o->before, "%s", by);
  const int64_t appended = hk_copy_acknowledge(events, m->subject, &o->number, o->before, &when);
  o->status = appended < 0 ? (int)appended : 0;
  o->appended = appended > 0 ? (uint64_t)appended : 0;
  o->events = events;
  hk_time_text(when / 1000000000, o->when);
}

/* An alert is also named by its id, SENSOR:NUMBER, as logs and messages have it: splits that, unless a sensor has it as its name.
 */
static struct hk_operate split_id(struct hk_registry *registry, struct hk_operate m)
{
  const struct hk_string id = m.subject;
  size_t digits = 0;
  uint32_t slot;
  while (digits < id.length && digits < 9 && id.data[id.length - 1 - digits] >= '0' && id.data[id.length - 1 - digits] <= '9')
    digits++;
  if (m.number != 0 || digits == 0 || digits + 1 >= id.length || id.data[id.length - 1 - digits] != ':')
    return m;
  const size_t name = id.length - digits - 1;
  hk_registry_read(registry);
  if (hk_registry_find(registry, id.data, id.length, &slot) != 0 && hk_registry_find(registry, id.data, name, &slot) == 0) {
    m.subject.length = name;
    for (size_t i = name + 1; i < id.length; i++)
      m.number = 10 * m.number + (uint32_t)(id.data[i] - '0');
  }
  hk_registry_read_end(registry);
  return m;
}

static void operate_acknowledge(struct hk_connection *c, struct hk_operation *o, const struct hk_operate *m, const char *by)
{
  struct hk_registry *registry = c->net->server->shards.registry;
  if (hk_eventlog_shared(c->net->server->shards.events)) {
    acknowledge_shared(o, c->net->server->shards.events, m, by);
    return;
  }
  uint32_t slot, handle = 0;
  hk_registry_read(registry);
  o->status = hk_registry_find(registry, m->subject.data, m->subject.length, &slot) == 0 ? 0 : -ENXIO;
  if (o->status == 0)
    handle = hk_registry_handle(registry, slot);
  hk_registry_read_end(registry);
  if (o->status != 0)
    return;
  o->acknowledgement = hk_acknowledgement_new(handle, m->number, hk_string(by), hk_wall());
  if (o->acknowledgement)
    hk_acknowledgement_post(&c->net->server->shard[slot % c->net->server->shards.n], o->acknowledgement);
  else
    o->status = -ENOMEM;
}

/* A mark of an incident. */
static void say_word(struct hk_connection *c, struct hk_operation *o, const struct hk_operate *m, const char *by)
{
  const uint32_t kind = m->what - HANKEL_EXPECTED + HK_FEEDBACK_EXPECTED;
  o->status = m->number == 0 && m->subject.length == 0 ? -ENOENT : 0;
  o->number = m->number;
  o->word = o->status == 0 ? hk_word_new(kind, m->number, m->subject, by) : NULL;
  if (o->word)
    hk_watch_say(c->net->server->incidents, o->word);
  else if (o->status == 0)
    o->status = -ENOMEM;
}

/* Which partitions this machine of a cluster is to have. */
static void operate_cluster(struct hk_connection *c, struct hk_operation *o, const struct hk_operate *m, const char *by)
{
  struct hk_server *s = c->net->server;
  static const char *const what[] = { "has it drained", "ends its draining", "has a partition moved to it" };
  o->server = s;
  o->number = m->number;
  o->status =
      m->what == HANKEL_MOVE ? hk_cluster_want(s->cluster, m->number) : hk_cluster_drain(s->cluster, m->what == HANKEL_DRAIN);
  if (o->status == 0)
    hk_log(&s->log, HK_LOG_NOTICE, "[cluster] %s (%s) %s", by, c->peer, what[m->what - HANKEL_DRAIN]);
}

/* Whether a sensor matches. A glob that cannot be made counts as one that does: the window is there all the same. */
static bool operate_matches(struct hk_registry *registry, const char *pattern)
{
  struct hk_glob *glob;
  const uint32_t slots = hk_registry_slots(registry);
  bool found = false;
  if (hk_glob_new(&glob, pattern, strlen(pattern)) != 0)
    return true;
  for (uint32_t first = 0; first < slots && !found; first += LOOK) {
    hk_registry_read(registry);
    for (uint32_t slot = first; slot < slots && slot - first < LOOK && !found; slot++) {
      const struct hk_string name = hk_registry_holds(registry, slot) ? hk_registry_name(registry, slot) : hk_string("");
      found = name.length > 0 && hk_glob_match(glob, name.data, name.length);
    }
    hk_registry_read_end(registry);
  }
  hk_glob_free(glob);
  return found;
}

static void on_save(uv_work_t *work)
{
  struct hk_operation *o = work->data;
  o->saved = hk_maintenance_save(o->server->shards.maintenance);
  if (o->what == HANKEL_BEGIN_MAINTENANCE)
    o->unmatched = !operate_matches(o->server->shards.registry, o->subject);
}

static void on_saved(uv_work_t *work, int status)
{
  struct hk_operation *o = work->data;
  (void)status; /* it is never cancelled */
  o->saving = false;
  if (o->saved != 0)
    hk_log(&o->server->log, HK_LOG_WARNING, "maintenance: client-requested windows are not saved: %s", strerror(-o->saved));
  if (o->abandoned)
    free(o);
  else
    hk_shard_settled(&o->server->shard[0]); /* waiting connections check again */
}

uint64_t hk_operate_log(struct hk_server *server, const struct hk_logged_operation *operation)
{
  struct hk_eventlog *events = server->shards.events;
  const uint64_t appended = events ? hk_eventlog_append_operation(events, operation) : 0;
  if (!events)
    return 0;
  if (appended == 0)
    hk_log(&server->log, HK_LOG_WARNING, "event log: no memory for what was done to the daemon; its timeline lacks that");
  else
    hk_durable_nudge(&server->durable);
  return appended;
}

/* where: the peer, or at which machine; NULL: `by` says so. */
static void operate_log_maintenance(struct hk_server *s, struct hk_string glob, int64_t until, bool begins, struct hk_string by,
                                    const char *where)
{
  char time[HK_TIME_TEXT_MAX];
  hk_time_text(until / 1000000000, time);
  hk_log(&s->log, HK_LOG_NOTICE, "maintenance of %.*s %s%s: requested by %.*s%s%s%s", (int)glob.length, glob.data,
         begins ? "begins, until " : "ends", begins ? time : "", (int)by.length, by.data, where ? " (" : "", where ? where : "",
         where ? ")" : "");
}

void hk_operate_take(void *arg, const struct hk_logged_operation *op)
{
  struct hk_server *s = arg;
  const bool begins = op->kind == HK_LOGGED_MAINTENANCE, ends = op->kind == HK_LOGGED_MAINTENANCE_END;
  if (begins ? hk_maintenance_begin(s->shards.maintenance, op->subject, op->time, op->until, op->by) != 0 || op->until < hk_wall()
             : !ends || hk_maintenance_end(s->shards.maintenance, op->subject, op->time) == 0)
    return;
  operate_log_maintenance(s, op->subject, op->until, begins, op->by, "at another machine of the cluster");
}

static void maintain(struct hk_connection *c, struct hk_operation *o, const struct hk_operate *m, const char *by)
{
  struct hk_maintenance *maintenance = c->net->server->shards.maintenance;
  const int64_t now = hk_wall();
  if (m->what == HANKEL_END_MAINTENANCE) {
    o->ended = hk_maintenance_end(maintenance, m->subject, now);
    o->status = o->ended > 0 ? 0 : -ENOENT;
  } else if (m->subject.length == 0) { /* it would match every sensor; for that the operator writes * */
    o->status = -EINVAL;
  } else {
    o->to = m->duration < (uint64_t)(INT64_MAX - now) ? now + (int64_t)m->duration : INT64_MAX;
    o->status = hk_maintenance_begin(maintenance, m->subject, now, o->to, hk_string(by));
  }
  if (o->status != 0)
    return;
  operate_log_maintenance(c->net->server, hk_string(o->subject), o->to, m->what != HANKEL_END_MAINTENANCE, hk_string(by),
                          strcmp(by, c->peer) == 0 ? NULL : c->peer);
  o->server = c->net->server;
  const uint64_t appended =
      hk_operate_log(o->server, &(struct hk_logged_operation){
                                    .time = now,
                                    .until = o->to,
                                    .kind = m->what == HANKEL_END_MAINTENANCE ? HK_LOGGED_MAINTENANCE_END : HK_LOGGED_MAINTENANCE,
                                    .subject = hk_string(o->subject),
                                    .by = hk_string(by) });
  if (hk_eventlog_shared(o->server->shards.events)) { /* other machines learn of it there */
    o->events = o->server->shards.events;
    o->appended = appended;
  }
  o->work.data = o;
  o->saving = uv_queue_work(&c->loop->uv, &o->work, on_save, on_saved) == 0;
}

struct hk_operation *hk_operate_begin(struct hk_connection *c, const struct hk_operate *m)
{
  struct hk_operation *o = calloc(1, sizeof *o);
  char by[HK_WHO_MAX + 1];
  if (!o)
    return NULL;
  const struct hk_operate split = m->what == HANKEL_ACKNOWLEDGE ? split_id(c->net->server->shards.registry, *m) : *m;
  o->what = m->what;
  snprintf(o->subject, sizeof o->subject, "%.*s", (int)split.subject.length, split.subject.data);
  name_peer(c, m->by, by);
  if (m->what == HANKEL_ACKNOWLEDGE)
    operate_acknowledge(c, o, &split, by);
  else if (m->what >= HANKEL_DRAIN)
    operate_cluster(c, o, m, by);
  else if (m->what >= HANKEL_EXPECTED)
    say_word(c, o, m, by);
  else
    maintain(c, o, m, by);
  return o;
}

static void say_of_incident(const struct hk_operation *o, struct hk_buffer *text)
{
  static const char *const done[] = { "is expected", "is false", "is as if nothing had been said of it" };
  char which[HK_NAME_MAX + 32];
  if (o->number > 0)
    snprintf(which, sizeof which, "#%u", o->number);
  else
    snprintf(which, sizeof which, "of %s", o->subject);
  if (o->status == -ENOENT)
    hk_buffer_print(text, "there is no incident %s, or the log no longer has it\n", which);
  else if (o->status == -EALREADY)
    hk_buffer_print(text, "the incident %s has no feedback to undo\n", which);
  else if (o->status == -ESTALE)
    hk_buffer_print(text, "the section of the incident %s is gone from the configuration; feedback would have no effect\n",
                    which);
  else if (o->status == -ENOTSUP)
    hk_buffer_print(text, "this daemon makes no incidents: its configuration has no [incidents]\n");
  else if (o->status != 0)
    hk_buffer_print(text, "the request failed: %s\n", strerror(-o->status));
  else
    hk_buffer_print(text, "the incident %s %s%s\n", which, done[o->what - HANKEL_EXPECTED],
                    o->what == HANKEL_UNDO ? "" : ": its sensors are silent for a week, unless they are graver by 1");
}

/* Why a machine has no partitions that could move. */
static const char *operate_no_partitions(const struct hk_operation *o)
{
  struct hk_cluster_look l;
  hk_cluster_look(o->server->cluster, &l);
  return l.role == HK_CLUSTER_NONE      ? "this machine is in no cluster: its configuration has no [cluster]"
         : l.role == HK_CLUSTER_GATEWAY ? "this machine is a gateway, and scores no partitions: name a scorer"
                                        : "this machine shares no partitions: its [cluster] has no state = shared:DIR";
}

static void say_of_cluster(const struct hk_operation *o, struct hk_buffer *text)
{
  if (o->status == -ENOTSUP)
    hk_buffer_print(text, "%s\n", operate_no_partitions(o));
  else if (o->status == -EPERM)
    hk_buffer_print(text, "partitions cannot be moved with engine = kafka: the broker alone decides who has which\n");
  else if (o->status == -EINVAL)
    hk_buffer_print(text, "there is no partition %u: they are counted from 0 on\n", o->number);
  else if (o->status == -EALREADY)
    hk_buffer_print(text, "partition %u is scored here already\n", o->number);
  else if (o->status == -EBUSY)
    hk_buffer_print(text, "this machine is draining, and takes no partition\n");
  else if (o->status != 0)
    hk_buffer_print(text, "the request failed: %s\n", strerror(-o->status));
  else if (o->what == HANKEL_MOVE)
    hk_buffer_print(text, "partition %u is asked for\n", o->number);
  else
    hk_buffer_print(text, o->what == HANKEL_DRAIN ? "its partitions go to others, and it takes none\n"
                                                  : "it takes its share of the partitions again\n");
}

static void say_of_begun(const struct hk_operation *o, const char *until, struct hk_buffer *text)
{
  hk_buffer_print(text, "alerts of %s are marked from now on%s%s%s", o->subject, *until ? ", until " : "", until,
                  o->saved != 0 ? "; a restart would not know it, the disk fails" : "");
  if (o->unmatched)
    hk_buffer_print(text, "; no sensor%s has such a name now (hankel sensors lists them)", o->events ? " of this machine" : "");
  hk_buffer_put(text, "\n", 1);
}

static void operate_say(const struct hk_operation *o, struct hk_buffer *text)
{
  const char *subject = o->subject;
  char until[HK_TIME_TEXT_MAX] = "";
  if (o->to < INT64_MAX)
    hk_time_text(o->to / 1000000000, until);
  if (o->status == -ENXIO)
    hk_buffer_print(text, "there is no sensor %s (hankel sensors lists them)\n", subject);
  else if (o->what == HANKEL_ACKNOWLEDGE && o->status == -ENOENT && o->number > 0)
    hk_buffer_print(text, "the alert %s:%u does not stand (hankel top lists those that do)\n", subject, o->number);
  else if (o->what == HANKEL_ACKNOWLEDGE && o->status == -ENOENT)
    hk_buffer_print(text, "no alert of %s stands (hankel top lists those that do)\n", subject);
  else if (o->status == -EALREADY)
    hk_buffer_print(text, "the alert of %s was acknowledged before, by %s at %s\n", subject, o->before, o->when);
  else if (o->status == -ENOENT)
    hk_buffer_print(text, "no window that a client requested with %s is open\n", subject);
  else if (o->status == -ENOSPC)
    hk_buffer_print(text, "there are %u windows already; end some\n", HK_MAINTENANCE_ASKED);
  else if (o->what == HANKEL_BEGIN_MAINTENANCE && !*subject)
    hk_buffer_print(text, "the glob is empty; * is every sensor\n");
  else if (o->status != 0)
    hk_buffer_print(text, "the request failed: %s\n", strerror(-o->status));
  else if (o->what == HANKEL_ACKNOWLEDGE)
    hk_buffer_print(text, "%s:%u is acknowledged\n", subject, o->number);
  else if (o->what == HANKEL_END_MAINTENANCE)
    hk_buffer_print(text, "maintenance of %s is over (%u window%s)%s\n", subject, o->ended, o->ended == 1 ? "" : "s",
                    o->saved != 0 ? "; a restart would not know it, the disk fails" : "");
  else
    say_of_begun(o, until, text);
}

bool hk_operate_result(struct hk_operation *o, bool *taken, struct hk_buffer *text)
{
  if (o->saving || (o->appended > 0 && !hk_eventlog_safe(o->events, o->appended)))
    return false;
  if (o->acknowledgement) {
    const int outcome = atomic_load_explicit(&o->acknowledgement->outcome, memory_order_acquire);
    if (outcome == HK_ACKNOWLEDGEMENT_WAITS)
      return false;
    o->status = outcome;
    o->number = o->acknowledgement->number;
    if (outcome == -EALREADY) {
      snprintf(o->before, sizeof o->before, "%s", o->acknowledgement->by);
      hk_time_text(o->acknowledgement->when / 1000000000, o->when);
    }
  }
  if (o->word) {
    o->status = atomic_load_explicit(&o->word->outcome, memory_order_acquire);
    if (o->status == HK_WORD_WAITS)
      return false;
  }
  (o->what >= HANKEL_DRAIN ? say_of_cluster : o->what >= HANKEL_EXPECTED ? say_of_incident : operate_say)(o, text);
  *taken = o->status == 0;
  hk_operate_abandon(o);
  return true;
}

void hk_operate_abandon(struct hk_operation *o)
{
  if (!o)
    return;
  hk_acknowledgement_release(o->acknowledgement);
  o->acknowledgement = NULL;
  hk_word_release(o->word);
  o->word = NULL;
  o->abandoned = true;
  if (!o->saving)
    free(o);
}
