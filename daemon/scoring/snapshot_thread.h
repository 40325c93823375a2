/* The thread of a saver: writes slices to a file, and removes files that are no longer needed. */
#ifndef HK_SNAPSHOT_THREAD_H
#define HK_SNAPSHOT_THREAD_H

#include "daemon/scoring/snapshot_slice.h"

/* Opens a saver; removes the files of an unfinished snapshot. Starts no thread yet. Returns 0 or a negative errno. Thread: main,
 * before the shard's starts. */
int hk_saver_open(struct hk_saver **out, const struct hk_saver_place *place);
/* Stops the thread, and abandons the current snapshot. False: it hangs in a call of the disk. NULL is allowed. Thread: main, when
 * the shard's has stopped. */
bool hk_saver_close(struct hk_saver *saver);

/* Abandons the current snapshot. Any thread. */
void hk_saver_fail(struct hk_saver *saver, const char *why);
/* For status. Any thread. */
struct hk_saver_condition hk_saver_condition(struct hk_saver *saver);
/* Hands an order to the thread, which owns it then. Thread: the shard's. */
void hk_saver_send(struct hk_saver *saver, struct hk_save_order *order);

#endif
