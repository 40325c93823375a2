/* Sets the damaged end of a journal aside. */
#ifndef HK_JOURNAL_QUARANTINE_H
#define HK_JOURNAL_QUARANTINE_H

#include "daemon/durable/journal.h"

/* Ends a journal at a damaged place without losing bytes: later segments are renamed STEM-NUMBER.damaged, the damaged one is
 * copied to such a file, and then cut at `at`. These files are neither read nor removed. After a failure, or a crash, call it
 * again. */
int hk_journal_set_aside(const struct hk_journal_place *place, uint64_t number, uint64_t at);

#endif
