/* Journal: records in the order in which they were appended, in files of which a crash leaves whole records.
 *
 *   any thread:     hk_journal_begin -> writes the payload -> hk_journal_end    a copy into memory
 *   commit thread:  hk_journal_take -> hk_journal_commit                        to the disk, all records appended by then
 *
 * A journal has a position, a count that records advance; its user defines what it counts: points that a shard has taken, or
 * logged events. When a commit has returned 0, all records up to the position at the take before it are on the disk, and
 * hk_journal_committed returns that position.
 *
 * The files (segments) are STEM-NUMBER.SUFFIX in a folder; FORMAT.md describes their bytes. A new one is begun when one is large
 * enough, and after every start and every failure. A segment that could not be written is never continued, because it is unknown
 * how much of it is on the disk; its uncommitted records are written again into the next one. So records may exist twice;
 * readers recognise them by their positions.
 *
 * Errors: 0 or a negative errno. */
#ifndef HK_JOURNAL_H
#define HK_JOURNAL_H

#include "daemon/base/disk.h"
#include "daemon/durable/journal_format.h"
#include "daemon/durable/marks.h"

#include <stdatomic.h>

#define HK_JOURNAL_ROOM (64u << 20) /* bytes in memory from which on callers that can wait should wait */

/* Contents of a journal; in the head of each segment. */
enum hk_journal_kind { HK_JOURNAL_POINTS = 1, HK_JOURNAL_EVENTS = 2 };

struct hk_journal_place {
  const struct hk_disk *disk;
  int folder; /* the caller's; open as long as the journal or reader exists */
  const char *stem, *suffix;
  uint32_t kind;          /* enum hk_journal_kind */
  uint32_t shard, shards; /* its shard, and the number of shards; 0 of 1 if not applicable */
  uint64_t segment;       /* writing: size after which a new segment is begun */
  struct hk_marks *marks; /* writing: receives its position; NULL: not recorded */
  uint32_t mark;          /* its index in marks */
};

/* A record, as read. */
struct hk_record {
  uint32_t type;
  uint32_t count;         /* by how much it advances the position */
  uint64_t position;      /* before it */
  uint32_t size;          /* bytes of the payload */
  const uint8_t *payload; /* 8-byte aligned */
};

struct hk_journal;

/* Continues at a position, in a new segment after the existing ones; writes nothing before the first commit. place is copied. */
int hk_journal_new(struct hk_journal **out, const struct hk_journal_place *place, uint64_t position);
/* Frees the journal; uncommitted records are lost. NULL is allowed. */
void hk_journal_free(struct hk_journal *journal);

/* Begins a record: returns where to write its `size` <= HK_RECORD_MAX bytes of payload, 8-byte aligned; the journal is locked
 * until hk_journal_end. NULL: no memory, and the journal is not locked. Thread: any. */
void *hk_journal_begin(struct hk_journal *journal, uint32_t type, size_t size);
/* Ends the record, which advances the position by count. Returns the position after it. */
uint64_t hk_journal_end(struct hk_journal *journal, uint32_t count);
/* Whether there is room before HK_JOURNAL_ROOM. Callers that can wait do so until a commit; others may append regardless. Thread:
 * any. */
bool hk_journal_room(const struct hk_journal *journal);
/* Position after the last appended record; position up to which all records are on the disk. Thread: any. */
uint64_t hk_journal_position(const struct hk_journal *journal);
uint64_t hk_journal_committed(const struct hk_journal *journal);
/* ns (hk_now) since when a record has been waiting to be committed; 0: none. Thread: any. */
int64_t hk_journal_waiting_since(struct hk_journal *journal);

/* Takes the appended records, to be committed next. False: nothing to commit. Thread: the commit thread, here and below. */
bool hk_journal_take(struct hk_journal *journal);
/* Whether the records of the last take are still to be committed: the next take returns these and nothing newer. */
bool hk_journal_behind(const struct hk_journal *journal);
/* Writes and syncs the taken records. After an error they are still to be committed: call again. -ESTALE: they were written to a
 * file that a start would not read; see hk_journal_look. each: called with every record once all are on the disk; may be NULL. */
int hk_journal_commit(struct hk_journal *journal, void (*each)(void *arg, const struct hk_record *record), void *arg);
/* Writes the journal's present mark: for events the shown position; for points where the mark was, or the last committed record
 * since. Returns 0 or a negative errno, here and below. */
int hk_journal_note(struct hk_journal *journal);
/* Marks the journal as paused, synced: events up to its position, and later ones, are published without being on the disk. */
int hk_journal_note_apart(struct hk_journal *journal);
/* The position, by the marks on the disk, up to which no position is reused after a crash. UINT64_MAX: no limit. A position after
 * that, while no mark can be written, may be another event's in the next run. Thread: any. */
uint64_t hk_journal_sure(const struct hk_journal *journal);
/* Nothing is published any more. For events: none was published after the marked ones. */
int hk_journal_note_end(struct hk_journal *journal);
/* Continues without the disk: uncommitted and later records are dropped; the position advances as usual, and all of it counts as
 * committed. Thread: any. */
void hk_journal_pause(struct hk_journal *journal);
/* Continues with the disk, in a new segment. Returns the position from which on the journal is complete. Thread: any. */
uint64_t hk_journal_resume(struct hk_journal *journal);

#define HK_JOURNAL_ASIDE "damaged" /* suffix of segments that are set aside (journal_quarantine.h) */

#endif
