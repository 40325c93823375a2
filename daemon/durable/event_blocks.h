/* The event log in memory: a list of blocks, each with consecutive records. A record is an entry and then the payload as on the
 * disk. The oldest blocks are freed when there are too many bytes. Thread: the caller's lock. */
#ifndef HK_EVENT_BLOCKS_H
#define HK_EVENT_BLOCKS_H

#include "daemon/durable/event_records.h"

struct hk_event_entry {
  uint64_t position; /* UINT64_MAX: none */
  uint64_t incident; /* of an event: its incident; 0: none */
  uint32_t bytes;    /* of entry and payload, a multiple of 8 */
  uint32_t type;     /* enum hk_log_record */
};

struct hk_event_block {
  struct hk_event_block *next;
  uint64_t first; /* position of its first record */
  size_t size, capacity;
  uint8_t data[];
};

/* All zero except `most`: empty. */
struct hk_event_blocks {
  struct hk_event_block *oldest, *newest;
  uint64_t bytes; /* capacity of all blocks */
  uint64_t most;  /* maximum of `bytes` */
  bool held;      /* no block is freed */
};

/* A reader's place. All zero except `next`. */
struct hk_eventlog_cursor {
  uint64_t next;          /* position of the next event to read */
  uint64_t missed;        /* positions that were deleted before they were read; the caller sets it to 0 after reporting them */
  uint64_t block, offset; /* where `next` was last found */
};

/* Keeps a copy of a payload, or omits it without memory. Positions ascend. */
void hk_blocks_keep(struct hk_event_blocks *blocks, uint64_t position, enum hk_log_record type, const void *payload, size_t size);

/* The block with the cursor's next entry, or the first one after it; updates the cursor's place. NULL: none. */
struct hk_event_block *hk_blocks_seek(const struct hk_event_blocks *blocks, struct hk_eventlog_cursor *cursor);

/* The entry at the cursor's place; at the end of a block, the first of the next. Its payload follows it in the block. */
struct hk_event_entry hk_blocks_entry(struct hk_event_block **block, struct hk_eventlog_cursor *cursor);

/* Blocks are no longer held: frees the oldest until the rest is within `most`. */
void hk_blocks_release(struct hk_event_blocks *blocks);

void hk_blocks_free(struct hk_event_blocks *blocks);

#endif
