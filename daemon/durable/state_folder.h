/* Folder: whether the daemon's files are still where a start would look for them.
 *
 * A file that was deleted, or a folder that was renamed, can be written on through its descriptor, and all of that is lost. So
 * before each commit, and every second, the commit thread asks whether the path of the state folder is still the folder that is
 * locked, and `lock`, the folders of shards, the segments of journals and the newest snapshots still are the files that were
 * written. A folder's names can change only with its time of change, so that as long as this stays nothing but folders is
 * looked at: one stat each.
 *
 * What is gone is told once, with the points and events in it, and durability is lost (durable.h): nothing more is acknowledged.
 * It comes back by itself where that is safe, with a snapshot of all sensors, which memory still has:
 *     a file is gone          at once: what follows goes to new ones.
 *     a folder was renamed    when it has its name again, untouched.
 *     a folder was replaced   when an empty one of the same file system has its name: it is locked and used. One that holds
 *                             anything is another's, and one of another file system may be a mount point without its mount.
 *
 * Thread: the one that commits, unless stated otherwise. */
#ifndef HK_FOLDER_H
#define HK_FOLDER_H

#include "daemon/base/limits.h"
#include "daemon/base/log.h"
#include "daemon/durable/journal.h"

struct hk_maintenance;

/* A folder as it was seen last. */
struct hk_folder_seen {
  struct hk_disk_file file;
  bool quiet; /* all names in it were checked, longer after its last change than the resolution of times */
};
struct hk_folder_snapshot {
  uint64_t number;
  struct hk_disk_file file;
};

struct hk_state_folder {
  /* whose state it is: written before hk_folder_begin, and stays */
  const struct hk_disk *disk;
  struct hk_log *log;
  const char *path;
  uint32_t shards;
  int *folder, *lock,
      *shard_folder; /* descriptors, which hk_folder_resume may open on others and which others may hold the numbers of */
  struct hk_journal **journal; /* of shards; each may be NULL */
  struct hk_journal *events;
  struct hk_marks *marks;             /* likewise made again */
  struct hk_maintenance *maintenance; /* its file is made again where it is gone; NULL: none */

  atomic_uint_fast64_t newest[HK_SHARDS_MAX]; /* number of the newest snapshot of each shard; 0: none */
  atomic_uint_fast64_t newest_inode[HK_SHARDS_MAX]
                                   [2]; /* its file when it was finished, by whether the number is odd; 0: it was gone */
  struct hk_folder_seen home, home_of[HK_SHARDS_MAX];
  struct hk_folder_snapshot known[HK_SHARDS_MAX]; /* as they were seen first */
};

/* The folder and the shards' folders were opened: they are checked from now on. 0 or a negative errno. Thread: main. */
int hk_folder_begin(struct hk_state_folder *folder);
/* Whether all files are there. False: `why` names the missing file and its contents, `remedy` what to do. */
bool hk_folder_holds(struct hk_state_folder *folder, char *why, size_t why_size, const char **remedy);
/* The next look is at all files, whether or not folders have changed. */
void hk_folder_doubt(struct hk_state_folder *folder);
/* After that: whether the daemon can continue in the present folder. Missing files are no longer checked. */
bool hk_folder_resume(struct hk_state_folder *folder);
/* Sets the newest snapshot of a shard; 0: none. Thread: the saver's of the shard, or main. */
void hk_folder_saved(struct hk_state_folder *folder, uint32_t shard, uint64_t number);

#endif
