/* The thread of a loop: start, turns and end (loop.h). */
#ifndef HK_LOOP_THREAD_H
#define HK_LOOP_THREAD_H

#include "daemon/net/loop.h"

struct hk_gate;

/* Opens loop `number` on this thread, with no sockets yet. loop: zeroed. 0, or a negative errno with a message. */
int hk_loop_open(struct hk_loop *loop, struct hk_net *net, uint32_t number, char *error, size_t size);
/* Opens a socket for datagrams. bind_to: the address; receives the bound one. fd: a socket bound there already; -1: none. Errors
 * as above. */
int hk_loop_listen(struct hk_loop *loop, const struct hk_config_listener *config, struct hk_gate *gate,
                   struct sockaddr_storage *bind_to, int fd, char *error, size_t size);
/* Starts running: on its own thread, or, loop 0, on the caller's once it calls uv_run. beat: ms between two beats. 0 or a
 * negative errno. */
int hk_loop_start(struct hk_loop *loop, uint64_t beat);
/* Ends the thread. False: it hangs. Thread: main. */
bool hk_loop_stop(struct hk_loop *loop);
/* Closes connections and sockets, and frees the contents of the lanes; the shards have stopped. May be called for a loop that was
 * not opened. */
void hk_loop_close(struct hk_loop *loop);

#endif
