/* Shared by event_log.c and event_copy.c. */
#ifndef HK_EVENT_LOG_INTERNAL_H
#define HK_EVENT_LOG_INTERNAL_H

#include "daemon/durable/event_log.h"
#include "daemon/durable/event_shared.h"

#include <pthread.h>
#include <stdatomic.h>

struct hk_eventlog {
  uint64_t lost;                  /* events that were published, and are lost */
  struct hk_journal *journal;     /* NULL: the log is a copy of */
  struct hk_event_shared *shared; /* this one; else NULL */
  atomic_uint_fast64_t keep;      /* events after this position must not be removed */
  pthread_mutex_t lock;           /* protects everything below */
  struct hk_event_blocks kept;
  uint64_t settled;                   /* events up to this position have their incidents, if known; later ones */
  bool settles;                       /* will get them: there is a watch */
  struct hk_eventlog_cursor assigned; /* after the last event that got one */
  struct hk_past past;                /* until the end of the replay; of a copy: always */
  void (*operated)(void *arg, const struct hk_logged_operation *operation); /* hk_copy_on_operation; may be NULL */
  void *operated_arg;
};

/* Assigns incidents to events. To call under the lock. */
void hk_eventlog_assign(struct hk_eventlog *log, const struct hk_logged_settled *settled);

#endif
