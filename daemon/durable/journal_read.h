/* What a journal's reader found, apart from records. */
#ifndef HK_JOURNAL_READ_H
#define HK_JOURNAL_READ_H

#include "daemon/durable/journal.h"

/* Whether this many bytes of a segment, by its number and salt, existed when the reader was opened; the salt is ignored if its
 * head is damaged. */
bool hk_journal_holds(const struct hk_journal_reader *reader, uint64_t number, uint64_t bytes, uint64_t salt);

#endif
