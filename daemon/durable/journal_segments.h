/* Segments: the files of a journal. Functions return 0 or a negative errno unless stated otherwise. */
#ifndef HK_JOURNAL_SEGMENTS_H
#define HK_JOURNAL_SEGMENTS_H

#include "daemon/base/disk.h"

struct hk_journal;
struct hk_journal_place;

/* Finds the segments, and the number and position of the next one. A segment with an unreadable head is taken to begin where its
 * predecessor does. For journal.c, before there is another thread. */
int hk_journal_find_segments(struct hk_journal *journal);

/* Segments that differ from what was written: removed, renamed, replaced, cut or written to by another program. */
struct hk_journal_gone {
  uint32_t segments;
  uint64_t count;              /* by how much their records have advanced the position */
  char name[HK_DISK_NAME_MAX]; /* of the first one, */
  const char *how;             /* and what happened to it */
};
/* Checks all segments. forget: missing ones no longer belong to the journal. True: one is missing. Thread: the commit thread;
 * appending waits for it. */
bool hk_journal_look(struct hk_journal *journal, bool forget, struct hk_journal_gone *out);

/* Removes the segments whose records are all below a position. Thread: any. */
int hk_journal_trim(struct hk_journal *journal, uint64_t position);
/* Removes the oldest segments until the rest has at most `bytes`, but no segment with records from position `keep` on. Thread:
 * any. */
int hk_journal_bound(struct hk_journal *journal, uint64_t bytes, uint64_t keep);
/* Position at which the oldest segment begins, and total size of the segments, bytes. Thread: any. */
uint64_t hk_journal_begins(struct hk_journal *journal);
uint64_t hk_journal_bytes(struct hk_journal *journal);

/* Sets *version to that of the newest segment with a valid head; 0: none. Returns 0 or a negative errno. */
int hk_journal_version(const struct hk_journal_place *place, uint32_t *version);

#endif
