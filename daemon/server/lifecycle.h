/* The life of the server: hk_server_open -> hk_server_run (until SIGTERM or SIGINT, then drains) -> hk_server_close. Thread:
 * main. */
#ifndef HK_LIFECYCLE_H
#define HK_LIFECYCLE_H

#include "daemon/server/server.h"

/* Opens everything in the configuration and listens. server: zeroed. kinds: as hk_backend_kinds. Returns 0, or a negative errno
 * with a message; to close in either case. */
int hk_server_open(struct hk_server *server, const struct hk_config *config, const struct hk_backend_kind *kinds, char *error,
                   size_t size);
/* Serves until a signal stops it. Returns 0; or -EIO: the device was lost without replacement. Logs the number of points that
 * were not processed. */
int hk_server_run(struct hk_server *server);
/* Closes the server. False: a thread hangs, a lost device's or another; the process can only end with _exit. */
bool hk_server_close(struct hk_server *server);

#endif
