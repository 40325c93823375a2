/* See marks.h. */
#include "daemon/durable/marks.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC "HKMARKS\n"
#define VERSION 1
#define PLACES 2                      /* per mark */
#define AHEAD 4096u                   /* positions of events that are reserved at a time, for one sync */
#define COUNT_MAX ((uint64_t)1 << 62) /* above any position: sums with a position cannot overflow */

/* One of the two places of a mark. It is smaller than a sector, and within one. */
struct place {
  char magic[8];
  uint32_t version, index;
  uint64_t sequence; /* number of times that the mark was written; it is at place sequence % PLACES */
  uint64_t position, reserved, segment, bytes, salt;
  uint64_t apart;
  uint8_t zero[48];
  uint64_t checksum; /* XXH3 of the bytes before */
};
_Static_assert(sizeof(struct place) == 128, "no padding");
#define FILE_SIZE (HK_MARKS * PLACES * sizeof(struct place))

struct hk_marks {
  const struct hk_disk *disk;
  int folder, file;
  struct hk_disk_file is; /* the open file */
  pthread_mutex_t lock;   /* protects the following: */
  struct hk_journal_mark mark[HK_MARKS];
  uint64_t sequence[HK_MARKS]; /* of the mark; 0: none */
  bool changed;                /* since the last sync */
};

static bool decode(const struct place *p, uint32_t index, struct hk_journal_mark *out)
{
  if (memcmp(p->magic, MAGIC, sizeof p->magic) != 0 || p->checksum != XXH3_64bits(p, offsetof(struct place, checksum)) ||
      p->version != VERSION || p->index != index || p->sequence == 0 || p->sequence >= COUNT_MAX || p->reserved < p->position ||
      p->reserved > COUNT_MAX)
    return false;
  *out = (struct hk_journal_mark){ p->position, p->reserved, p->segment, p->bytes, p->salt, p->apart != 0 };
  return true;
}

/* Reads all marks; sequence 0 means no mark. */
static int marks_read_all(const struct hk_disk *disk, int folder, struct hk_journal_mark mark[HK_MARKS],
                          uint64_t sequence[HK_MARKS])
{
  uint64_t size;
  int file, status = hk_disk_open(disk, folder, HK_MARKS_FILE, &file, &size);
  if (status != 0)
    return status;
  memset(mark, 0, HK_MARKS * sizeof *mark);
  memset(sequence, 0, HK_MARKS * sizeof *sequence);
  for (uint32_t i = 0; i < HK_MARKS * PLACES && (i + 1) * sizeof(struct place) <= size && status == 0; i++) {
    struct place p;
    struct hk_journal_mark m;
    const uint32_t index = i / PLACES;
    status = hk_disk_read(disk, file, i * sizeof p, &p, sizeof p);
    if (status == 0 && decode(&p, index, &m) && p.sequence > sequence[index]) {
      mark[index] = m;
      sequence[index] = p.sequence;
    }
  }
  close(file);
  return status;
}

int hk_marks_read(const struct hk_disk *disk, int folder, struct hk_journal_mark out[HK_MARKS], bool good[HK_MARKS])
{
  uint64_t sequence[HK_MARKS] = { 0 };
  const int status = marks_read_all(disk, folder, out, sequence);
  for (uint32_t i = 0; i < HK_MARKS; i++)
    good[i] = status == 0 && sequence[i] > 0;
  return status;
}

/* Makes a new file with room for all marks, so that later writes need no room. */
static int marks_make(const struct hk_disk *disk, int folder)
{
  int file, status = hk_disk_create(disk, folder, HK_MARKS_FILE, &file);
  void *zeros = status == 0 ? calloc(1, FILE_SIZE) : NULL;
  if (status != 0)
    return status;
  status = zeros ? hk_disk_write(disk, file, zeros, FILE_SIZE) : -ENOMEM;
  if (status == 0)
    status = hk_disk_sync(disk, file);
  if (status == 0)
    status = hk_disk_sync_folder(disk, folder);
  free(zeros);
  close(file);
  return status;
}

/* Opens the file for writing; *made: it did not exist. */
static int marks_open_file(struct hk_marks *m, bool *made)
{
  int status = hk_disk_update(m->disk, m->folder, HK_MARKS_FILE, &m->file);
  *made = status == -ENOENT;
  if (*made) {
    status = marks_make(m->disk, m->folder);
    if (status == 0)
      status = hk_disk_update(m->disk, m->folder, HK_MARKS_FILE, &m->file);
  }
  return status == 0 ? hk_disk_look(m->disk, m->file, NULL, &m->is) : status;
}

int hk_marks_open(struct hk_marks **out, const struct hk_disk *disk, int folder)
{
  struct hk_marks *m = calloc(1, sizeof *m);
  bool made;
  if (!m)
    return -ENOMEM;
  m->disk = disk;
  m->folder = folder;
  m->file = -1;
  pthread_mutex_init(&m->lock, NULL);
  int status = marks_open_file(m, &made);
  if (status == 0)
    status = marks_read_all(disk, folder, m->mark, m->sequence);
  if (status != 0) {
    hk_marks_free(m);
    return status;
  }
  *out = m;
  return 0;
}

void hk_marks_free(struct hk_marks *m)
{
  if (!m)
    return;
  if (m->file >= 0)
    close(m->file);
  pthread_mutex_destroy(&m->lock);
  free(m);
}

bool hk_marks_get(struct hk_marks *m, uint32_t index, struct hk_journal_mark *out)
{
  pthread_mutex_lock(&m->lock);
  const bool good = m->sequence[index] > 0;
  *out = m->mark[index];
  pthread_mutex_unlock(&m->lock);
  return good;
}

/* Writes a mark to its next place; until that is complete the former one is valid. To call under the lock. */
static int write_mark(struct hk_marks *m, uint32_t index, const struct hk_journal_mark *mark, bool sync)
{
  if (m->sequence[index] + 1 >= COUNT_MAX)
    return -EOVERFLOW;
  struct place p = { .magic = MAGIC,
                     .version = VERSION,
                     .index = index,
                     .sequence = m->sequence[index] + 1,
                     .position = mark->position,
                     .reserved = mark->reserved,
                     .segment = mark->segment,
                     .bytes = mark->bytes,
                     .salt = mark->salt,
                     .apart = mark->apart };
  p.checksum = XXH3_64bits(&p, offsetof(struct place, checksum));
  const uint64_t at = (index * PLACES + p.sequence % PLACES) * sizeof p;
  int status = hk_disk_write_at(m->disk, m->file, at, &p, sizeof p);
  m->changed = true;
  if (status == 0 && sync)
    status = hk_disk_sync(m->disk, m->file);
  if (status != 0)
    return status;
  m->mark[index] = *mark;
  m->sequence[index] = p.sequence;
  return 0;
}

int hk_marks_put(struct hk_marks *m, uint32_t index, const struct hk_journal_mark *mark)
{
  struct hk_journal_mark now = *mark;
  pthread_mutex_lock(&m->lock);
  now.reserved = m->mark[index].reserved > now.reserved ? m->mark[index].reserved : now.reserved;
  const bool more = now.position > now.reserved;
  if (more)
    now.reserved = now.position + (index == HK_MARK_EVENTS ? AHEAD : 0);
  const int status = write_mark(m, index, &now, more && index == HK_MARK_EVENTS);
  pthread_mutex_unlock(&m->lock);
  return status;
}

int hk_marks_end(struct hk_marks *m, uint32_t index, const struct hk_journal_mark *mark)
{
  pthread_mutex_lock(&m->lock);
  const int status = write_mark(m, index, mark, false);
  pthread_mutex_unlock(&m->lock);
  return status;
}

int hk_marks_sync(struct hk_marks *m)
{
  pthread_mutex_lock(&m->lock);
  const bool changed = m->changed;
  m->changed = false;
  pthread_mutex_unlock(&m->lock);
  const int status = changed ? hk_disk_sync(m->disk, m->file) : 0;
  if (status != 0) {
    pthread_mutex_lock(&m->lock);
    m->changed = true;
    pthread_mutex_unlock(&m->lock);
  }
  return status;
}

/* To call under the lock: writes all marks into a file that has none. */
static int marks_write_all(struct hk_marks *m)
{
  int status = 0;
  for (uint32_t i = 0; i < HK_MARKS && status == 0; i++)
    if (m->sequence[i] > 0) {
      const struct hk_journal_mark mark = m->mark[i];
      status = write_mark(m, i, &mark, false);
    }
  return status == 0 ? hk_disk_sync(m->disk, m->file) : status;
}

int hk_marks_mend(struct hk_marks *m)
{
  struct hk_disk_file now;
  const int status = hk_disk_look(m->disk, m->folder, HK_MARKS_FILE, &now);
  if (status != -ENOENT && (status != 0 || (hk_disk_same(&now, &m->is) && now.size >= FILE_SIZE)))
    return 0;
  pthread_mutex_lock(&m->lock);
  const int before = m->file;
  bool made;
  int done = status == 0 ? hk_disk_remove(m->disk, m->folder, HK_MARKS_FILE) : 0;
  if (done == 0)
    done = marks_open_file(m, &made);
  if (done == 0)
    done = marks_write_all(m);
  if (m->file != before)
    close(before);
  pthread_mutex_unlock(&m->lock);
  return done == 0 ? 1 : done;
}
