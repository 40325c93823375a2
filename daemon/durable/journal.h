/* Journal: records in the order in which they were appended, in files, of which a crash leaves whole records.
 *
 *   any thread:     hk_journal_begin -> writes the payload -> hk_journal_end    a copy into memory
 *   commit thread:  hk_journal_take -> hk_journal_commit                        to the disk, all that was appended until then
 *
 * A journal has a position, a count that records move on; what it counts is its user's: points that a shard has taken, events
 * that were logged. When a commit has returned 0 all records up to the position at the take before it are on the disk, and
 * hk_journal_committed says so.
 *
 * The files (segments) are STEM-NUMBER.SUFFIX in a folder; FORMAT.md describes them byte by byte. A new one is begun when one is
 * large enough, and after every start and every failure: one that could not be written is never written on, because nobody knows
 * what of it is on the disk; what was not committed is written again into the next one. So records may be there twice, and
 * positions tell.
 *
 * Errors: 0 or a negative errno. */
#ifndef HK_JOURNAL_H
#define HK_JOURNAL_H

#include "daemon/base/disk.h"
#include "daemon/durable/journal_format.h"
#include "daemon/durable/marks.h"

#include <stdatomic.h>

#define HK_JOURNAL_ROOM (64u << 20) /* bytes in memory after which callers that can wait should */

/* What is in a journal; in the head of each segment. */
enum hk_journal_kind { HK_JOURNAL_POINTS = 1, HK_JOURNAL_EVENTS = 2 };

struct hk_journal_place {
  const struct hk_disk *disk;
  int folder; /* the caller's, open as long as the journal or reader is */
  const char *stem, *suffix;
  uint32_t kind;          /* enum hk_journal_kind */
  uint32_t shard, shards; /* whose it is, and of how many; 0 of 1 where that means nothing */
  uint64_t segment;       /* writing: size after which a new one is begun */
  struct hk_marks *marks; /* writing: where to put how far it is; NULL: nowhere */
  uint32_t mark;          /* its index there */
};

/* A record, as read. */
struct hk_record {
  uint32_t type;
  uint32_t count;         /* by how much it moves the position */
  uint64_t position;      /* before it */
  uint32_t size;          /* bytes of the payload */
  const uint8_t *payload; /* 8-byte aligned */
};

struct hk_journal;

/* Continues at a position, in a new segment after the existing ones; nothing is written before the first commit. place is copied.
 */
int hk_journal_new(struct hk_journal **out, const struct hk_journal_place *place, uint64_t position);
/* What was not committed is lost. NULL is allowed. */
void hk_journal_free(struct hk_journal *journal);

/* Begins a record: where its `size` <= HK_RECORD_MAX bytes of payload are to be written, 8-byte aligned; the journal is locked
 * until hk_journal_end. NULL: no memory, and it is not locked. Thread: any. */
void *hk_journal_begin(struct hk_journal *journal, uint32_t type, size_t size);
/* Ends it; it moves the position on by count. Returns the position after it. */
uint64_t hk_journal_end(struct hk_journal *journal, uint32_t count);
/* Whether there is room before HK_JOURNAL_ROOM. Callers that can wait do so until a commit; others may append all the same.
 * Thread: any. */
bool hk_journal_room(const struct hk_journal *journal);
/* Position after the last appended record; position up to which all is on the disk. Thread: any. */
uint64_t hk_journal_position(const struct hk_journal *journal);
uint64_t hk_journal_committed(const struct hk_journal *journal);
/* ns (hk_now) since when something has been waiting to be committed; 0: nothing is. Thread: any. */
int64_t hk_journal_waiting_since(struct hk_journal *journal);

/* Takes the appended records, to be committed next. False: nothing to commit. Thread: the commit thread, here and below.
 */
bool hk_journal_take(struct hk_journal *journal);
/* Whether the records of the last take are still to be committed: the next take returns these and nothing newer. */
bool hk_journal_behind(const struct hk_journal *journal);
/* Writes and syncs the taken records. After an error they are still to be committed: call again. -ESTALE: they were written to a
 * file that a start would not read; see hk_journal_look. each: called with every record once all are on the disk; may be NULL.
 */
int hk_journal_commit(struct hk_journal *journal, void (*each)(void *arg, const struct hk_record *record), void *arg);
/* Puts the mark of the journal as it is: of events up to what is shown, of points up to where the mark was, or records since were
 * committed. 0 or a negative errno, here and below. */
int hk_journal_note(struct hk_journal *journal);
/* Marks the journal as paused: events up to its position were published without being on the disk, and more will be; synced. */
int hk_journal_note_apart(struct hk_journal *journal);
/* The position up to which none is used again after a crash, by the marks on the disk. UINT64_MAX: no limit. A position after
 * that, while no mark can be written, may be another event's in the next run. Thread: any. */
uint64_t hk_journal_sure(const struct hk_journal *journal);
/* Nothing is published any more. For events: none was after the published ones. */
int hk_journal_note_end(struct hk_journal *journal);
/* Continues without the disk: uncommitted and later records are dropped; the position advances as usual, and all of it counts as
 * committed. Thread: any. */
void hk_journal_pause(struct hk_journal *journal);
/* With the disk again, in a new segment. Returns the position from which on the journal has everything. Thread: any. */
uint64_t hk_journal_resume(struct hk_journal *journal);
/* --- reading --------------------------------------------------------------------------------------------------------- */

struct hk_journal_reader;

/* A part of a segment that is not a record, and is skipped; or a segment whose predecessor is missing. */
struct hk_journal_damaged {
  const char *file;
  uint64_t number;    /* of the segment, as in its name */
  uint64_t at, bytes; /* up to the next whole record, or the end of the segment */
  bool tail;          /* it is the end of the last segment, and no complete record follows: the trace of a crash */
  bool missing;       /* this segment is not damaged (bytes is 0), but committed records before it are missing */
  const char *why;
};
typedef void hk_journal_damage(void *arg, const struct hk_journal_damaged *damaged);

/* Opens the segments from the one with position `from` on. Records before that position are read too. damage may be NULL. A
 * segment of another version or another kind: -EPROTONOSUPPORT, and `why` says which. */
int hk_journal_read(struct hk_journal_reader **out, const struct hk_journal_place *place, uint64_t from,
                    hk_journal_damage *damage, void *arg, char *why, size_t size);
/* The next record, valid until the next call: 1; 0 at the end; or a negative errno. */
int hk_journal_next(struct hk_journal_reader *reader, struct hk_record *out);
/* Of the segment that the last record was in: how many shards there were, and its number. */
uint32_t hk_journal_shards(const struct hk_journal_reader *reader);
uint64_t hk_journal_number(const struct hk_journal_reader *reader);
/* Bytes that are left to be read. */
uint64_t hk_journal_left(const struct hk_journal_reader *reader);
/* Cuts off the torn end of the last segment. All was read. */
int hk_journal_mend(struct hk_journal_reader *reader);
void hk_journal_read_close(struct hk_journal_reader *reader); /* NULL is allowed */

/* Ends a journal at a damaged place without losing bytes: later segments are renamed STEM-NUMBER.damaged, the damaged one is
 * copied to such a file, and then cut at `at`. These files are neither read nor removed. After a failure, or a crash, call it
 * again. */
#define HK_JOURNAL_ASIDE "damaged"
int hk_journal_set_aside(const struct hk_journal_place *place, uint64_t number, uint64_t at);

#endif
