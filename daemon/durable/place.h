/* Place: the position of a receiver of alerts or a bridge in the event log, in the file `KIND-NAME.place` of the state folder.
 *
 * Events up to `position` are processed. Those after it up to `until` were selected for messages that may have been sent: after a
 * crash the same messages are sent again, so that their keys are the same.
 *
 * Alerts from `held` on that were held back in quiet hours are sent when these end.
 *
 * A new file is written, synced and renamed over the old one, so that one of them is always complete. Errors: 0 or a negative
 * errno. Thread: the receiver's or bridge's. */
#ifndef HK_PLACE_H
#define HK_PLACE_H

#include "daemon/base/disk.h"

struct hk_place {
  uint64_t position, until; /* until >= position */
  uint64_t held;            /* position of the first alert that is held back; 0: none */
  uint64_t id;              /* random: together with an event's position it is a unique key */
};

#define HK_PLACE_BYTES 64
/* Parses the contents of a file. False: damaged, or another kind of file. */
bool hk_place_decode(const void *bytes, size_t size, struct hk_place *out);
/* Reads a place. -ENOENT: there is no file; -EBADMSG: it is damaged. */
int hk_place_read(const struct hk_disk *disk, int folder, const char *kind, const char *name, struct hk_place *out);
int hk_place_write(const struct hk_disk *disk, int folder, const char *kind, const char *name, const struct hk_place *place);

#endif
