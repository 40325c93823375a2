/* Told: the standing alerts that a receiver has sent, bounded; by hashes of sensor and number. Thread: the receiver's.
 */
#ifndef HK_NOTIFY_TOLD_H
#define HK_NOTIFY_TOLD_H

#include "daemon/durable/event_log.h"

#include <stdbool.h>
#include <stdint.h>

#define HK_TOLD_MOST 65536u

struct hk_told_place {
  uint64_t key, position; /* key 0: empty; position 0: the alert is acknowledged */
};
struct hk_told {
  struct hk_told_place *place; /* 2 * HK_TOLD_MOST */
  uint32_t n, hushed;          /* hushed: acknowledged ones among them */
  bool overflowed;             /* there were more than fit: an alert that is not found may have been sent */
};

/* The key of an alert; not 0. */
uint64_t hk_told_key(const struct hk_logged *logged);
int hk_told_open(struct hk_told *told); /* 0 or -ENOMEM */
void hk_told_close(struct hk_told *told);
void hk_told_clear(struct hk_told *told);
void hk_told_add(struct hk_told *told, const struct hk_logged *logged);
bool hk_told_has(const struct hk_told *told, const struct hk_logged *logged);
/* The position with which it was added; 0: it is not there, or is hushed. */
uint64_t hk_told_position(const struct hk_told *told, const struct hk_logged *logged);
/* It is not to be repeated. */
void hk_told_hush(struct hk_told *told, const struct hk_logged *logged);
/* By keys: whether it is there and not hushed; whether it is there. */
bool hk_told_stands(const struct hk_told *told, uint64_t key);
bool hk_told_knows(const struct hk_told *told, uint64_t key);
void hk_told_remove(struct hk_told *told, const struct hk_logged *logged);

#endif
