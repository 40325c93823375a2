/* See state_folder.h. */
#include "daemon/durable/state_folder.h"
#include "daemon/durable/journal_segments.h"

#include "daemon/durable/snapshot.h"
#include "daemon/sensors/maintenance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK 50000000 /* ns: two changes of a folder at least this far apart have different times */
#define MEMORY "until then a restart loses what is in memory alone"

static void shard_name(uint32_t shard, char out[32])
{
  snprintf(out, 32, "shard-%u", shard);
}

/* Whether no name in a folder can have changed since all were checked. */
static bool folder_is_quiet(const struct hk_folder_seen *seen, const struct hk_disk_file *now)
{
  return seen->quiet && seen->file.changed == now->changed;
}

/* All names in a folder were checked at a time (ns since the epoch), after its state `now` was read. */
static void folder_seen(struct hk_folder_seen *seen, const struct hk_disk_file *now, int64_t looked)
{
  seen->file.changed = now->changed;
  seen->quiet = looked - now->changed > TICK;
}

static int newest_snapshot(struct hk_state_folder *f, uint32_t shard)
{
  uint64_t *numbers;
  size_t n;
  const int status = hk_disk_list(f->disk, f->shard_folder[shard], HK_SNAPSHOT_STEM, HK_SNAPSHOT_SUFFIX, &numbers, &n);
  if (status == 0)
    hk_folder_saved(f, shard, n > 0 ? numbers[n - 1] : 0);
  free(numbers);
  return status;
}

int hk_folder_begin(struct hk_state_folder *f)
{
  int status = hk_disk_look(f->disk, *f->folder, NULL, &f->home.file);
  for (uint32_t i = 0; i < f->shards && status == 0; i++) {
    status = hk_disk_look(f->disk, f->shard_folder[i], NULL, &f->home_of[i].file);
    f->known[i].number = 0;
    if (status == 0)
      status = newest_snapshot(f, i);
  }
  hk_folder_doubt(f);
  return status;
}

void hk_folder_doubt(struct hk_state_folder *f)
{
  f->home.quiet = false;
  for (uint32_t i = 0; i < f->shards; i++)
    f->home_of[i].quiet = false;
}

void hk_folder_saved(struct hk_state_folder *f, uint32_t shard, uint64_t number)
{
  struct hk_disk_file now = { .inode = 0 };
  char name[HK_DISK_NAME_MAX];
  hk_disk_name(name, HK_SNAPSHOT_STEM, number, HK_SNAPSHOT_SUFFIX);
  if (number > 0 && hk_disk_look(f->disk, f->shard_folder[shard], name, &now) != 0)
    now.inode = 0; /* the next check finds it missing */
  atomic_store(&f->newest_inode[shard][number % 2], now.inode);
  atomic_store(&f->newest[shard], number);
}

/* --- losses ---------------------------------------------------------------------------------------------------------- */

/* Describes what was lost with the whole folder: points whose journals were there, and events. */
static void tell_all(const struct hk_state_folder *f, char *out, size_t size)
{
  struct hk_journal *events = f->events;
  uint64_t points = 0;
  for (uint32_t i = 0; i < f->shards; i++)
    if (f->journal[i])
      points += hk_journal_committed(f->journal[i]) - hk_journal_begins(f->journal[i]);
  const uint64_t before = hk_journal_begins(events), last = hk_journal_committed(events);
  snprintf(out, size, "in it were %llu points of journals and %llu events", (unsigned long long)points,
           (unsigned long long)(last > before ? last - before : 0));
}

/* Whether the path is the locked folder. */
static bool home_holds(const struct hk_state_folder *f, int status, const struct hk_disk_file *now, char *why, size_t size)
{
  char had[96];
  if ((status != 0 && status != -ENOENT && status != -ENOTDIR) || (status == 0 && hk_disk_same(now, &f->home.file)))
    return true; /* other errors are the disk's, and reported by a commit */
  tell_all(f, had, sizeof had);
  snprintf(why, size, "the state folder %.90s %s; %s", f->path, status == 0 ? "is another folder now" : "was removed or renamed",
           had);
  return false;
}

/* Makes the file `lock` again if it is not the locked one. False: another program has locked it. */
static bool lock_holds(struct hk_state_folder *f, char *why, size_t size)
{
  struct hk_disk_file held, now;
  int lock;
  if (hk_disk_look(f->disk, *f->lock, NULL, &held) != 0)
    return true;
  int status = hk_disk_look(f->disk, *f->folder, "lock", &now);
  if ((status == 0 && hk_disk_same(&held, &now)) || (status != 0 && status != -ENOENT))
    return true;
  status = hk_disk_lock(f->disk, *f->folder, &lock);
  if (status == -EWOULDBLOCK) {
    snprintf(why, size, "another program has locked %.150s/lock, which was removed or replaced", f->path);
    return false;
  }
  if (status == 0) {
    close(*f->lock);
    *f->lock = lock;
    hk_log(f->log, HK_LOG_WARNING, "%s/lock was removed or replaced, and is made again; the folder itself stays locked", f->path);
  }
  return true;
}

static bool journal_holds(const struct hk_state_folder *f, struct hk_journal *journal, const char *folder, const char *what,
                          char *why, size_t size)
{
  struct hk_journal_gone gone;
  if (!journal || !hk_journal_look(journal, false, &gone))
    return true;
  char others[32] = "";
  if (gone.segments > 1)
    snprintf(others, sizeof others, " (of %u files)", gone.segments);
  snprintf(why, size, "%.90s%s/%s %s%s; in it were %llu %s", f->path, folder, gone.name, gone.how, others,
           (unsigned long long)gone.count, what);
  return false;
}

/* Whether the newest snapshot of a shard exists. */
static bool snapshot_holds(struct hk_state_folder *f, uint32_t shard, const char *folder, char *why, size_t size)
{
  const uint64_t number = atomic_load(&f->newest[shard]);
  struct hk_folder_snapshot *known = &f->known[shard];
  struct hk_disk_file now;
  char name[HK_DISK_NAME_MAX];
  if (number == 0)
    return true;
  hk_disk_name(name, HK_SNAPSHOT_STEM, number, HK_SNAPSHOT_SUFFIX);
  const int status = hk_disk_look(f->disk, f->shard_folder[shard], name, &now);
  if (status != 0 && status != -ENOENT)
    return true;
  if (status == 0 && known->number != number && now.inode == atomic_load(&f->newest_inode[shard][number % 2]))
    *known = (struct hk_folder_snapshot){ number, now };
  if (status == 0 && known->number == number && hk_disk_same(&now, &known->file) && now.size == known->file.size)
    return true;
  if (atomic_load(&f->newest[shard]) != number)
    return true; /* a newer one came meanwhile, and has its own check */
  snprintf(why, size, "%.120s%s/%s, the newest snapshot, was removed or replaced", f->path, folder, name);
  return false;
}

/* Makes the file of marks again if it is missing. */
static void mend_marks(const struct hk_state_folder *f)
{
  const int made = hk_marks_mend(f->marks);
  if (made > 0)
    hk_log(f->log, HK_LOG_WARNING,
           "the file " HK_MARKS_FILE " of the state folder was removed, replaced or cut, and was created again");
  else if (made < 0)
    hk_log(f->log, HK_LOG_WARNING,
           "the file " HK_MARKS_FILE " of the state folder was removed, replaced or cut, and cannot be created again: %s",
           strerror(-made));
}

/* Checks the names in the state folder. */
static bool names_hold(struct hk_state_folder *f, char *why, size_t size)
{
  bool holds = lock_holds(f, why, size) && journal_holds(f, f->events, "", "events", why, size);
  for (uint32_t i = 0; i < f->shards && holds; i++) {
    struct hk_disk_file now;
    char name[32];
    shard_name(i, name);
    const int status = hk_disk_look(f->disk, *f->folder, name, &now);
    if ((status == 0 && hk_disk_same(&now, &f->home_of[i].file)) || (status != 0 && status != -ENOENT && status != -ENOTDIR))
      continue;
    const uint64_t points = f->journal[i] ? hk_journal_committed(f->journal[i]) - hk_journal_begins(f->journal[i]) : 0;
    snprintf(why, size, "%.120s/%s was removed, renamed or replaced; in its journal were %llu points", f->path, name,
             (unsigned long long)points);
    holds = false;
  }
  if (holds)
    mend_marks(f);
  if (holds && f->maintenance)
    hk_maintenance_mend(f->maintenance, f->log);
  return holds;
}

/* Checks the files of a shard. */
static bool shard_holds(struct hk_state_folder *f, uint32_t shard, char *why, size_t size)
{
  const int64_t looked = hk_wall();
  struct hk_disk_file now;
  char folder[33] = "/";
  if (hk_disk_look(f->disk, f->shard_folder[shard], NULL, &now) != 0 || folder_is_quiet(&f->home_of[shard], &now))
    return true;
  shard_name(shard, folder + 1);
  if (!journal_holds(f, f->journal[shard], folder, "points", why, size) || !snapshot_holds(f, shard, folder, why, size))
    return false;
  folder_seen(&f->home_of[shard], &now, looked);
  return true;
}

bool hk_folder_holds(struct hk_state_folder *f, char *why, size_t size, const char **remedy)
{
  const int64_t looked = hk_wall();
  struct hk_disk_file now;
  const int status = hk_disk_look(f->disk, AT_FDCWD, f->path, &now);
  *remedy = "put the folder back, or make an empty one there, on the same file system: it is used without a restart; " MEMORY;
  if (!home_holds(f, status, &now, why, size))
    return false;
  *remedy = "put back what was renamed, and leave the folder alone: durability resumes by itself, with a snapshot; " MEMORY;
  if (status == 0 && !folder_is_quiet(&f->home, &now)) {
    if (!names_hold(f, why, size))
      return false;
    folder_seen(&f->home, &now, looked);
  }
  for (uint32_t i = 0; i < f->shards; i++)
    if (!shard_holds(f, i, why, size))
      return false;
  return true;
}

/* --- recovery -------------------------------------------------------------------------------------------------------- */

/* Makes a descriptor's number refer to the file of another descriptor, which is closed. All holders of the number use the new
 * file. */
static int replace(int *number, int by)
{
  int status = 0;
  while (dup3(by, *number, O_CLOEXEC) < 0 && (status = -errno) == -EINTR)
    status = 0;
  close(by);
  return status;
}

/* Opens the folder of a name, if it is empty and on the file system of the missing one. */
static int open_empty(const struct hk_state_folder *f, int in, const char *name, int *out)
{
  struct hk_disk_file now;
  bool empty = false;
  int status = hk_disk_folder_there(f->disk, in, name, out);
  if (status != 0)
    return status;
  status = hk_disk_look(f->disk, *out, NULL, &now);
  if (status == 0 && now.device != f->home.file.device)
    status = -EXDEV;
  if (status == 0)
    status = hk_disk_empty(f->disk, *out, &empty);
  if (status == 0 && !empty)
    status = -ENOTEMPTY;
  if (status != 0)
    close(*out);
  return status;
}

/* Takes an empty folder that has the path now as the state folder, and locks it. */
static int adopt_home(struct hk_state_folder *f)
{
  int folder, lock;
  int status = open_empty(f, AT_FDCWD, f->path, &folder);
  if (status != 0)
    return status;
  status = hk_disk_lock(f->disk, folder, &lock); /* the lock on the folder belongs to the open file, not to the number */
  if (status != 0) {
    close(folder);
    return status;
  }
  status = replace(f->folder, folder);
  (void)close(*f->lock);
  *f->lock = lock;
  if (status == 0)
    hk_log(f->log, HK_LOG_NOTICE, "the empty folder at %s is taken for the state folder; events before %llu are in memory alone",
           f->path, (unsigned long long)hk_journal_position(f->events) + 1);
  return status;
}

/* The folder of a shard: the former one, or an empty one, or a new one. */
static int resume_shard(struct hk_state_folder *f, uint32_t shard)
{
  struct hk_disk_file now;
  char name[32];
  int folder;
  shard_name(shard, name);
  int status = hk_disk_look(f->disk, *f->folder, name, &now);
  if (status == 0 && hk_disk_same(&now, &f->home_of[shard].file))
    return 0;
  status = status == -ENOENT ? hk_disk_folder(f->disk, *f->folder, name, &folder) : open_empty(f, *f->folder, name, &folder);
  return status != 0 ? status : replace(&f->shard_folder[shard], folder);
}

bool hk_folder_resume(struct hk_state_folder *f)
{
  struct hk_journal_gone gone;
  struct hk_disk_file now;
  char why[256];
  int status = hk_disk_look(f->disk, AT_FDCWD, f->path, &now);
  if (status == 0 && !hk_disk_same(&now, &f->home.file))
    status = adopt_home(f);
  if (status != 0 || !lock_holds(f, why, sizeof why))
    return false;
  for (uint32_t i = 0; i < f->shards && status == 0; i++)
    status = resume_shard(f, i);
  if (status == 0)
    status = hk_folder_begin(f);
  if (status != 0)
    return false;
  mend_marks(f);
  for (uint32_t i = 0; i <= f->shards && status == 0; i++) {
    struct hk_journal *journal = i < f->shards ? f->journal[i] : f->events;
    if (journal && hk_journal_look(journal, true, &gone))
      status = hk_journal_note(journal);
  }
  if (status != 0)
    return false;
  if (f->maintenance)
    hk_maintenance_mend(f->maintenance, f->log);
  return true;
}
