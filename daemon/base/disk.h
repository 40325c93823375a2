/* Disk: all file operations of durability.
 *
 * Writes are complete or fail; reads stop at the end of the file; calls that a signal interrupts are repeated. A folder is an
 * open descriptor, so a state folder that is moved remains the same folder.
 *
 * `fault` is called before each operation and may make it fail: tests count operations and fail the n-th. The daemon sets no
 * `fault`.
 *
 * Errors: 0 or a negative errno; -ENODATA if a read reached the end of the file. Thread: any; `fault` must allow that. */
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

/* Opens a folder; creates it durably if it does not exist (its parent must exist). in: the folder to which a relative path
 * refers, or AT_FDCWD. The caller closes *out with close. */
int hk_disk_folder(const struct hk_disk *disk, int in, const char *path, int *out);
/* Opens an existing folder; -ENOENT if there is none. */
int hk_disk_folder_there(const struct hk_disk *disk, int in, const char *path, int *out);
/* Locks the folder for this process. Takes two locks: one on the folder itself, held while the descriptor `folder` is open, even
 * if names change; and one on its file `lock`, held while *out is open, for file systems that cannot lock folders (NFS) and
 * against older builds, which lock only this file. -EWOULDBLOCK: another process uses the folder.
 */
int hk_disk_lock(const struct hk_disk *disk, int folder, int *out);

/* Creates a file and opens it for appending; -EEXIST if it exists. */
int hk_disk_create(const struct hk_disk *disk, int folder, const char *name, int *out);
/* Opens an existing file for reading. *size: its present size in bytes. */
int hk_disk_open(const struct hk_disk *disk, int folder, const char *name, int *out, uint64_t *size);
/* Appends all `size` bytes. After an error any part of them may be in the file. */
int hk_disk_write(const struct hk_disk *disk, int file, const void *data, size_t size);
/* Opens an existing file for writing in place. */
int hk_disk_update(const struct hk_disk *disk, int folder, const char *name, int *out);
/* Overwrites `size` bytes from offset `at`. After an error any part of them may be in the file. */
int hk_disk_write_at(const struct hk_disk *disk, int file, uint64_t at, const void *data, size_t size);
/* Reads `size` bytes from offset `at`. -ENODATA: the file is shorter. */
int hk_disk_read(const struct hk_disk *disk, int file, uint64_t at, void *data, size_t size);
/* fdatasync. After an error the content on the disk is unknown, and a second call that succeeds proves nothing: write the data
 * again, to another file. */
int hk_disk_sync(const struct hk_disk *disk, int file);
/* fsync of a folder: makes its created, renamed and removed names durable. */
int hk_disk_sync_folder(const struct hk_disk *disk, int folder);
/* Truncates a file to `size` bytes, and syncs it. */
int hk_disk_cut(const struct hk_disk *disk, int folder, const char *name, uint64_t size);
int hk_disk_rename(const struct hk_disk *disk, int folder, const char *from, const char *to);
int hk_disk_remove(const struct hk_disk *disk, int folder, const char *name);

/* Identity and size of a file or folder. device and inode identify it under any name. */
struct hk_disk_file {
  uint64_t device, inode, links, size; /* links: 0 if it has no name any more */
  int64_t changed;                     /* ns since the epoch: last change; of a folder, also of any name in it */
};
/* Looks up a name. folder: the folder that contains it, or AT_FDCWD for a path. name NULL: describes `folder` itself. */
int hk_disk_look(const struct hk_disk *disk, int folder, const char *name, struct hk_disk_file *out);
static inline bool hk_disk_same(const struct hk_disk_file *a, const struct hk_disk_file *b)
{
  return a->device == b->device && a->inode == b->inode;
}
/* Replaces or creates a file atomically and durably: after a crash it is the old or the new one, complete. beside: temporary name
 * of the new file; a remainder of a crash under this name is removed. *written: identity of the new file, unless NULL. */
int hk_disk_replace(const struct hk_disk *disk, int folder, const char *name, const char *beside, const void *data, size_t size,
                    struct hk_disk_file *written);
/* Whether a folder is empty. */
int hk_disk_empty(const struct hk_disk *disk, int folder, bool *empty);

/* Lists the numbers of the files STEM-NUMBER.SUFFIX (12 digits), ascending. The caller frees *numbers, which has *n elements;
 * after an error it is NULL with *n = 0. */
int hk_disk_list(const struct hk_disk *disk, int folder, const char *stem, const char *suffix, uint64_t **numbers, size_t *n);
#define HK_DISK_NAME_MAX 64
/* Formats the name of such a file. stem and suffix: short enough for HK_DISK_NAME_MAX. */
void hk_disk_name(char out[HK_DISK_NAME_MAX], const char *stem, uint64_t number, const char *suffix);

#endif
