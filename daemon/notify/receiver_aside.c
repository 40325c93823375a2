#include "daemon/notify/receiver_aside.h"

#include "daemon/notify/receiver_batch.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define SECOND 1000000000ll
#define LONGEST_PAUSE (60 * SECOND)
#define MAGIC "HKASIDE\n"
#define FRESH 1u /* flag of the file */

struct image_head {
  char magic[8];
  uint64_t id;          /* hk_place */
  uint64_t n, checksum; /* XXH3 of the entries */
};
struct image_entry {
  uint64_t position;
  uint32_t message, flags;
};

static void aside_publish(struct hk_receiver *r, uint64_t lost)
{
  pthread_mutex_lock(&r->lock);
  r->look.aside = r->aside.n;
  r->look.forgotten += lost;
  pthread_mutex_unlock(&r->lock);
}

/* n alerts or ends reach the receiver no more. */
static void aside_lose(struct hk_receiver *r, uint64_t n, const char *why)
{
  if (n > 0)
    hk_log(r->log, HK_LOG_ERROR,
           "[notify %s]: %llu alerts or ends that were set aside are not sent again: %s; they are in notify-%s.undelivered",
           r->rule.name, (unsigned long long)n, why, r->rule.name);
  aside_publish(r, n);
}

static void aside_file_name(const struct hk_receiver *r, char *out, size_t size)
{
  snprintf(out, size, "notify-%s.aside", r->rule.name);
}

static void aside_write(struct hk_receiver *r)
{
  char name[HK_CONFIG_NAME_MAX + 32], beside[HK_CONFIG_NAME_MAX + 40];
  struct image_head head = { .magic = MAGIC, .id = r->place.id, .n = r->aside.n };
  struct image_entry *entry = malloc((r->aside.n + 1) * sizeof *entry);
  struct hk_buffer bytes = { 0 };
  int status = entry ? 0 : -ENOMEM;
  r->aside.changed = false;
  aside_publish(r, 0);
  for (uint32_t i = 0; entry && i < r->aside.n; i++) {
    const struct hk_aside_entry *e = &r->aside.entry[i];
    entry[i] = (struct image_entry){ e->position, e->message, e->fresh ? FRESH : 0 };
  }
  if (entry) {
    head.checksum = XXH3_64bits(entry, r->aside.n * sizeof *entry);
    hk_buffer_put(&bytes, (const char *)&head, sizeof head);
    hk_buffer_put(&bytes, (const char *)entry, r->aside.n * sizeof *entry);
    status = bytes.failed ? -ENOMEM : 0;
  }
  free(entry);
  aside_file_name(r, name, sizeof name);
  snprintf(beside, sizeof beside, "%s.new", name);
  if (status == 0 && r->durable->folder >= 0)
    status = hk_disk_replace(&r->durable->disk, r->durable->folder, name, beside, bytes.data, bytes.size, NULL);
  hk_buffer_free(&bytes);
  if (status != 0)
    hk_log(r->log, HK_LOG_WARNING, "[notify %s]: %s cannot be written: %s; a restart may forget what is set aside", r->rule.name,
           name, strerror(-status));
}

static void aside_remove(struct hk_receiver *r, uint32_t i)
{
  r->aside.entry[i] = r->aside.entry[--r->aside.n];
  r->aside.changed = true;
}

static struct hk_aside_entry *aside_find(struct hk_receiver *r, uint64_t key)
{
  for (uint32_t i = 0; i < r->aside.n; i++)
    if (r->aside.entry[i].key == key)
      return &r->aside.entry[i];
  return NULL;
}

static bool aside_put(struct hk_receiver *r, const struct hk_notice *n, uint32_t message, bool fresh)
{
  const uint64_t key = hk_told_key(&n->logged);
  struct hk_aside_entry *e = aside_find(r, key);
  if (!e && r->aside.n == r->aside.room) {
    const uint32_t room = r->aside.room ? 2 * r->aside.room : 64;
    struct hk_aside_entry *more = room <= HK_TOLD_MOST ? realloc(r->aside.entry, room * sizeof *more) : NULL;
    if (!more)
      return false;
    r->aside.entry = more;
    r->aside.room = room;
  }
  e = e ? e : &r->aside.entry[r->aside.n++];
  *e = (struct hk_aside_entry){ .key = key,
                                .position = n->logged.position,
                                .due = hk_now() + SECOND,
                                .message = message,
                                .severity = n->logged.event.severity,
                                .over = hk_notice_over(n),
                                .fresh = fresh };
  r->aside.changed = true;
  r->aside.message = message > r->aside.message ? message : r->aside.message;
  return true;
}

/* Whether the receiver has not heard of the alert, if it misses this. */
static bool aside_is_fresh(const struct hk_notice *n)
{
  return !hk_notice_over(n) && !n->again && (n->change.id == 0 || n->change.kind == HANKEL_INCIDENT_TOLD);
}

void hk_aside_add(struct hk_receiver *r, uint32_t n)
{
  const uint32_t message = r->aside.message + 1;
  uint64_t lost = 0;
  for (uint32_t i = 0; i < n; i++) {
    const struct hk_notice *one = r->batch.chosen[i];
    struct hk_aside_entry *e = aside_find(r, hk_told_key(&one->logged));
    if (one->logged.event.kind == HK_EVENT_ACKNOWLEDGED)
      continue;
    if (hk_notice_over(one) && e && e->fresh) { /* it came and went unheard */
      aside_remove(r, (uint32_t)(e - r->aside.entry));
      continue;
    }
    lost += !aside_put(r, one, message, aside_is_fresh(one) || (e && e->fresh));
  }
  for (uint32_t i = 0; i < r->aside.n; i++)
    if (r->aside.refusing && r->aside.entry[i].message == message)
      r->aside.entry[i].refused_at = r->look.messages + 1;
  aside_lose(r, lost, "there are too many");
  aside_write(r);
}

void hk_aside_delivered(struct hk_receiver *r, uint32_t n)
{
  for (uint32_t i = 0; i < n && r->aside.n > 0; i++) {
    const struct hk_aside_entry *e = aside_find(r, hk_told_key(&r->batch.chosen[i]->logged));
    if (e && e->position <= r->batch.chosen[i]->logged.position)
      aside_remove(r, (uint32_t)(e - r->aside.entry));
  }
  if (r->aside.changed)
    aside_write(r);
}

/* A message that is refused twice, between which the receiver has taken another, is at fault itself. */
void hk_aside_failed(struct hk_receiver *r, uint32_t n, bool refused, int64_t retry_after)
{
  uint64_t lost = 0;
  r->aside.failed = true;
  for (uint32_t i = 0; i < n; i++) {
    struct hk_aside_entry *e = aside_find(r, hk_told_key(&r->batch.chosen[i]->logged));
    if (!e)
      continue;
    if (refused && e->refused_at != 0) {
      aside_remove(r, (uint32_t)(e - r->aside.entry));
      lost++;
      continue;
    }
    e->refused_at = refused ? r->look.messages + 1 : 0;
    e->due = e->due < hk_now() + retry_after ? hk_now() + retry_after : e->due;
  }
  aside_lose(r, lost, "the receiver refuses them and takes others");
  if (lost > 0)
    aside_write(r);
}

void hk_aside_renew(struct hk_receiver *r)
{
  for (uint32_t i = 0; i < r->aside.n; i++) {
    struct hk_aside_entry *e = &r->aside.entry[i];
    e->due = 0;
    e->tries = 0;
    e->refused_at = 0;
  }
}

void hk_aside_prune(struct hk_receiver *r)
{
  const uint64_t first = hk_eventlog_first(r->events);
  uint64_t lost = 0, deleted = 0;
  for (uint32_t i = r->aside.n; i-- > 0;) {
    const struct hk_aside_entry *e = &r->aside.entry[i];
    if (e->over ? r->rule.resolved : hk_told_stands(&r->alerts.told, e->key))
      continue;
    const bool unknown = !e->over && !hk_told_knows(&r->alerts.told, e->key);
    deleted += unknown && e->position < first; /* then what it remembers of the log does not have it */
    lost += unknown && e->position >= first && r->alerts.told.overflowed;
    aside_remove(r, i);
  }
  aside_lose(r, deleted, "the event log has deleted them");
  aside_lose(r, lost, "more alerts stand than are remembered");
  if (r->aside.changed)
    aside_write(r);
}

/* Whether it may be sent now. */
static bool aside_may_go(const struct hk_receiver *r, const struct hk_aside_entry *e, int64_t now)
{
  return e->due <= now && e->refused_at <= r->look.messages &&
         (e->over || !r->quiet || (double)e->severity >= r->rule.quiet.severity);
}

static int aside_order(const void *a, const void *b)
{
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

uint32_t hk_aside_choose(struct hk_receiver *r, int64_t now, uint64_t *position)
{
  const struct hk_aside_entry *first = NULL;
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->aside.n; i++) {
    const struct hk_aside_entry *e = &r->aside.entry[i];
    if (aside_may_go(r, e, now) && (!first || e->due < first->due || (e->due == first->due && e->position < first->position)))
      first = e;
  }
  const uint32_t message = first ? first->message : 0;
  for (uint32_t i = 0; first && i < r->aside.n && n < HK_BATCH; i++) {
    struct hk_aside_entry *e = &r->aside.entry[i];
    if (e->message != message || !aside_may_go(r, e, now))
      continue;
    const int64_t pause = e->tries < 6 ? SECOND << (e->tries + 1) : LONGEST_PAUSE;
    position[n++] = e->position;
    e->tries++;
    e->due = now + pause;
  }
  qsort(position, n, sizeof *position, aside_order);
  return n;
}

void hk_aside_drop(struct hk_receiver *r, const uint64_t *position, uint32_t n, bool deleted)
{
  const uint64_t first = hk_eventlog_first(r->events);
  uint64_t lost = 0;
  for (uint32_t i = r->aside.n; i-- > 0;) {
    const uint64_t at = r->aside.entry[i].position;
    if (!bsearch(&at, position, n, sizeof *position, aside_order) || (deleted && at >= first))
      continue;
    aside_remove(r, i);
    lost += deleted;
  }
  aside_lose(r, lost, "the event log has deleted them");
  if (r->aside.changed)
    aside_write(r);
}

static int aside_read_file(struct hk_receiver *r, struct image_entry **out, uint64_t *n)
{
  char name[HK_CONFIG_NAME_MAX + 32];
  struct image_head head;
  uint64_t size;
  int file;
  aside_file_name(r, name, sizeof name);
  int status = r->durable->folder < 0 ? -ENOENT : hk_disk_open(&r->durable->disk, r->durable->folder, name, &file, &size);
  if (status != 0)
    return status;
  status = hk_disk_read(&r->durable->disk, file, 0, &head, sizeof head);
  if (status == 0 && (memcmp(head.magic, MAGIC, sizeof head.magic) != 0 || head.id != r->place.id || head.n > HK_TOLD_MOST ||
                      size != sizeof head + head.n * sizeof **out))
    status = -EBADMSG;
  *out = status == 0 ? malloc((head.n + 1) * sizeof **out) : NULL;
  if (status == 0)
    status = *out ? hk_disk_read(&r->durable->disk, file, sizeof head, *out, head.n * sizeof **out) : -ENOMEM;
  close(file);
  if (status == 0 && XXH3_64bits(*out, head.n * sizeof **out) != head.checksum)
    status = -EBADMSG;
  *n = status == 0 ? head.n : 0;
  return status;
}

void hk_aside_read(struct hk_receiver *r)
{
  struct image_entry *entry = NULL;
  uint64_t n = 0, lost = 0;
  const int status = aside_read_file(r, &entry, &n);
  r->aside.n = 0;
  if (status != 0 && status != -ENOENT)
    hk_log(r->log, HK_LOG_WARNING, "[notify %s]: notify-%s.aside cannot be used: %s; what was set aside is not sent again",
           r->rule.name, r->rule.name, status == -EBADMSG ? "it is damaged, or of another event log" : strerror(-status));
  for (uint64_t i = 0; i < n; i++) {
    const uint64_t first = hk_eventlog_first(r->events);
    if (hk_receiver_again(r, &entry[i].position, 1) == 1)
      lost += !aside_put(r, &r->batch.notice[0], entry[i].message, entry[i].flags & FRESH);
    else
      lost += entry[i].position < first;
  }
  free(entry);
  hk_aside_renew(r);
  aside_lose(r, lost, "the event log has deleted them");
}
