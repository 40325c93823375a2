/* Memory for one decoded message: freed all at once, and bounded, because a small message can be large when decoded. Thread: the
 * owner's. */
#ifndef HK_WEB_ARENA_H
#define HK_WEB_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#define HK_WEB_ARENA (256u << 20) /* bytes, at most */

struct hk_web_arena {
  ProtobufCAllocator allocator; /* for protobuf-c */
  struct hk_web_arena_block *blocks;
  size_t used, size; /* of the newest block */
  size_t all;        /* bytes of all blocks */
  bool full;         /* the limit was reached, or memory ran out */
};

void hk_web_arena_open(struct hk_web_arena *arena);
void hk_web_arena_free(struct hk_web_arena *arena);

#endif
