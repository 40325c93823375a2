/* Reading the file `maintenance` of a state folder: the windows that clients asked for. For the daemon, which takes them in, and
 * for `hankel state`, which looks whether they are good. The file's layout: durable/FORMAT.md. */
#ifndef HK_MAINTENANCE_SAVED_H
#define HK_MAINTENANCE_SAVED_H

#include "daemon/base/disk.h"
#include "proto/wire/message.h"

#define HK_MAINTENANCE_FILE "maintenance"
#define HK_MAINTENANCE_ASKED 256u /* windows that clients may ask for */

/* A file that is being read. Null initialiser: all zero. Thread: one at a time. */
struct hk_maintenance_saved {
  char *text;
  uint64_t size, at; /* bytes; where the next line begins */
};

/* A line. The strings lie in the text. */
struct hk_maintenance_line {
  int64_t from, to; /* ns since the epoch, from <= to */
  struct hk_string by, glob;
};

/* Reads the file whole. 0, and it is closed with hk_maintenance_saved_close; -ENOENT: there is none; -EFBIG: it is longer than
 * what the daemon writes; -ENOMEM; what the disk says. */
int hk_maintenance_saved_open(struct hk_maintenance_saved *out, const struct hk_disk *disk, int folder);
/* The next line. 1 and *out; 0: there is none; -EINVAL: it is damaged, and the one behind it comes next. */
int hk_maintenance_saved_next(struct hk_maintenance_saved *saved, struct hk_maintenance_line *out);
void hk_maintenance_saved_close(struct hk_maintenance_saved *saved);

#endif
