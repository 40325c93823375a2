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
 * configuration,
 * so no point ever waits for a reload; the old configuration is freed once all threads have taken the new one.
 *
 * The result of a reload is reported line by line in the log and to the requesters. Requests during a reload together make one
 * more, afterwards. Thread: main, unless stated otherwise. */
#ifndef HK_RELOAD_H
#define HK_RELOAD_H

#include "daemon/base/buffer.h"
#include "daemon/scoring/shard.h"

#include <uv.h>

struct hk_credentials;
struct hk_server;

enum hk_reload_phase { HK_RELOAD_NONE, HK_RELOAD_READ, HK_RELOAD_LEARN, HK_RELOAD_ADOPT, HK_RELOAD_FORGET, HK_RELOAD_ADMIT };

struct hk_reload {
  const char *path;                 /* of the configuration; NULL: no file */
  const struct hk_config *at_start; /* owned by the caller; its listeners are shared by all configurations */
  uv_async_t call;
  uv_timer_t look;
  uv_work_t read; /* reads the files in phase `read`; only its thread writes to next, credentials and told then */
  bool readable;  /* the files were valid */
  enum hk_reload_phase phase;
  uint64_t begun;                      /* the ticket that this reload answers, with all earlier ones */
  int64_t time;                        /* ns: when it began */
  struct hk_config *next;              /* the new configuration, then the one in force */
  struct hk_credentials **credentials; /* of each gate, not in force yet; NULL: none were read, or they are in force */
  struct hk_sections *sections;
  struct hk_shard_reload_request request;
  struct hk_definition *learn, *forget;
  struct hk_buffer told; /* the report so far */
  uint32_t ordered;      /* orders to loops to adopt the configuration in force; hk_net counts the obeyed ones */
  /* for any thread */
  atomic_uint_fast64_t asked, done; /* tickets */
  pthread_mutex_t lock;
  struct hk_buffer report;     /* of the last reload; under lock */
  bool taken;                  /* whether that reload was adopted; under lock */
  uint64_t n_taken, n_refused; /* reloads so far; under lock */
};

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
