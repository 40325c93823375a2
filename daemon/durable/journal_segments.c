/* The files of a journal: finds and checks them, and removes those that are no longer needed. */
#include "daemon/durable/journal_segments.h"

#include "daemon/durable/journal_format.h"
#include "daemon/durable/journal_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int hk_journal_find_segments(struct hk_journal *j)
{
  uint64_t *numbers;
  size_t n;
  int status = hk_disk_list(j->place.disk, j->place.folder, j->place.stem, j->place.suffix, &numbers, &n);
  if (status != 0)
    return status;
  j->segments = n > 0 ? calloc(n, sizeof *j->segments) : NULL;
  if (n > 0 && !j->segments)
    status = -ENOMEM;
  for (size_t i = 0; i < n && status == 0; i++) {
    struct hk_journal_segment *s = &j->segments[i];
    struct hk_segment_head head;
    char name[HK_DISK_NAME_MAX];
    int file;
    hk_segment_name(j, numbers[i], name);
    *s = (struct hk_journal_segment){ .number = numbers[i], .begin = i > 0 ? s[-1].begin : 0 };
    status = hk_disk_look(j->place.disk, j->place.folder, name, &s->file);
    if (status != 0)
      break;
    status = hk_disk_open(j->place.disk, j->place.folder, name, &file, &s->bytes);
    if (status != 0)
      break;
    const size_t some = s->bytes < sizeof head ? (size_t)s->bytes : sizeof head;
    if (hk_disk_read(j->place.disk, file, 0, &head, some) == 0 && hk_segment_head_good(&head, some)) {
      s->begin = head.begin;
      s->salt = head.salt;
    }
    close(file);
    j->n_segments++;
  }
  j->number = n > 0 ? numbers[n - 1] + 1 : 1;
  free(numbers);
  if (status == 0) /* nor are the numbers of segments that were set aside used again */
    status = hk_disk_list(j->place.disk, j->place.folder, j->place.stem, HK_JOURNAL_ASIDE, &numbers, &n);
  if (status == 0) {
    j->number = n > 0 && numbers[n - 1] >= j->number ? numbers[n - 1] + 1 : j->number;
    free(numbers);
  }
  struct hk_journal_mark mark;
  if (j->place.marks && hk_marks_get(j->place.marks, j->place.mark, &mark)) { /* nor those of missing segments */
    j->number = mark.segment >= j->number ? mark.segment + 1 : j->number;
    const uint64_t position = atomic_load_explicit(&j->position, memory_order_relaxed);
    j->marked = mark.position < position ? mark.position : position;
  }
  return status;
}

/* --- losses ---------------------------------------------------------------------------------------------------------- */

/* How a segment differs from what was written. NULL: it does not, or the disk gives no answer. */
static const char *segment_fault(const struct hk_journal *j, const struct hk_journal_segment *s, const char *name)
{
  struct hk_disk_file now;
  const int status = hk_disk_look(j->place.disk, j->place.folder, name, &now);
  if (status == -ENOENT)
    return "was removed or renamed";
  if (status != 0)
    return NULL;
  if (!hk_disk_same(&now, &s->file))
    return "was replaced by another file";
  return now.size < s->bytes || s->stale ? "was cut, or written to by another program" : NULL;
}

bool hk_journal_look(struct hk_journal *j, bool forget, struct hk_journal_gone *out)
{
  size_t kept = 0;
  *out = (struct hk_journal_gone){ 0 };
  pthread_mutex_lock(&j->lock);
  const uint64_t committed = atomic_load_explicit(&j->committed, memory_order_relaxed);
  for (size_t i = 0; i < j->n_segments; i++) {
    const struct hk_journal_segment s = j->segments[i];
    const uint64_t end = i + 1 < j->n_segments ? j->segments[i + 1].begin : committed;
    char name[HK_DISK_NAME_MAX];
    hk_segment_name(j, s.number, name);
    const char *how = segment_fault(j, &s, name);
    if (how && out->segments++ == 0) {
      memcpy(out->name, name, sizeof name);
      out->how = how;
    }
    out->count += how && end > s.begin ? end - s.begin : 0;
    if (!how || !forget)
      j->segments[kept++] = s;
  }
  j->n_segments = kept;
  pthread_mutex_unlock(&j->lock);
  return out->segments > 0;
}

/* --- removing -------------------------------------------------------------------------------------------------------- */

static uint64_t segments_bytes_of(const struct hk_journal *j)
{
  uint64_t bytes = 0;
  for (size_t i = 0; i < j->n_segments; i++)
    bytes += j->segments[i].bytes;
  return bytes;
}

/* Removes segments, oldest first but never the last one, while there are more than this many bytes and all records of the
 * segment are below a position. Appending does not wait for that. */
static int remove_oldest(struct hk_journal *j, uint64_t bytes, uint64_t position)
{
  int status = 0;
  bool any = true;
  while (any && status == 0) {
    char name[HK_DISK_NAME_MAX];
    pthread_mutex_lock(&j->lock);
    any = j->n_segments > 1 && j->segments[1].begin < position && segments_bytes_of(j) > bytes;
    if (any) {
      hk_segment_name(j, j->segments[0].number, name);
      memmove(j->segments, j->segments + 1, --j->n_segments * sizeof *j->segments);
    }
    pthread_mutex_unlock(&j->lock);
    if (any)
      status = hk_disk_remove(j->place.disk, j->place.folder, name);
  }
  return status == -ENOENT ? 0 : status;
}

int hk_journal_trim(struct hk_journal *j, uint64_t position)
{
  /* Records that do not advance the position may be at the end of a segment, at the position at which the next one begins. */
  return remove_oldest(j, 0, position);
}

int hk_journal_bound(struct hk_journal *j, uint64_t bytes, uint64_t keep)
{
  return remove_oldest(j, bytes, keep < UINT64_MAX ? keep + 1 : keep);
}

uint64_t hk_journal_begins(struct hk_journal *j)
{
  pthread_mutex_lock(&j->lock);
  const uint64_t begin = j->n_segments > 0 ? j->segments[0].begin : atomic_load_explicit(&j->position, memory_order_relaxed);
  pthread_mutex_unlock(&j->lock);
  return begin;
}

uint64_t hk_journal_bytes(struct hk_journal *j)
{
  pthread_mutex_lock(&j->lock);
  const uint64_t bytes = segments_bytes_of(j);
  pthread_mutex_unlock(&j->lock);
  return bytes;
}

int hk_journal_version(const struct hk_journal_place *place, uint32_t *version)
{
  uint64_t *numbers, size;
  size_t n;
  int status = hk_disk_list(place->disk, place->folder, place->stem, place->suffix, &numbers, &n);
  if (status != 0)
    return status;
  *version = 0;
  while (n-- > 0 && *version == 0 && status == 0) {
    struct hk_segment_head head = { 0 };
    char name[HK_DISK_NAME_MAX];
    int file;
    hk_disk_name(name, place->stem, numbers[n], place->suffix);
    status = hk_disk_open(place->disk, place->folder, name, &file, &size);
    if (status != 0)
      break;
    const size_t some = size < sizeof head ? (size_t)size : sizeof head;
    status = hk_disk_read(place->disk, file, 0, &head, some);
    if (status == 0 && hk_segment_head_good(&head, some))
      *version = head.version;
    close(file);
  }
  free(numbers);
  return status;
}
