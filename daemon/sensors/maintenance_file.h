/* Reads the file `maintenance` of a state folder: the windows that clients requested. For the daemon, and for `hankel state`,
 * which checks them. The file's layout: durable/FORMAT.md. */
#ifndef HK_MAINTENANCE_FILE_H
#define HK_MAINTENANCE_FILE_H

#include "daemon/base/disk.h"
#include "proto/wire/message.h"

#define HK_MAINTENANCE_FILE "maintenance"
#define HK_MAINTENANCE_ASKED 256u /* maximum number of clients' windows */

/* A file that is being read. Zero-initialise. Thread: one at a time. */
struct hk_maintenance_saved {
  char *text;
  uint64_t size, at; /* bytes; where the next line begins */
};

/* A line. The strings lie in the text. */
struct hk_maintenance_line {
  int64_t from, to; /* ns since the epoch, from <= to */
  struct hk_string by, glob;
};

/* Reads the whole file. Returns 0, and the caller calls hk_maintenance_saved_close; -ENOENT: no file; -EFBIG: longer than the
 * daemon's files; -ENOMEM; or the disk's error. */
int hk_maintenance_saved_open(struct hk_maintenance_saved *out, const struct hk_disk *disk, int folder);
/* Reads the next line. Returns 1 and *out; 0: none; -EINVAL: it is damaged, and the following call reads the one after it. */
int hk_maintenance_saved_next(struct hk_maintenance_saved *saved, struct hk_maintenance_line *out);
void hk_maintenance_saved_close(struct hk_maintenance_saved *saved);

#endif
