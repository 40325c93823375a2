/* The life of the server: hk_server_open -> hk_server_run (until SIGTERM or SIGINT, then drains) -> hk_server_close. Thread:
 * main. */
#ifndef HK_LIFECYCLE_H
#define HK_LIFECYCLE_H

#include "daemon/server/server.h"

/* Opens all that the configuration says and begins to serve. server: zeroed. kinds: as hk_backend_kinds. 0, or a negative errno
 * with a message; close it in either case. */
int hk_server_open(struct hk_server *server, const struct hk_config *config, const struct hk_backend_kind *kinds, char *error,
                   size_t size);
/* Serves until it is told to end: 0; or -EIO: the device was lost, and nothing else may go on. What had to be given up is logged.
 */
int hk_server_run(struct hk_server *server);
/* False: a thread hangs, of a device that was lost or of our own; the process can only be ended with _exit. */
bool hk_server_close(struct hk_server *server);

#endif
