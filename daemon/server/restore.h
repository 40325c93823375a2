/* Going on from where the last run ended. Thread: main. */
#ifndef HK_RESTORE_H
#define HK_RESTORE_H

#include "daemon/server/server.h"

/* Restores what outlived the daemon's last run, and begins to write down this one. Shards run. 0, or a negative errno with a
 * message. */
int hk_server_restore(struct hk_server *server, char *error, size_t size);
/* And before shards run. */
int hk_server_restore_snapshots(struct hk_server *server, char *error, size_t size);

#endif
