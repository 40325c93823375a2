/* Disk: the calls on files that durability makes, each of them through here.
 *
 * Writes are whole or an error, reads stop at the end of the file, and a call that a signal interrupts is made again. A folder is
 * an open descriptor, so that a state folder that is moved stays the same one.
 *
 * `fault` is asked before each call, and may have it fail: tests count calls with it and let the n-th one fail. In the daemon
 * there is none.
 *
 * Errors: 0 or a negative errno; -ENODATA where a read met the end. Thread: any; `fault` must allow that. */
#ifndef HK_DISK_H
#define HK_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hk_disk_call {
  HK_DISK_FOLDER,
  HK_DISK_OPEN,
  HK_DISK_READ,
  HK_DISK_WRITE,
  HK_DISK_SYNC,
  HK_DISK_CUT,
  HK_DISK_RENAME,
  HK_DISK_REMOVE,
  HK_DISK_LIST,
  HK_DISK_LOOK,
};

struct hk_disk {
  int (*fault)(void *arg, enum hk_disk_call call); /* the positive errno to fail with, or 0; NULL: nothing fails */
  void *arg;
};

/* Opens the folder at a path, which is made for good (but not those above it) where it is not there. in: the folder that a
 * relative path starts from, or AT_FDCWD. *out is closed with close. */
int hk_disk_folder(const struct hk_disk *disk, int in, const char *path, int *out);
/* The same for a folder that is there; -ENOENT. */
int hk_disk_folder_there(const struct hk_disk *disk, int in, const char *path, int *out);
/* Makes sure that this process is the only one that uses the folder: by a lock on the folder itself, which is held as long as the
 * descriptor `folder` is open and whatever is done to names; and by one on its file `lock`, held as long as *out is open, for
 * file systems where folders have no locks (NFS), and against builds that lock nothing else. -EWOULDBLOCK: another one uses it.
 */
int hk_disk_lock(const struct hk_disk *disk, int folder, int *out);

/* A new file, for writing at its end; -EEXIST. */
int hk_disk_create(const struct hk_disk *disk, int folder, const char *name, int *out);
/* A file that is there, for reading. *size: its bytes now. */
int hk_disk_open(const struct hk_disk *disk, int folder, const char *name, int *out, uint64_t *size);
/* Writes all of it, at the end. After an error any part of it may be there. */
int hk_disk_write(const struct hk_disk *disk, int file, const void *data, size_t size);
/* A file that is there, for writing in place. */
int hk_disk_update(const struct hk_disk *disk, int folder, const char *name, int *out);
/* Writes all of it from `at` on, over what is there. After an error any part of it may be there. */
int hk_disk_write_at(const struct hk_disk *disk, int file, uint64_t at, const void *data, size_t size);
/* Reads `size` bytes from `at` on. -ENODATA: the file ends before. */
int hk_disk_read(const struct hk_disk *disk, int file, uint64_t at, void *data, size_t size);
/* fdatasync. After an error nobody knows what is on the disk, and trying again tells nothing: write it anew, elsewhere. */
int hk_disk_sync(const struct hk_disk *disk, int file);
/* fsync of a folder: names that were made, changed or removed in it stay so. */
int hk_disk_sync_folder(const struct hk_disk *disk, int folder);
/* Cuts a file by name, for good (synced). */
int hk_disk_cut(const struct hk_disk *disk, int folder, const char *name, uint64_t size);
int hk_disk_rename(const struct hk_disk *disk, int folder, const char *from, const char *to);
int hk_disk_remove(const struct hk_disk *disk, int folder, const char *name);

/* What a file or folder is. device and inode: the same as long as it is the same one, whatever its name. */
struct hk_disk_file {
  uint64_t device, inode, links, size; /* links: 0: it has no name any more */
  int64_t changed;                     /* ns since the epoch: when it changed last; of a folder, any name in it, too */
};
/* What a name stands for. folder: where it is, or AT_FDCWD for a path; name NULL: what the descriptor `folder` is open on. */
int hk_disk_look(const struct hk_disk *disk, int folder, const char *name, struct hk_disk_file *out);
static inline bool hk_disk_same(const struct hk_disk_file *a, const struct hk_disk_file *b)
{
  return a->device == b->device && a->inode == b->inode;
}
/* Puts a file with these bytes in the place of one, or of none, for good: whatever happens, it is the old one or the new one,
 * whole. beside: the new one's name until then; what a crash has left there goes. *written: what the new file is; NULL: nobody
 * asks. */
int hk_disk_replace(const struct hk_disk *disk, int folder, const char *name, const char *beside, const void *data, size_t size,
                    struct hk_disk_file *written);
/* Whether there is nothing in a folder. */
int hk_disk_empty(const struct hk_disk *disk, int folder, bool *empty);

/* Numbers of the files STEM-NUMBER.SUFFIX (12 digits), ascending: *numbers, freed with free, and *n of them. */
int hk_disk_list(const struct hk_disk *disk, int folder, const char *stem, const char *suffix, uint64_t **numbers, size_t *n);
#define HK_DISK_NAME_MAX 64
/* The name of such a file. stem and suffix are short. */
void hk_disk_name(char out[HK_DISK_NAME_MAX], const char *stem, uint64_t number, const char *suffix);

#endif
