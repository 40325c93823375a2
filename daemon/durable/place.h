/* Place: how far a receiver of alerts or a bridge has got in the event log, in the file `KIND-NAME.place` of the state folder.
 *
 * Events up to `position` are dealt with. Those behind it up to `until` were chosen for messages that may have gone out: after a
 * crash the same ones are sent again, so that their keys are the same.
 *
 * Alerts from `held` on that nobody was told of in quiet hours are told when these are over.
 *
 * A file is written beside and takes the name of the one before, synced: whenever it ends, one of them is whole.
 * Errors: 0 or a negative errno. Thread: that of whoever follows the log. */
#ifndef HK_PLACE_H
#define HK_PLACE_H

#include "daemon/base/disk.h"

struct hk_place {
  uint64_t position, until; /* until >= position */
  uint64_t held;            /* position of the first that is held back; 0: none is */
  uint64_t id;              /* random: with an event's position it is a key that no other event has */
};

#define HK_PLACE_BYTES 64
/* Reads what a file holds. False: it is damaged, or something else. */
bool hk_place_decode(const void *bytes, size_t size, struct hk_place *out);
/* -ENOENT: there is no file; -EBADMSG: it is damaged. */
int hk_place_read(const struct hk_disk *disk, int folder, const char *kind, const char *name, struct hk_place *out);
int hk_place_write(const struct hk_disk *disk, int folder, const char *kind, const char *name, const struct hk_place *place);

#endif
