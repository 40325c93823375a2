/* What a receiver tells of itself, for the status. */
#ifndef HK_NOTIFY_RECEIVER_LOOK_H
#define HK_NOTIFY_RECEIVER_LOOK_H

#include "daemon/base/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* What a receiver has done. */
struct hk_receiver_look {
  char name[HK_CONFIG_NAME_MAX];
  uint32_t type;                         /* enum hk_notify_type */
  uint64_t position, waiting;            /* of the log: how far it is, and events behind that */
  uint64_t messages, events;             /* that were taken */
  uint64_t tries_failed, given_up, lost; /* tries; events set aside; events that the log did not have any more */
  int64_t answered;                      /* ns, wall clock: last try; 0: none */
  bool failing;                          /* the last try was not taken */
  bool quiet;                            /* it has quiet hours */
  char answer[256];
};

#endif
