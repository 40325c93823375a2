/* Records are appended to one buffer while the commit thread writes another; a take swaps them. */
#include "daemon/base/log.h"
#include "daemon/durable/journal_format.h"
#include "daemon/durable/journal_internal.h"
#include "daemon/durable/journal_segments.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define BUFFER_LEAST (1u << 20)

int hk_journal_new(struct hk_journal **out, const struct hk_journal_place *place, uint64_t position)
{
  struct hk_journal *j = calloc(1, sizeof *j);
  if (!j)
    return -ENOMEM;
  j->place = *place;
  j->file = -1;
  pthread_mutex_init(&j->lock, NULL);
  atomic_init(&j->position, position);
  atomic_init(&j->committed, position);
  atomic_init(&j->sure, place->marks ? position : UINT64_MAX);
  const int status = hk_journal_find_segments(j);
  if (status != 0) {
    hk_journal_free(j);
    return status;
  }
  *out = j;
  return 0;
}

void hk_journal_free(struct hk_journal *j)
{
  if (!j)
    return;
  if (j->file >= 0)
    close(j->file);
  free(j->segments);
  free(j->filling.data);
  free(j->taken.data);
  pthread_mutex_destroy(&j->lock);
  free(j);
}

/* --- appending ------------------------------------------------------------------------------------------------------- */

static int journal_reserve(struct hk_journal_buffer *b, size_t more)
{
  size_t capacity = b->capacity ? b->capacity : BUFFER_LEAST;
  while (capacity - b->size < more)
    capacity *= 2;
  if (capacity == b->capacity)
    return 0;
  uint8_t *data = realloc(b->data, capacity);
  if (!data)
    return -ENOMEM;
  b->data = data;
  b->capacity = capacity;
  return 0;
}

void *hk_journal_begin(struct hk_journal *j, uint32_t type, size_t size)
{
  const size_t bytes = hk_record_bytes(size);
  pthread_mutex_lock(&j->lock);
  struct hk_journal_buffer *b = &j->filling;
  if (size > HK_RECORD_MAX || journal_reserve(b, bytes) != 0) {
    pthread_mutex_unlock(&j->lock);
    return NULL;
  }
  const uint64_t position = atomic_load_explicit(&j->position, memory_order_relaxed);
  const struct hk_record_head head = { .size = (uint32_t)size, .type = type, .position = position };
  if (b->size == 0) {
    b->since = hk_now();
    b->begin = position;
  }
  j->record = b->size;
  memcpy(b->data + b->size, &head, sizeof head);
  memset(b->data + b->size + bytes - 8, 0, 8); /* the padding; a payload may be shorter than that, and is written afterwards */
  b->size += bytes;
  return b->data + j->record + sizeof head;
}

uint64_t hk_journal_end(struct hk_journal *j, uint32_t count)
{
  struct hk_journal_buffer *b = &j->filling;
  const uint64_t position = atomic_load_explicit(&j->position, memory_order_relaxed) + count;
  memcpy(b->data + j->record + offsetof(struct hk_record_head, count), &count, sizeof count);
  b->end = position;
  atomic_store_explicit(&j->position, position, memory_order_release);
  if (j->paused) {
    b->size = 0;
    atomic_store_explicit(&j->committed, position, memory_order_release);
  }
  atomic_store_explicit(&j->waiting, b->size, memory_order_release);
  pthread_mutex_unlock(&j->lock);
  return position;
}

bool hk_journal_room(const struct hk_journal *j)
{
  return atomic_load_explicit(&j->waiting, memory_order_acquire) < HK_JOURNAL_ROOM;
}

uint64_t hk_journal_position(const struct hk_journal *j)
{
  return atomic_load_explicit(&j->position, memory_order_acquire);
}

uint64_t hk_journal_committed(const struct hk_journal *j)
{
  return atomic_load_explicit(&j->committed, memory_order_acquire);
}

int64_t hk_journal_waiting_since(struct hk_journal *j)
{
  pthread_mutex_lock(&j->lock);
  const int64_t since = j->taken_since != 0 ? j->taken_since : j->filling.size > 0 ? j->filling.since : 0;
  pthread_mutex_unlock(&j->lock);
  return since;
}

/* --- marks ----------------------------------------------------------------------------------------------------------- */

static struct hk_journal_mark journal_mark_of(uint64_t position, const struct hk_journal_segment *last)
{
  return (struct hk_journal_mark){ .position = position, .segment = last->number, .bytes = last->bytes, .salt = last->salt };
}

static int put_mark(struct hk_journal *j, uint64_t position, const struct hk_journal_segment *last, bool apart)
{
  struct hk_journal_mark mark = journal_mark_of(position, last);
  mark.apart = apart;
  const int status = j->place.marks ? hk_marks_put(j->place.marks, j->place.mark, &mark) : 0;
  if (status == 0)
    j->marked = position;
  if (status == 0 && j->place.marks && !apart)
    atomic_store_explicit(&j->sure, position, memory_order_release);
  return status;
}

/* The last segment; all zero: none. */
static struct hk_journal_segment journal_last_of(struct hk_journal *j)
{
  pthread_mutex_lock(&j->lock);
  const struct hk_journal_segment last = j->n_segments > 0 ? j->segments[j->n_segments - 1] : (struct hk_journal_segment){ 0 };
  pthread_mutex_unlock(&j->lock);
  return last;
}

int hk_journal_note(struct hk_journal *j)
{
  const struct hk_journal_segment last = journal_last_of(j);
  const bool shows = j->place.kind == HK_JOURNAL_EVENTS; /* points are acknowledged only when they are on the disk */
  return put_mark(j, shows ? hk_journal_committed(j) : j->marked, &last, false);
}

int hk_journal_note_apart(struct hk_journal *j)
{
  const struct hk_journal_segment last = journal_last_of(j);
  int status = put_mark(j, hk_journal_position(j), &last, true);
  if (status == 0 && j->place.marks)
    status = hk_marks_sync(j->place.marks);
  if (status == 0)
    atomic_store_explicit(&j->sure, UINT64_MAX, memory_order_release);
  return status;
}

uint64_t hk_journal_sure(const struct hk_journal *j)
{
  return atomic_load_explicit(&j->sure, memory_order_acquire);
}

int hk_journal_note_end(struct hk_journal *j)
{
  const struct hk_journal_segment last = journal_last_of(j);
  struct hk_journal_mark mark = journal_mark_of(hk_journal_committed(j), &last);
  mark.reserved = mark.position;
  return j->place.marks ? hk_marks_end(j->place.marks, j->place.mark, &mark) : 0;
}

/* --- committing ------------------------------------------------------------------------------------------------------ */

bool hk_journal_take(struct hk_journal *j)
{
  if (j->taken.size > 0)
    return true; /* was not committed the last time */
  pthread_mutex_lock(&j->lock);
  const struct hk_journal_buffer full = j->filling;
  if (full.size > 0) {
    j->filling = j->taken;
    j->filling.size = 0;
    j->taken = full;
    j->taken_since = full.since;
    atomic_store_explicit(&j->waiting, 0, memory_order_release);
  }
  pthread_mutex_unlock(&j->lock);
  return full.size > 0;
}

bool hk_journal_behind(const struct hk_journal *j)
{
  return j->taken.size > 0;
}

/* Closes the open segment, of which only the committed part is needed. */
static void leave_segment(struct hk_journal *j, bool broken)
{
  char name[HK_DISK_NAME_MAX];
  if (j->file < 0)
    return;
  close(j->file);
  j->file = -1;
  if (broken) { /* a reader would cut it, too; this frees its room on a full disk at once */
    hk_segment_name(j, j->open.number, name);
    (void)hk_disk_cut(j->place.disk, j->place.folder, name, j->open.bytes);
  }
}

/* Makes room for another segment in the list. */
static int list_segment(struct hk_journal *j, const struct hk_journal_segment *s)
{
  pthread_mutex_lock(&j->lock);
  struct hk_journal_segment *segments = realloc(j->segments, (j->n_segments + 1) * sizeof *segments);
  if (segments) {
    segments[j->n_segments++] = *s;
    j->segments = segments;
    j->number = s->number + 1;
  }
  pthread_mutex_unlock(&j->lock);
  return segments ? 0 : -ENOMEM;
}

/* Records the previous segment in a head, so that a reader notices if that is missing. */
static void name_before(struct hk_journal *j, struct hk_segment_head *head)
{
  pthread_mutex_lock(&j->lock);
  if (j->n_segments > 0) {
    const struct hk_journal_segment *last = &j->segments[j->n_segments - 1];
    head->before = last->number;
    head->before_bytes = last->bytes;
    head->before_salt = last->salt;
  }
  pthread_mutex_unlock(&j->lock);
}

static int begin_segment(struct hk_journal *j)
{
  const struct hk_disk *disk = j->place.disk;
  struct hk_segment_head head = { .magic = HK_SEGMENT_MAGIC,
                                  .version = HK_JOURNAL_VERSION,
                                  .kind = j->place.kind,
                                  .shard = j->place.shard,
                                  .shards = j->place.shards,
                                  .number = j->number,
                                  .begin = j->taken.begin,
                                  .made = hk_wall() };
  char name[HK_DISK_NAME_MAX];
  if (getrandom(&head.salt, sizeof head.salt, 0) != sizeof head.salt)
    return -EIO;
  name_before(j, &head);
  head.checksum = hk_segment_checksum(&head);
  hk_segment_name(j, head.number, name);
  int status = hk_disk_create(disk, j->place.folder, name, &j->file);
  if (status == -EEXIST) /* was made, and could not be removed when the next step failed */
    j->number++;
  if (status != 0)
    return status;
  status = hk_disk_write(disk, j->file, &head, sizeof head);
  if (status == 0)
    status = hk_disk_sync_folder(disk, j->place.folder);
  j->open = (struct hk_journal_segment){ .number = head.number, .begin = head.begin, .bytes = sizeof head, .salt = head.salt };
  if (status == 0)
    status = hk_disk_look(disk, j->file, NULL, &j->open.file);
  if (status == 0)
    status = list_segment(j, &j->open);
  if (status != 0) {
    close(j->file);
    j->file = -1;
    (void)hk_disk_remove(disk, j->place.folder, name);
    return status;
  }
  return 0;
}

static struct hk_record_head *head_at(const struct hk_journal_buffer *b, size_t at)
{
  return (struct hk_record_head *)(void *)(b->data + at);
}

static void journal_seal(struct hk_journal *j)
{
  const struct hk_journal_buffer *b = &j->taken;
  for (size_t at = 0; at < b->size; at += hk_record_bytes(head_at(b, at)->size)) {
    struct hk_record_head *head = head_at(b, at);
    head->checksum = hk_record_checksum(head, head + 1, j->open.salt);
  }
}

/* Whether the open segment still has its name, and contains exactly what was written to it. -ESTALE: no. */
static int check_open(struct hk_journal *j)
{
  struct hk_disk_file now;
  const int status = hk_disk_look(j->place.disk, j->file, NULL, &now);
  if (status != 0 || (now.links > 0 && now.size == j->open.bytes + j->taken.size))
    return status;
  pthread_mutex_lock(&j->lock);
  for (size_t i = 0; i < j->n_segments; i++)
    j->segments[i].stale |= j->segments[i].number == j->open.number;
  pthread_mutex_unlock(&j->lock);
  return -ESTALE;
}

static int write_taken(struct hk_journal *j)
{
  pthread_mutex_lock(&j->lock);
  const bool renew = j->renew;
  j->renew = false;
  pthread_mutex_unlock(&j->lock);
  if (renew || (j->file >= 0 && j->open.bytes > HK_JOURNAL_HEADER && j->open.bytes + j->taken.size > j->place.segment))
    leave_segment(j, false);
  int status = j->file < 0 ? begin_segment(j) : 0;
  if (status != 0)
    return status;
  journal_seal(j);
  status = hk_disk_write(j->place.disk, j->file, j->taken.data, j->taken.size);
  if (status == 0)
    status = hk_disk_sync(j->place.disk, j->file);
  if (status == 0)
    status = check_open(j);
  if (status == 0) {
    struct hk_journal_segment now = j->open;
    now.bytes += j->taken.size;
    status = put_mark(j, j->taken.end, &now, false);
  }
  if (status != 0) {
    leave_segment(j, status != -ESTALE); /* its name may be another program's file */
    return status;
  }
  j->open.bytes += j->taken.size;
  return 0;
}

static void journal_tell(const struct hk_journal_buffer *b, void (*each)(void *arg, const struct hk_record *record), void *arg)
{
  for (size_t at = 0; at < b->size; at += hk_record_bytes(head_at(b, at)->size)) {
    const struct hk_record_head *head = head_at(b, at);
    const struct hk_record record = { head->type, head->count, head->position, head->size, (const uint8_t *)(head + 1) };
    each(arg, &record);
  }
}

int hk_journal_commit(struct hk_journal *j, void (*each)(void *arg, const struct hk_record *record), void *arg)
{
  const int status = j->taken.size > 0 ? write_taken(j) : 0;
  pthread_mutex_lock(&j->lock);
  const bool done = status == 0, over = done || j->paused;
  if (done && j->n_segments > 0 && j->segments[j->n_segments - 1].number == j->open.number)
    j->segments[j->n_segments - 1].bytes = j->open.bytes;
  if (done && atomic_load_explicit(&j->committed, memory_order_relaxed) < j->taken.end)
    atomic_store_explicit(&j->committed, j->taken.end, memory_order_release);
  if (over)
    j->taken_since = 0;
  pthread_mutex_unlock(&j->lock);
  if (done && each)
    journal_tell(&j->taken, each, arg);
  if (over)
    j->taken.size = 0;
  return over ? 0 : status;
}

void hk_journal_pause(struct hk_journal *j)
{
  pthread_mutex_lock(&j->lock);
  j->paused = true;
  j->filling.size = 0;
  atomic_store_explicit(&j->waiting, 0, memory_order_release);
  atomic_store_explicit(&j->committed, atomic_load_explicit(&j->position, memory_order_relaxed), memory_order_release);
  pthread_mutex_unlock(&j->lock);
}

uint64_t hk_journal_resume(struct hk_journal *j)
{
  pthread_mutex_lock(&j->lock);
  j->paused = false;
  j->renew = true;
  const uint64_t position = atomic_load_explicit(&j->position, memory_order_relaxed);
  pthread_mutex_unlock(&j->lock);
  return position;
}
