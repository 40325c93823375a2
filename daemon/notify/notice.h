/* Notices: events of the log, as messages use them. Thread: any. */
#ifndef HK_NOTIFY_NOTICE_H
#define HK_NOTIFY_NOTICE_H

#include "daemon/durable/event_log.h"

/* One event of a message; in the order of the log. The owner has names and other strings. */
struct hk_notice {
  struct hk_logged logged;          /* of an incident: its position, severity, times and name */
  struct hk_logged_incident change; /* id 0: it is an alert */
  bool again;                       /* it was sent before, and still stands */
  bool test;                        /* a test message: nothing has happened */
};

/* The action of a pager on its incident. */
enum hk_paging { HK_PAGE_TRIGGER, HK_PAGE_ACKNOWLEDGE, HK_PAGE_RESOLVE };

struct hk_told_of {
  const struct hk_notice **notice;
  uint32_t n;
  const char *group; /* the group of the message (group_by); "" without groups */
  uint64_t id;       /* hk_place */
  uint64_t again;    /* how often standing alerts were repeated; 0: this is the first time */
  int64_t now;       /* ns, wall clock */
  enum hk_paging paging;
};

static inline bool hk_notice_over(const struct hk_notice *n)
{
  return n->logged.event.kind == HK_EVENT_CLEARED;
}

static inline bool hk_notice_incident(const struct hk_notice *n)
{
  return n->change.id != 0;
}

#endif
