/* State folder: checks that the daemon's files are still where a start would look for them.
 *
 * A deleted file, or a file in a renamed folder, can still be written through its descriptor, but its data would be lost. So
 * before each commit, and every second, the commit thread checks whether the path of the state folder still is the locked folder,
 * and whether `lock`, the folders of shards, the segments of journals and the newest snapshots still are the files that were
 * written. The names in a folder change only with the folder's time of change: while that is unchanged, only folders are checked,
 * with one stat each.
 *
 * A loss is logged once, with the points and events in it, and durability is lost (durable.h): nothing more is acknowledged.
 * Durability returns without an operator where that is safe, with a snapshot of all sensors from memory:
 *     a file is gone          at once: new data goes to new files.
 *     a folder was renamed    when it has its name again, untouched.
 *     a folder was replaced   when an empty one of the same file system has its name: it is locked and used. A folder with any
 *                             content belongs to another, and one of another file system may be a mount point without its mount.
 *
 * Thread: the commit thread, unless stated otherwise. */
#ifndef HK_STATE_FOLDER_H
#define HK_STATE_FOLDER_H

#include "daemon/base/limits.h"
#include "daemon/base/log.h"
#include "daemon/durable/journal.h"

struct hk_maintenance;

/* A folder as it was last seen. */
struct hk_folder_seen {
  struct hk_disk_file file;
  bool quiet; /* all names in it were checked, longer after its last change than the resolution of times */
};
struct hk_folder_snapshot {
  uint64_t number;
  struct hk_disk_file file;
};

struct hk_state_folder {
  /* of the owner: set before hk_folder_begin, and constant */
  const struct hk_disk *disk;
  struct hk_log *log;
  const char *path;
  uint32_t shards;
  int *folder, *lock,
      *shard_folder;           /* descriptors; hk_folder_resume may replace their files, since others may hold their numbers */
  struct hk_journal **journal; /* of shards; each may be NULL */
  struct hk_journal *events;
  struct hk_marks *marks;             /* recreated if missing */
  struct hk_maintenance *maintenance; /* its file is recreated if missing; NULL: none */

  atomic_uint_fast64_t newest[HK_SHARDS_MAX]; /* number of the newest snapshot of each shard; 0: none */
  atomic_uint_fast64_t newest_inode[HK_SHARDS_MAX]
                                   [2]; /* its file when it was finished, indexed by the number's parity; 0: it was gone */
  struct hk_folder_seen home, home_of[HK_SHARDS_MAX];
  struct hk_folder_snapshot known[HK_SHARDS_MAX]; /* as first seen */
};

/* Begins checking, after the folder and the shards' folders were opened. Returns 0 or a negative errno. Thread: main. */
int hk_folder_begin(struct hk_state_folder *folder);
/* Whether all files are there. False: `why` names the missing file and its contents, `remedy` what to do. */
bool hk_folder_holds(struct hk_state_folder *folder, char *why, size_t why_size, const char **remedy);
/* Makes the next check examine all files, whether or not folders have changed. */
void hk_folder_doubt(struct hk_state_folder *folder);
/* After hk_folder_holds returned false: whether the daemon can continue in the present folder. Missing files are no longer
 * checked. */
bool hk_folder_resume(struct hk_state_folder *folder);
/* Sets the newest snapshot of a shard; 0: none. Thread: the saver's of the shard, or main. */
void hk_folder_saved(struct hk_state_folder *folder, uint32_t shard, uint64_t number);

#endif
