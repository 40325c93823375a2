/* Marks: the position of each journal when its records were last acknowledged or published, in the file `marks` of the state
 * folder. A journal whose end is cut off or gone looks like one that was never longer; the mark shows how much is missing.
 *
 *     commit thread:   a journal is synced -> hk_marks_put -> acknowledgements, results and events go out
 *
 * A mark is written to the file at once, so it survives any end of the daemon. It is synced every second (hk_marks_sync), so
 * after a power loss it may be that old: at least what a mark says was published. But positions of events are never used twice:
 * they are reserved ahead, and a reservation is synced before any of it is used.
 *
 * FORMAT.md describes the file. A mark is written to two places in turn, so that one of them is always whole.
 *
 * Errors: 0 or a negative errno. */
#ifndef HK_MARKS_H
#define HK_MARKS_H

#include "daemon/base/disk.h"
#include "daemon/base/limits.h"

#define HK_MARKS_FILE "marks"
#define HK_MARK_EVENTS HK_SHARDS_MAX /* index of the event log's; that of a shard's journal is the shard */
#define HK_MARKS (HK_SHARDS_MAX + 1)

struct hk_journal_mark {
  uint64_t position;    /* everything before it was acknowledged or published */
  uint64_t reserved;    /* events: none after this position was published; at least `position` */
  uint64_t segment;     /* number of the journal's last file; 0: none, or not recorded */
  uint64_t bytes, salt; /* committed bytes of that file; its salt */
  bool apart;           /* events that are not on the disk may have been published, also beyond `reserved`: durability was lost */
};

/* Reads a file; good[i]: it has a mark i. -ENOENT: there is no such file. Changes nothing on the disk. */
int hk_marks_read(const struct hk_disk *disk, int folder, struct hk_journal_mark out[HK_MARKS], bool good[HK_MARKS]);

struct hk_marks;

/* Opens the file in the state folder, and creates it if missing. disk and folder stay the caller's. Thread: main. */
int hk_marks_open(struct hk_marks **out, const struct hk_disk *disk, int folder);
void hk_marks_free(struct hk_marks *marks); /* NULL is allowed */

/* The last mark of a journal, of this run or an earlier one. False: none; *out is all zero. Thread: any. */
bool hk_marks_get(struct hk_marks *marks, uint32_t index, struct hk_journal_mark *out);
/* Writes a mark. `reserved` is never lowered; 0: as it is, or, if `position` is beyond it, a new reservation, synced. -EOVERFLOW:
 * by the file it was written 2^62 times, so it is forged. Thread: any. */
int hk_marks_put(struct hk_marks *marks, uint32_t index, const struct hk_journal_mark *mark);
/* As hk_marks_put, and sets `reserved`: positions after it are no longer used. */
int hk_marks_end(struct hk_marks *marks, uint32_t index, const struct hk_journal_mark *mark);
/* Syncs changed marks. Thread: the commit thread. */
int hk_marks_sync(struct hk_marks *marks);
/* Writes the file again, with all marks, if its name is gone or is another file's. Returns 1 if so, 0 if not. Thread: the commit
 * thread. */
int hk_marks_mend(struct hk_marks *marks);

#endif
