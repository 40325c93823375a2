/* Told: the alerts that a receiver was told of and that stand, bounded; by hashes of sensor and number. Thread: the receiver's.
 */
#ifndef HK_NOTIFY_TOLD_H
#define HK_NOTIFY_TOLD_H

#include "daemon/durable/event_log.h"

#include <stdbool.h>
#include <stdint.h>

#define HK_TOLD_MOST 65536u

struct hk_told_place {
  uint64_t key, position; /* key 0: empty; position 0: somebody has acknowledged it */
};
struct hk_told {
  struct hk_told_place *place; /* 2 * HK_TOLD_MOST */
  uint32_t n, hushed;          /* hushed: of these, that somebody has acknowledged */
  bool overflowed;             /* there were more: what is not found may have been told all the same */
};

int hk_told_open(struct hk_told *told); /* 0 or -ENOMEM */
void hk_told_close(struct hk_told *told);
void hk_told_clear(struct hk_told *told);
void hk_told_add(struct hk_told *told, const struct hk_logged *logged);
bool hk_told_has(const struct hk_told *told, const struct hk_logged *logged);
/* The position that it was added with; 0: it is not there, or is hushed. */
uint64_t hk_told_position(const struct hk_told *told, const struct hk_logged *logged);
/* It is not to be told again. */
void hk_told_hush(struct hk_told *told, const struct hk_logged *logged);
void hk_told_remove(struct hk_told *told, const struct hk_logged *logged);

#endif
