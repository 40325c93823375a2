/* The state of a reload; reload.h describes its phases. Thread: main, except where members say more. */
#ifndef HK_RELOAD_STATE_H
#define HK_RELOAD_STATE_H

#include "daemon/base/buffer.h"
#include "daemon/scoring/shard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct hk_credentials;

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

#endif
