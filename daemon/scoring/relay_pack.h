/* Packing points of many sensors into messages of the logs of a cluster, as PROTOCOL.md has them (Messages between machines).
 * Thread: the shard's, but for hk_packed, which goes with its owner. */
#ifndef HK_RELAY_PACK_H
#define HK_RELAY_PACK_H

#include "daemon/sensors/registry.h"

struct hk_chunk;

struct hk_packed_message {
  uint32_t partition;
  uint32_t points;
  size_t at, size; /* of `bytes` */
};

/* Messages, in one piece of memory, which is kept for the next. Zero is empty. */
struct hk_packed {
  uint8_t *bytes;
  size_t capacity;
  struct hk_packed_message *message;
  uint32_t n, room;
};
void hk_packed_free(struct hk_packed *packed);

struct hk_packer;

/* 0 and *out, or -ENOMEM. points: most that are packed at once. config, registry: outlive it. */
int hk_packer_new(struct hk_packer **out, const struct hk_config *config, struct hk_registry *registry, uint32_t points);
void hk_packer_free(struct hk_packer *packer); /* NULL is fine */
/* Another configuration is in force; the keys of [cluster] stay. 0, or -ENOMEM: sensors go to where they went before. */
int hk_packer_adopt(struct hk_packer *packer, const struct hk_config *config);
/* Makes messages of all points of n chunks, whose slots are those of the registry: of a sensor in their order. What was in `out`
 * is gone. 0, or -ENOMEM. */
int hk_packer_pack(struct hk_packer *packer, struct hk_chunk *const *chunks, uint32_t n, struct hk_packed *out);

#endif
