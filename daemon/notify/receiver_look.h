/* A receiver's counters for the status. */
#ifndef HK_NOTIFY_RECEIVER_LOOK_H
#define HK_NOTIFY_RECEIVER_LOOK_H

#include "daemon/base/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* What a receiver has done. */
struct hk_receiver_look {
  char name[HK_CONFIG_NAME_MAX];
  uint32_t type;                         /* enum hk_notify_type */
  uint64_t position, waiting;            /* its position in the event log, and the events after it */
  uint64_t messages, events;             /* that were delivered */
  uint64_t tries_failed, given_up, lost; /* failed attempts; events set aside; events that the log no longer had */
  uint64_t aside, forgotten;             /* alerts and ends that are to be sent again; that are not, although they should be */
  int64_t answered;                      /* ns, wall clock: last attempt; 0: none */
  bool failing;                          /* the last attempt failed */
  bool quiet;                            /* it has quiet hours */
  bool rests;                            /* of a cluster: another machine leads, and sends alerts */
  char answer[256];
};

#endif
