/* Restores the state of the previous run. Thread: main. */
#ifndef HK_RESTORE_H
#define HK_RESTORE_H

#include "daemon/server/server.h"

/* Replays the journals of the previous run, and starts this run's. Shards run. Returns 0, or a negative errno with a message. */
int hk_server_restore(struct hk_server *server, char *error, size_t size);
/* Restores snapshots, before shards run. */
int hk_server_restore_snapshots(struct hk_server *server, char *error, size_t size);

#endif
