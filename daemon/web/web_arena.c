/* See web_arena.h. */
#include "daemon/web/web_arena.h"

#include <stdint.h>
#include <stdlib.h>

#define BLOCK 65536u /* bytes, the least */
#define ALIGN sizeof(max_align_t)

struct hk_web_arena_block {
  struct hk_web_arena_block *next;
  max_align_t data[];
};

static void *web_arena_take(void *arg, size_t size)
{
  struct hk_web_arena *a = arg;
  const size_t rounded = (size + ALIGN - 1) / ALIGN * ALIGN;
  if (a->full || rounded > HK_WEB_ARENA) {
    a->full = true;
    return NULL;
  }
  if (!a->blocks || a->size - a->used < rounded) {
    const size_t wanted =
        rounded > BLOCK + a->all / 4 ? rounded : BLOCK + a->all / 4 / ALIGN * ALIGN; /* few of them, however much */
    struct hk_web_arena_block *block = a->all + wanted > HK_WEB_ARENA ? NULL : malloc(sizeof(struct hk_web_arena_block) + wanted);
    if (!block) {
      a->full = true;
      return NULL;
    }
    block->next = a->blocks;
    a->blocks = block;
    a->used = 0;
    a->size = wanted;
    a->all += wanted;
  }
  void *at = (char *)a->blocks->data + a->used;
  a->used += rounded;
  return at;
}

static void web_arena_give(void *arg, void *pointer)
{
  (void)arg;
  (void)pointer;
}

void hk_web_arena_open(struct hk_web_arena *arena)
{
  *arena = (struct hk_web_arena){ .allocator = { web_arena_take, web_arena_give, arena } };
}

void hk_web_arena_free(struct hk_web_arena *arena)
{
  while (arena->blocks) {
    struct hk_web_arena_block *block = arena->blocks;
    arena->blocks = block->next;
    free(block);
  }
}
