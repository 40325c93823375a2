/* What of a journal was there when it was read, beside its records. */
#ifndef HK_JOURNAL_READ_H
#define HK_JOURNAL_READ_H

#include "daemon/durable/journal.h"

/* Whether so much of a segment, by its number and salt, was there when the reader was opened; where its head is damaged its salt
 * is not looked at. */
bool hk_journal_holds(const struct hk_journal_reader *reader, uint64_t number, uint64_t bytes, uint64_t salt);

#endif
