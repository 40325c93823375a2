/* Reload: another configuration for a daemon that runs, on SIGHUP or a RELOAD frame.
 *
 *   read      the file is read and checked whole, and certificates, keys and tokens, by a thread of its own, so that a file
 * system that hangs holds up nothing else; a fault in one, and all stays as it is learn     backends learn the new detectors; one
 * that cannot (no memory, not on a GPU), and all stays as it is adopt     all of it is in force: certificates, keys and tokens,
 * then the configuration for new names, and loop by loop, shard by shard. Sensors whose detector is not theirs any more (changed,
 * gone, or another's glob is first) are let go, as if they had been silent for long, and come again as new ones; alerts that
 * stand there are cleared. All others notice nothing forget    backends give back the memory of detectors that have no sensors
 * any more admit     in the place of all steps but the first where nothing has changed but certificates, keys and tokens: every
 * loop closes connections that are not allowed any more (that belongs to `adopt` else). Where this is over, none can do what it
 * may not
 *
 * Main leads, and looks every few milliseconds how far the others have got. Every thread has a pointer of its own to the
 * configuration, so no point ever waits for one, and the old one is freed once all have taken the new.
 *
 * What a reload came to is said line by line in the log and to those who asked. Reloads that are asked for meanwhile are one
 * more, afterwards. Thread: main, but for what says otherwise. */
#ifndef HK_RELOAD_H
#define HK_RELOAD_H

#include "daemon/base/buffer.h"
#include "daemon/scoring/shard.h"

#include <uv.h>

struct hk_credentials;
struct hk_server;

enum hk_reload_phase { HK_RELOAD_NONE, HK_RELOAD_READ, HK_RELOAD_LEARN, HK_RELOAD_ADOPT, HK_RELOAD_FORGET, HK_RELOAD_ADMIT };

struct hk_reload {
  const char *path;                 /* of the configuration; NULL: there is no file to read */
  const struct hk_config *at_start; /* not ours to free; its listeners are those of all */
  uv_async_t call;
  uv_timer_t look;
  uv_work_t read; /* the files, in phase `read`: its thread alone then writes to next, credentials and told */
  bool readable;  /* they were whole */
  enum hk_reload_phase phase;
  uint64_t begun;                      /* the ticket that this reload answers, with all before */
  int64_t time;                        /* ns: when it began */
  struct hk_config *next;              /* that is to be in force, then is */
  struct hk_credentials **credentials; /* of each gate, to be in force; NULL: none were read, or they are */
  struct hk_sections *sections;
  struct hk_revision revision;
  struct hk_definition *learn, *forget;
  struct hk_buffer told; /* lines so far */
  uint32_t ordered;      /* orders that loops have got to take what is in force now; hk_net has those that they have obeyed */
  /* for any thread */
  atomic_uint_fast64_t asked, done; /* tickets */
  pthread_mutex_t lock;
  struct hk_buffer report;     /* of the last reload; under lock */
  bool taken;                  /* whether that was taken; under lock */
  uint64_t n_taken, n_refused; /* reloads so far; under lock */
};

/* Opens its handles on loop 0. 0 or a negative errno. */
int hk_reload_open(struct hk_server *server);
/* Frees what it has; loops and shards have stopped. */
void hk_reload_close(struct hk_server *server);

/* Wants a reload, and returns a ticket for its result. Thread: any. */
uint64_t hk_reload_ask(struct hk_server *server);
/* Whether there is a result for a ticket, appended to `report` as lines of text; *taken: the configuration is in force. Those who
 * wait are woken with hk_shard_settled. Thread: any. */
bool hk_reload_result(struct hk_server *server, uint64_t ticket, struct hk_buffer *report, bool *taken);
/* What became of the reloads so far, as one JSON object. Thread: any. */
void hk_reload_status(struct hk_server *server, struct hk_buffer *out);

#endif
