/* The shards of a server, and the lanes from its loops: those that score, and with [cluster] role = all the one that publishes
 * the points of peers (the entry). Thread: main. */
#ifndef HK_SERVER_SHARDS_H
#define HK_SERVER_SHARDS_H

#include "daemon/scoring/backends.h"
#include "daemon/server/server.h"

/* Sets what shards have in common. ended: as hk_shards.ended. */
void hk_server_prepare_shards(struct hk_server *server, const struct hk_backend_kind *kinds, void (*ended)(void *arg));
/* Makes the lanes between loops and shards. Returns 0 or -ENOMEM. */
int hk_server_open_lanes(struct hk_server *server);
/* Opens all shards, and the relay if there is one. Returns 0, or a negative errno with a message. */
int hk_server_open_shards(struct hk_server *server, char *error, size_t size);

#endif
