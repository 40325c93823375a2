/* Packs points of many sensors into messages of the logs of a cluster (PROTOCOL.md, Messages between machines). Thread: the
 * shard's, except hk_packed, which goes with its owner. */
#ifndef HK_RELAY_PACK_H
#define HK_RELAY_PACK_H

#include "daemon/sensors/registry.h"

struct hk_chunk;

struct hk_packed_message {
  uint32_t partition;
  uint32_t points;
  size_t at, size; /* within `bytes` */
};

/* Messages in one piece of memory, which is reused. Zero-initialised: empty. */
struct hk_packed {
  uint8_t *bytes;
  size_t capacity;
  struct hk_packed_message *message;
  uint32_t n, room;
};
void hk_packed_free(struct hk_packed *packed);

struct hk_packer;

/* Makes a packer. points: maximum number packed at once. config, registry: outlive it. Returns 0 and *out, or -ENOMEM. */
int hk_packer_new(struct hk_packer **out, const struct hk_config *config, struct hk_registry *registry, uint32_t points);
void hk_packer_free(struct hk_packer *packer); /* NULL is fine */
/* Another configuration is in force; the keys of [cluster] stay. Returns 0, or -ENOMEM: sensors keep their partitions. */
int hk_packer_adopt(struct hk_packer *packer, const struct hk_config *config);
/* Makes messages of all points of n chunks, whose slots are the registry's; points of a sensor stay in order. Replaces the
 * content of `out`. Returns 0 or -ENOMEM. */
int hk_packer_pack(struct hk_packer *packer, struct hk_chunk *const *chunks, uint32_t n, struct hk_packed *out);

#endif
