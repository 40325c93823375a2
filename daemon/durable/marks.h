/* Marks: the position of each journal when its records were last acknowledged or published, in the file `marks` of the state
 * folder. A journal whose end is cut or gone looks like one that was never longer; the mark shows how much is missing.
 *
 *     commit thread:   a journal is synced -> hk_marks_put -> acknowledgements, results and events go out
 *
 * A mark is written to the file at once, so it outlives the daemon however that ends, and is synced every second (hk_marks_sync),
 * so what a machine that loses its power has of it may be that old: a mark says the least that was told. But the positions of
 * events are never used twice: they are reserved ahead, and a reservation is synced before any of it is used.
 *
 * FORMAT.md describes the file. A mark is written to two places in turn, so that one of them is whole whenever it ends.
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
  uint64_t position;    /* what is before was told: acknowledged, or shown */
  uint64_t reserved;    /* events: none behind this one was told; at least `position` */
  uint64_t segment;     /* number of the journal's last file; 0: it has none, or the mark says nothing of files */
  uint64_t bytes, salt; /* how much of that was committed; its salt */
  bool apart;           /* events may have been told, beyond `reserved` too, that are not on the disk: durability was lost */
};

/* What a file has: good[i] where it has a mark i. -ENOENT: there is no such file. Nothing is changed. */
int hk_marks_read(const struct hk_disk *disk, int folder, struct hk_journal_mark out[HK_MARKS], bool good[HK_MARKS]);

struct hk_marks;

/* Opens the file in the state folder, and makes it where there is none. disk and folder stay the caller's. Thread: main. */
int hk_marks_open(struct hk_marks **out, const struct hk_disk *disk, int folder);
void hk_marks_free(struct hk_marks *marks); /* NULL is allowed */

/* The last mark of a journal, of this run or an earlier one. False: none; *out is all zero. Thread: any. */
bool hk_marks_get(struct hk_marks *marks, uint32_t index, struct hk_journal_mark *out);
/* Puts one. Of `reserved` nothing is taken back; 0: as much as there is, and more, on the disk for good, where `position` is
 * beyond it. -EOVERFLOW: the file says that it was put 2^62 times, which nobody but a forger can have done. Thread: any. */
int hk_marks_put(struct hk_marks *marks, uint32_t index, const struct hk_journal_mark *mark);
/* The same, and sets `reserved`: positions after it are no longer used. */
int hk_marks_end(struct hk_marks *marks, uint32_t index, const struct hk_journal_mark *mark);
/* Syncs changed marks. Thread: the commit thread. */
int hk_marks_sync(struct hk_marks *marks);
/* Writes the file again, with all marks, if its name is gone or another file's: 1; 0: it is there. Thread: the commit thread. */
int hk_marks_mend(struct hk_marks *marks);

#endif
