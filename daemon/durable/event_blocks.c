#include "daemon/durable/event_blocks.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS 64 /* approximate number of blocks */

static void drop_oldest(struct hk_event_blocks *l)
{
  struct hk_event_block *b = l->oldest;
  l->oldest = b->next;
  if (!l->oldest)
    l->newest = NULL;
  l->bytes -= b->capacity;
  free(b);
}

/* Makes room for this many bytes in the newest block. NULL: no memory. */
static uint8_t *event_blocks_room(struct hk_event_blocks *l, uint64_t position, size_t bytes)
{
  if (!l->newest || l->newest->capacity - l->newest->size < bytes) {
    const size_t usual = l->most / BLOCKS, capacity = bytes > usual ? bytes : usual;
    struct hk_event_block *b = malloc(sizeof *b + capacity);
    if (!b)
      return NULL;
    while (l->oldest && !l->held && l->bytes + capacity > l->most)
      drop_oldest(l);
    *b = (struct hk_event_block){ .first = position, .capacity = capacity };
    if (l->newest)
      l->newest->next = b;
    else
      l->oldest = b;
    l->newest = b;
    l->bytes += capacity;
  }
  uint8_t *at = l->newest->data + l->newest->size;
  l->newest->size += bytes;
  return at;
}

void hk_blocks_keep(struct hk_event_blocks *l, uint64_t position, enum hk_log_record type, const void *payload, size_t size)
{
  const struct hk_event_entry e = { .position = position, .bytes = (uint32_t)(sizeof e + (size + 7) / 8 * 8), .type = type };
  uint8_t *at = event_blocks_room(l, position, e.bytes);
  if (!at)
    return;
  memcpy(at, &e, sizeof e);
  memcpy(at + sizeof e, payload, size);
}

struct hk_event_block *hk_blocks_seek(const struct hk_event_blocks *l, struct hk_eventlog_cursor *c)
{
  struct hk_event_block *b = l->oldest;
  while (b && b->next && b->next->first <= c->next)
    b = b->next;
  if (b && c->block != b->first) {
    c->block = b->first;
    c->offset = 0;
  }
  return b;
}

struct hk_event_entry hk_blocks_entry(struct hk_event_block **b, struct hk_eventlog_cursor *c)
{
  struct hk_event_entry e = { .position = UINT64_MAX };
  if (*b && c->offset == (*b)->size && (*b)->next) {
    *b = (*b)->next;
    c->block = (*b)->first;
    c->offset = 0;
  }
  if (*b && c->offset < (*b)->size)
    memcpy(&e, (*b)->data + c->offset, sizeof e);
  return e;
}

void hk_blocks_release(struct hk_event_blocks *l)
{
  l->held = false;
  while (l->oldest && l->bytes > l->most)
    drop_oldest(l);
}

void hk_blocks_free(struct hk_event_blocks *l)
{
  while (l->oldest)
    drop_oldest(l);
}
