/* Reads the records of a journal, and reports its damaged parts. */
#ifndef HK_JOURNAL_READ_H
#define HK_JOURNAL_READ_H

#include "daemon/durable/journal.h"

struct hk_journal_reader;

/* A part of a segment that is not a record, and is skipped; or a segment whose predecessor is missing. */
struct hk_journal_damaged {
  const char *file;
  uint64_t number;    /* of the segment, as in its name */
  uint64_t at, bytes; /* up to the next whole record, or the end of the segment */
  bool tail;          /* it is the end of the last segment, and no complete record follows: typical of a crash */
  bool missing;       /* this segment is undamaged (bytes is 0), but committed records before it are missing */
  const char *why;
};
typedef void hk_journal_damage(void *arg, const struct hk_journal_damaged *damaged);

/* Opens the segments, beginning with the one with position `from`. Records before that position are read too. damage may be NULL.
 * -EPROTONOSUPPORT: a segment has another version or another kind, given in `why`. */
int hk_journal_read(struct hk_journal_reader **out, const struct hk_journal_place *place, uint64_t from,
                    hk_journal_damage *damage, void *arg, char *why, size_t size);
/* Reads the next record, valid until the next call. Returns 1, 0 at the end, or a negative errno. */
int hk_journal_next(struct hk_journal_reader *reader, struct hk_record *out);
/* The number of shards recorded in the segment of the last record, and the number of that segment. */
uint32_t hk_journal_shards(const struct hk_journal_reader *reader);
uint64_t hk_journal_number(const struct hk_journal_reader *reader);
/* Number of bytes still to be read. */
uint64_t hk_journal_left(const struct hk_journal_reader *reader);
/* Cuts off the torn end of the last segment, after all was read. */
int hk_journal_mend(struct hk_journal_reader *reader);
void hk_journal_read_close(struct hk_journal_reader *reader); /* NULL is allowed */

/* Whether this many bytes of a segment, by its number and salt, existed when the reader was opened; the salt is ignored if its
 * head is damaged. */
bool hk_journal_holds(const struct hk_journal_reader *reader, uint64_t number, uint64_t bytes, uint64_t salt);

#endif
