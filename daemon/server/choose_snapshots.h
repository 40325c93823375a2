/* Chooses and checks the snapshots to restore: the newest good one of each shard, of the newest complete epoch. Thread: main. */
#ifndef HK_CHOOSE_SNAPSHOTS_H
#define HK_CHOOSE_SNAPSHOTS_H

#include "daemon/durable/durable.h"
#include "daemon/durable/snapshot.h"

/* A snapshot in the state folder. */
struct hk_found_snapshot {
  struct hk_snapshot_about about;
  uint32_t folder; /* number of its shard's folder */
  char name[HK_DISK_NAME_MAX];
  bool bad;
};

struct hk_snapshot_choice {
  struct hk_durable *durable;
  int folders[HK_SHARDS_MAX];      /* -1: none */
  struct hk_found_snapshot *found; /* sorted by epoch, shard and number, newest last */
  uint32_t n;
  struct hk_found_snapshot *chosen[HK_SHARDS_MAX]; /* the chosen one of each former shard; NULL: none */
};

/* Searches the state folder; damaged snapshots are logged and skipped. Returns 0, or a negative errno with a message; to close in
 * either case. */
int hk_snapshots_choose(struct hk_snapshot_choice *choice, struct hk_durable *durable, char *error, size_t size);
void hk_snapshot_choice_close(struct hk_snapshot_choice *choice);
/* Whether a snapshot was chosen; whether one was damaged. */
bool hk_snapshot_chosen(const struct hk_snapshot_choice *choice);
bool hk_snapshot_any_bad(const struct hk_snapshot_choice *choice);

#endif
