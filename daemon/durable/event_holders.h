/* Holders: which machine of a cluster scores a partition, by what the shared log of events says (event_shared.h), and which one
 * has been told to. Who has a partition is decided by leases (bridge/engine.h); this is where others learn of it.
 *
 *     a machine takes a lease -> its record HOLDS, again every few hours -> everybody's table
 *     an operator moves a partition -> record WISH of the machine that is to have it -> its holder gives it up, others decline it
 *
 * Thread: any. */
#ifndef HK_EVENT_HOLDERS_H
#define HK_EVENT_HOLDERS_H

#include "proto/wire/partition.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_MACHINE_MAX 255u                  /* bytes of a machine's name, HOST:PORT */
#define HK_HOLDERS_WISH INT64_C(30000000000) /* ns for which a wish counts, unless it is fulfilled before */
/* In place of the epoch of a wish: it was sent before; it is withdrawn. */
#define HK_HOLDERS_AGAIN 1u
#define HK_HOLDERS_WITHDRAWN 2u

enum hk_holders_wish {
  HK_WISH_NONE,
  HK_WISH_OURS,  /* this machine is to have the partition */
  HK_WISH_OTHERS /* another one is */
};

struct hk_holder {
  uint64_t epoch; /* of its holding, from 1 */
  char machine[HK_MACHINE_MAX + 1];
};

struct hk_holders;

int hk_holders_new(struct hk_holders **out);      /* 0 or -ENOMEM */
void hk_holders_free(struct hk_holders *holders); /* NULL is allowed */

/* Size of a record, and its payload: `to` has room for it. machine: of HOLDS; NULL: a WISH, whose epoch is 0 or
 * one of these. Builds before each leave such a record out: for them a wish counts once, or for its whole time. */
size_t hk_holders_size(const char *machine);
void hk_holders_write(uint8_t *to, uint32_t partition, uint64_t epoch, const char *machine);
/* Takes a record HOLDS; one that cannot be read, or is of an earlier epoch, changes nothing. by: number of the process that wrote
 * it, which fulfils its wish. */
void hk_holders_take(struct hk_holders *holders, uint64_t by, const uint8_t *payload, size_t size);
/* Takes a record WISH. One that is withdrawn ends at once, unless another process wished for the partition since. One that was
 * sent before does not overrule a later wish of another process, also if that is fulfilled: its writer may not have read of it
 * yet. ours: this machine wrote it; now: ns, hk_now. */
void hk_holders_take_wish(struct hk_holders *holders, uint64_t by, bool ours, int64_t now, const uint8_t *payload, size_t size);

/* The machine that has a partition, as far as is known. False: none is. */
bool hk_holders_find(struct hk_holders *holders, uint32_t partition, struct hk_holder *out);
uint32_t hk_holders_count(struct hk_holders *holders); /* machines that have any */
enum hk_holders_wish hk_holders_wish(struct hk_holders *holders, uint32_t partition, int64_t now);

#endif
