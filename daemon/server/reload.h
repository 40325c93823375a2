/* Reload: another configuration for a running daemon, on SIGHUP or a RELOAD frame. Phases:
 *
 *   read    a thread of its own, so that a hanging file system delays nothing, reads and checks the configuration, certificates,
 *           keys and tokens; after an error nothing changes
 *   learn   backends learn the new detectors; if one cannot (no memory, not on a GPU), nothing changes
 *   adopt   everything takes effect: certificates, keys and tokens, then the configuration for new names, then loop by loop and
 *           shard by shard. Sensors whose detector is changed, gone, or no longer the first that matches are evicted, as after a
 *           long silence, and come again as new ones; their standing alerts are cleared. Other sensors are unaffected
 *   forget  backends free the memory of detectors without sensors
 *   admit   replaces learn, adopt and forget if only certificates, keys and tokens have changed: every loop closes connections
 *           that are no longer allowed (otherwise a part of `adopt`). After it no connection has more rights than it should
 *
 * Main leads, and checks every few milliseconds how far the other threads are. Every thread has its own pointer to the
 * configuration, so no point ever waits for a reload; the old one is freed once all threads have taken the new one.
 *
 * The result of a reload is reported line by line in the log and to the requesters. Requests during a reload together make one
 * more, afterwards. Thread: main, unless stated otherwise. */
#ifndef HK_RELOAD_H
#define HK_RELOAD_H

#include "daemon/base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

struct hk_server;

/* Opens its handles on loop 0. Returns 0 or a negative errno. */
int hk_reload_open(struct hk_server *server);
/* Frees everything; loops and shards have stopped. */
void hk_reload_close(struct hk_server *server);

/* Requests a reload, and returns a ticket for its result. Thread: any. */
uint64_t hk_reload_ask(struct hk_server *server);
/* Whether there is a result for a ticket, appended to `report` as lines of text; *taken: the configuration is in force. Waiting
 * connections are woken with hk_shard_settled. Thread: any. */
bool hk_reload_result(struct hk_server *server, uint64_t ticket, struct hk_buffer *report, bool *taken);
/* The results of reloads so far, as one JSON object. Thread: any. */
void hk_reload_status(struct hk_server *server, struct hk_buffer *out);

#endif
