#include "daemon/durable/event_log_internal.h"
#include "daemon/durable/journal_read.h"
#include "daemon/durable/journal_segments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 8                 /* approximate number of files */
#define FAR (UINT64_C(1) << 30) /* positions skipped if it is unknown how many were published */

#define RECORD_LEAST (HK_RECORD_HEADER + HK_SETTLED_LEAST)
#define RECORD_MOST (HK_RECORD_HEADER + HK_LOGGED_MOST)

struct hk_journal_place hk_eventlog_place(const struct hk_disk *disk, int folder, uint64_t most)
{
  return (struct hk_journal_place){ .disk = disk,
                                    .folder = folder,
                                    .stem = "events",
                                    .suffix = "hke",
                                    .kind = HK_JOURNAL_EVENTS,
                                    .shards = 1,
                                    .segment = most / PARTS };
}

/* --- memory ---------------------------------------------------------------------------------------------------------- */

/* Events are mostly consecutive, so the search begins at the place of the last one. */
void hk_eventlog_assign(struct hk_eventlog *l, const struct hk_logged_settled *s)
{
  struct hk_eventlog_cursor *c = &l->assigned;
  for (uint32_t i = 0; i < s->n; i++) {
    const struct hk_settled_event of = hk_settled_at(s, i);
    if (of.position < c->next)
      *c = (struct hk_eventlog_cursor){ 0 };
    c->next = of.position;
    struct hk_event_block *b = hk_blocks_seek(&l->kept, c);
    struct hk_event_entry e = hk_blocks_entry(&b, c);
    for (; e.position < of.position; e = hk_blocks_entry(&b, c))
      c->offset += e.bytes;
    if (e.position != of.position || e.type != HK_RECORD_EVENT)
      continue;
    e.incident = of.incident;
    memcpy(b->data + c->offset, &e, sizeof e);
  }
  l->settled = s->upto > l->settled ? s->upto : l->settled;
}

/* --- a replay -------------------------------------------------------------------------------------------------------- */

struct hk_eventlog_past hk_eventlog_past(const struct hk_eventlog *l, uint32_t handle, struct hk_string name)
{
  return hk_past_find(&l->past, handle, name);
}

bool hk_eventlog_noted(const struct hk_eventlog *l, uint32_t handle, struct hk_string name, struct hk_logged *out)
{
  return hk_past_noted(&l->past, handle, name, out);
}

void hk_eventlog_hold(struct hk_eventlog *l)
{
  pthread_mutex_lock(&l->lock);
  l->kept.held = true;
  pthread_mutex_unlock(&l->lock);
}

void hk_eventlog_replayed(struct hk_eventlog *l)
{
  pthread_mutex_lock(&l->lock);
  hk_blocks_release(&l->kept);
  hk_past_free(&l->past);
  pthread_mutex_unlock(&l->lock);
}

/* --- writing --------------------------------------------------------------------------------------------------------- */

/* Processes a written record: keeps it in memory before it can be shown. Returns its position. */
static uint64_t append_end(struct hk_eventlog *l, enum hk_log_record type, const uint8_t *payload, size_t size)
{
  hk_blocks_keep(&l->kept, hk_journal_position(l->journal) + 1, type, payload, size);
  return hk_journal_end(l->journal, 1);
}

uint64_t hk_eventlog_append(struct hk_eventlog *l, uint32_t handle, struct hk_string name, uint64_t sequence,
                            const struct hk_event *e, struct hk_string by, int64_t reached)
{
  struct hk_logged logged = { .sequence = sequence, .handle = handle, .name = name, .by = by, .event = *e, .reached = reached };
  if (l->shared) {
    logged.handle = 0; /* which differs by machine */
    struct hk_shared_message *message = hk_shared_message(HK_RECORD_EVENT, hk_logged_size(&logged));
    if (message) {
      hk_logged_write(&logged, hk_shared_payload(message));
      hk_shared_about(message, name.data, name.length);
    }
    return hk_shared_put(l->shared, message);
  }
  const size_t size = hk_logged_size(&logged);
  pthread_mutex_lock(&l->lock);
  if (sequence > hk_eventlog_past(l, handle, name).sequence) {
    uint8_t *payload = hk_journal_begin(l->journal, HK_RECORD_EVENT, size);
    if (payload) {
      hk_logged_write(&logged, payload);
      logged.position = append_end(l, HK_RECORD_EVENT, payload, size);
      if (hk_past_any(&l->past)) /* of a replay, which changes the standing alert. Without memory it is unknown, as before */
        (void)hk_past_reach(&l->past, &logged);
    }
  }
  pthread_mutex_unlock(&l->lock);
  return logged.position;
}

uint64_t hk_eventlog_append_incident(struct hk_eventlog *l, const struct hk_logged_incident *incident)
{
  const size_t size = hk_logged_incident_size(incident);
  uint64_t position = 0;
  if (size > HK_LOGGED_INCIDENT_MOST)
    return 0;
  if (l->shared) {
    struct hk_shared_message *message = hk_shared_message(HK_RECORD_INCIDENT, size);
    if (message)
      hk_logged_incident_write(incident, hk_shared_payload(message));
    return hk_shared_put(l->shared, message);
  }
  pthread_mutex_lock(&l->lock);
  uint8_t *payload = hk_journal_begin(l->journal, HK_RECORD_INCIDENT, size);
  if (payload) {
    hk_logged_incident_write(incident, payload);
    position = append_end(l, HK_RECORD_INCIDENT, payload, size);
  }
  pthread_mutex_unlock(&l->lock);
  return position;
}

uint64_t hk_eventlog_append_settled(struct hk_eventlog *l, const struct hk_logged_settled *settled)
{
  const size_t size = hk_logged_settled_size(settled);
  uint64_t position = 0;
  if (settled->n > HK_SETTLED_MOST)
    return 0;
  if (l->shared) {
    struct hk_shared_message *message = hk_shared_message(HK_RECORD_SETTLED, size);
    if (message)
      hk_logged_settled_write(settled, hk_shared_payload(message));
    return hk_shared_put(l->shared, message);
  }
  pthread_mutex_lock(&l->lock);
  uint8_t *payload = hk_journal_begin(l->journal, HK_RECORD_SETTLED, size);
  if (payload) {
    hk_logged_settled_write(settled, payload);
    position = append_end(l, HK_RECORD_SETTLED, payload, size);
    hk_eventlog_assign(l, settled);
  }
  pthread_mutex_unlock(&l->lock);
  return position;
}

uint64_t hk_eventlog_append_operation(struct hk_eventlog *l, const struct hk_logged_operation *operation)
{
  const size_t size = hk_logged_operation_size(operation);
  uint64_t position = 0;
  if (l->shared) {
    struct hk_shared_message *message = hk_shared_message(HK_RECORD_OPERATION, size);
    if (message)
      hk_logged_operation_write(operation, hk_shared_payload(message));
    return hk_shared_put(l->shared, message);
  }
  pthread_mutex_lock(&l->lock);
  uint8_t *payload = hk_journal_begin(l->journal, HK_RECORD_OPERATION, size);
  if (payload) {
    hk_logged_operation_write(operation, payload);
    position = append_end(l, HK_RECORD_OPERATION, payload, size);
  }
  pthread_mutex_unlock(&l->lock);
  return position;
}

void hk_eventlog_settle(struct hk_eventlog *l, uint64_t position)
{
  pthread_mutex_lock(&l->lock);
  l->settles = true;
  l->settled = position > l->settled ? position : l->settled;
  pthread_mutex_unlock(&l->lock);
}

struct hk_journal *hk_eventlog_journal(struct hk_eventlog *l)
{
  return l->journal;
}

int hk_eventlog_commit(struct hk_eventlog *l)
{
  const int status = hk_journal_commit(l->journal, NULL, NULL);
  return status != 0 ? status : hk_journal_bound(l->journal, l->kept.most, l->keep);
}

void hk_eventlog_keep(struct hk_eventlog *l, uint64_t position)
{
  l->keep = position;
}

/* --- reading --------------------------------------------------------------------------------------------------------- */

uint64_t hk_eventlog_last(struct hk_eventlog *l)
{
  return l->shared ? hk_shared_last(l->shared) : hk_journal_position(l->journal);
}

uint64_t hk_eventlog_shown(struct hk_eventlog *l)
{
  return l->shared ? hk_shared_shown(l->shared) : hk_journal_committed(l->journal);
}

struct hk_event_shared *hk_eventlog_shared(const struct hk_eventlog *l)
{
  return l ? l->shared : NULL;
}

uint64_t hk_eventlog_appended(struct hk_eventlog *l)
{
  return l->shared ? hk_shared_appended(l->shared) : hk_eventlog_last(l);
}

bool hk_eventlog_safe(struct hk_eventlog *l, uint64_t appended)
{
  return l->shared ? hk_shared_safe(l->shared, appended) : hk_eventlog_shown(l) >= appended;
}

bool hk_eventlog_mark(struct hk_eventlog *l, uint64_t *mark)
{
  *mark = l->shared ? hk_shared_mark(l->shared, false) : hk_eventlog_last(l);
  return !l->shared || *mark != 0;
}

bool hk_eventlog_passed(struct hk_eventlog *l, uint64_t mark)
{
  return l->shared ? hk_shared_marked(l->shared) >= mark : hk_eventlog_shown(l) >= mark;
}

uint64_t hk_eventlog_first(struct hk_eventlog *l)
{
  pthread_mutex_lock(&l->lock);
  const uint64_t first = l->kept.oldest ? l->kept.oldest->first : hk_eventlog_last(l) + 1;
  pthread_mutex_unlock(&l->lock);
  return first;
}

uint64_t hk_eventlog_lost(const struct hk_eventlog *l)
{
  return l->lost;
}

uint64_t hk_eventlog_bytes(struct hk_eventlog *l)
{
  pthread_mutex_lock(&l->lock);
  const uint64_t bytes = l->kept.bytes;
  pthread_mutex_unlock(&l->lock);
  return bytes;
}

/* Positions before `position` that the cursor wanted are gone. */
static void miss(struct hk_eventlog_cursor *c, uint64_t position)
{
  if (c->next < position) {
    c->missed += position - c->next;
    c->next = position;
  }
}

/* Visits an entry. False: it ends the visit. */
static bool event_log_show(const struct hk_event_entry *e, const uint8_t *payload, const struct hk_eventlog_visit *visit,
                           void *arg, bool unsure)
{
  if (e->type == HK_RECORD_EVENT && visit->event) {
    struct hk_logged logged;
    hk_logged_view(payload, &logged);
    logged.position = e->position;
    logged.unsure = unsure;
    logged.incident = e->incident;
    visit->event(arg, &logged);
  } else if (e->type == HK_RECORD_INCIDENT && visit->incident) {
    struct hk_logged_incident incident;
    hk_logged_incident_view(payload, &incident);
    incident.position = e->position;
    incident.unsure = unsure;
    visit->incident(arg, &incident);
    return false;
  } else if (e->type == HK_RECORD_SETTLED && visit->settled) {
    struct hk_logged_settled settled;
    if (hk_logged_settled_read(payload, e->bytes - sizeof *e, &settled))
      visit->settled(arg, &settled, e->position);
  } else if (e->type == HK_RECORD_OPERATION && visit->operation) {
    struct hk_logged_operation operation;
    hk_logged_operation_view(payload, &operation);
    operation.position = e->position;
    operation.unsure = unsure;
    visit->operation(arg, &operation);
  }
  return true;
}

uint32_t hk_eventlog_visit(struct hk_eventlog *l, struct hk_eventlog_cursor *c, uint64_t last, uint32_t most,
                           const struct hk_eventlog_visit *visit, void *arg)
{
  const uint64_t shown = hk_eventlog_shown(l), sure = l->shared ? UINT64_MAX : hk_journal_sure(l->journal);
  uint32_t n = 0;
  bool more = true;
  if (last > shown)
    last = shown;
  pthread_mutex_lock(&l->lock);
  for (struct hk_event_block *b = hk_blocks_seek(&l->kept, c); more && n < most && c->next <= last;) {
    const struct hk_event_entry e = hk_blocks_entry(&b, c);
    if (e.position > last) { /* there are no more up to `last` */
      miss(c, last + 1);
      break;
    }
    if (visit->waits && l->settles && e.type == HK_RECORD_EVENT && e.position > l->settled && e.position >= c->next)
      break;
    const uint8_t *payload = b->data + c->offset + sizeof e;
    c->offset += e.bytes;
    if (e.position < c->next)
      continue;
    miss(c, e.position);
    more = event_log_show(&e, payload, visit, arg, e.position > sure);
    c->next = e.position + 1;
    n++;
  }
  pthread_mutex_unlock(&l->lock);
  return n;
}

/* --- opening --------------------------------------------------------------------------------------------------------- */

struct opening {
  struct hk_log *log;
  struct hk_marks *marks;
  uint64_t lost; /* maximum number of positions in damaged parts of files after the last event */
  bool hole;     /* there was damage after the last event, */
  uint64_t gone; /* and this total number of positions is missing there */
};

static void event_log_on_damage(void *arg, const struct hk_journal_damaged *d)
{
  struct opening *o = arg;
  if (d->missing)
    hk_log(o->log, HK_LOG_WARNING, "event log: %s is intact, but %s; its events are missing", d->file, d->why);
  else if (d->tail && d->bytes < RECORD_MOST)
    hk_log(o->log, HK_LOG_NOTICE, "event log: %s: its last %llu bytes were cut off: %s", d->file, (unsigned long long)d->bytes,
           d->why);
  else
    hk_log(o->log, HK_LOG_WARNING, "event log: %s: %llu bytes from %llu on are left out, with the events there: %s", d->file,
           (unsigned long long)d->bytes, (unsigned long long)d->at, d->why);
  o->hole = true;
  o->lost += d->bytes / (d->tail ? RECORD_MOST : RECORD_LEAST);
}

/* Reads the records into memory. *position: of the last event. */
static int event_log_take_all(struct hk_eventlog *l, struct hk_journal_reader *reader, struct opening *o, uint64_t *position)
{
  struct hk_record r;
  int status;
  while ((status = hk_journal_next(reader, &r)) > 0) {
    struct hk_logged e;
    struct hk_logged_settled settled;
    const uint64_t at = r.position + 1;
    if (at <= *position || r.count != 1 ||
        !hk_log_record_valid(r.type, r.payload, r.size)) /* records are written twice after a failure of the disk */
      continue;
    hk_blocks_keep(&l->kept, at, r.type, r.payload, r.size);
    o->gone += o->hole ? at - *position - 1 : 0;
    o->hole = false;
    *position = at;
    o->lost = 0;
    if (r.type == HK_RECORD_SETTLED && hk_logged_settled_read(r.payload, r.size, &settled))
      hk_eventlog_assign(l, &settled);
    if (r.type != HK_RECORD_EVENT)
      continue;
    hk_logged_view(r.payload, &e);
    e.position = at;
    if ((status = hk_past_reach(&l->past, &e)) != 0)
      return status;
  }
  return status < 0 ? status : hk_journal_mend(reader);
}

/* The position to continue after, which exceeds all published ones. last: of the last existing event. */
static uint64_t event_log_go_on_behind(struct opening *o, uint64_t last)
{
  struct hk_journal_mark mark;
  uint64_t behind = last + o->lost;
  if (!o->marks || !hk_marks_get(o->marks, HK_MARK_EVENTS, &mark))
    return behind;
  if (mark.position > last) { /* more may have been published in the last second before a power loss */
    o->gone += mark.position - last;
    behind = mark.reserved > behind ? mark.reserved : behind;
  }
  return mark.apart ? (mark.reserved > behind ? mark.reserved : behind) + FAR : behind;
}

static int open_log(struct hk_eventlog *l, const struct hk_journal_place *place, struct opening *o, char *error, size_t size)
{
  struct hk_journal_reader *reader;
  uint64_t position = 0;
  char why[256] = "";
  int status = hk_journal_read(&reader, place, 0, event_log_on_damage, o, why, sizeof why);
  if (status == 0) {
    status = event_log_take_all(l, reader, o, &position);
    hk_journal_read_close(reader);
  }
  if (status == 0)
    status = hk_journal_new(&l->journal, place, event_log_go_on_behind(o, position));
  l->lost = o->gone;
  if (status == 0 && l->lost > 0)
    hk_log(o->log, HK_LOG_WARNING,
           "event log: at least %llu published events are lost; the last one present has position %llu, and the next one "
           "gets "
           "%llu. Subscribers that ask for the lost ones get a gap notice",
           (unsigned long long)l->lost, (unsigned long long)position, (unsigned long long)hk_journal_position(l->journal) + 1);
  if (status != 0)
    snprintf(error, size, "event log: %s", why[0] ? why : strerror(-status));
  return status;
}

int hk_eventlog_open(struct hk_eventlog **out, const struct hk_disk *disk, int folder, uint64_t most, struct hk_marks *marks,
                     struct hk_log *log, char *error, size_t size)
{
  struct opening opening = { .log = log, .marks = marks };
  struct hk_eventlog *l = calloc(1, sizeof *l);
  if (!l) {
    snprintf(error, size, "event log: no memory");
    return -ENOMEM;
  }
  l->kept.most = most < HK_EVENTLOG_LEAST ? HK_EVENTLOG_LEAST : most;
  pthread_mutex_init(&l->lock, NULL);
  if (hk_past_open(&l->past) != 0) {
    snprintf(error, size, "event log: no random bytes for its table");
    hk_eventlog_free(l);
    return -EIO;
  }
  struct hk_journal_place place = hk_eventlog_place(disk, folder, l->kept.most);
  place.marks = marks;
  place.mark = HK_MARK_EVENTS;
  const int status = open_log(l, &place, &opening, error, size);
  if (status != 0) {
    hk_eventlog_free(l);
    return status;
  }
  *out = l;
  return 0;
}

void hk_eventlog_free(struct hk_eventlog *l)
{
  if (!l)
    return;
  hk_blocks_free(&l->kept);
  hk_journal_free(l->journal);
  hk_shared_free(l->shared);
  hk_past_free(&l->past);
  pthread_mutex_destroy(&l->lock);
  free(l);
}
