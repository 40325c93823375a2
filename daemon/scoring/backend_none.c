/* The backend of a gateway, which scores nothing: it accepts every sensor and no batch, and needs no memory. */
#include "daemon/scoring/backend_none.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t need(const struct hk_backend *b, uint32_t detector, uint64_t sensors)
{
  (void)b, (void)detector, (void)sensors;
  return 0;
}

static int backend_none_add(struct hk_backend *b, uint32_t slot, uint32_t detector, uint64_t seed)
{
  (void)b, (void)slot, (void)detector, (void)seed;
  return 0;
}

static int backend_none_define(struct hk_backend *b, const struct hk_definition *definitions, uint32_t n, char *error,
                               size_t size)
{
  (void)b, (void)definitions, (void)n, (void)error, (void)size;
  return 0;
}

static void limit(struct hk_backend *b, uint64_t memory)
{
  (void)b, (void)memory;
}

static void remove_slot(struct hk_backend *b, uint32_t slot)
{
  (void)b, (void)slot;
}

static int backend_none_submit(struct hk_backend *b, struct hk_batch *batch)
{
  (void)b, (void)batch;
  return -EINVAL;
}

static struct hk_batch *backend_none_reap(struct hk_backend *b)
{
  (void)b;
  return NULL;
}

static void backend_none_wait_for(struct hk_backend *b)
{
  (void)b;
}

static int64_t export_state(struct hk_backend *b, uint32_t slot, void *state, size_t size)
{
  (void)b, (void)slot, (void)state, (void)size;
  return -ENOTSUP;
}

static int import_state(struct hk_backend *b, uint32_t slot, const void *state, size_t size)
{
  (void)b, (void)slot, (void)state, (void)size;
  return -ENOTSUP;
}

static uint64_t image_most(const struct hk_detector *d)
{
  (void)d;
  return 0;
}

static const void *backend_none_state_of(void *image, const struct hk_detector *d, void *room, size_t *size)
{
  (void)d, (void)room;
  *size = 0;
  return image;
}

static void *alloc(struct hk_backend *b, size_t bytes)
{
  (void)b;
  return malloc(bytes);
}

static void free_memory(struct hk_backend *b, void *memory)
{
  (void)b;
  free(memory);
}

static void close_backend(struct hk_backend *b)
{
  free(b);
}

static const struct hk_backend_ops ops = { .name = "none",
                                           .need = need,
                                           .add = backend_none_add,
                                           .define = backend_none_define,
                                           .limit = limit,
                                           .remove = remove_slot,
                                           .submit = backend_none_submit,
                                           .reap = backend_none_reap,
                                           .wait = backend_none_wait_for,
                                           .export_ = export_state,
                                           .import_ = import_state,
                                           .image_most = image_most,
                                           .state_of = backend_none_state_of,
                                           .alloc = alloc,
                                           .free = free_memory,
                                           .close = close_backend };

static int backend_none_open_none(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size)
{
  (void)config;
  struct hk_backend *b = malloc(sizeof *b);
  if (!b) {
    snprintf(error, size, "no memory for a backend");
    return -ENOMEM;
  }
  b->ops = &ops;
  *out = b;
  return 0;
}

const struct hk_backend_kind hk_backend_kinds_none[] = {
  [HK_BACKEND_CPU] = { .open = backend_none_open_none, .batch = 1 },
  [HK_BACKEND_CUDA] = { .open = backend_none_open_none, .batch = 1 },
  [HK_BACKEND_REFERENCE] = { .open = backend_none_open_none, .batch = 1 },
};
