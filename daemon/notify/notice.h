/* Notices: events of the log that messages tell of. Thread: any. */
#ifndef HK_NOTIFY_NOTICE_H
#define HK_NOTIFY_NOTICE_H

#include "daemon/durable/event_log.h"

/* What a message tells of; in the order of the log. Names and other strings are the owner's. */
struct hk_notice {
  struct hk_logged logged;          /* of an incident: its position, severity and times, and what it is called */
  struct hk_logged_incident change; /* id 0: it is an alert */
  bool again;                       /* it was told before, and stands */
  bool test;                        /* nothing has happened: somebody tries whether messages arrive */
};

/* What a pager is to do with its incident. */
enum hk_paging { HK_PAGE_TRIGGER, HK_PAGE_ACKNOWLEDGE, HK_PAGE_RESOLVE };

struct hk_told_of {
  const struct hk_notice **notice;
  uint32_t n;
  const char *group; /* what all have in common, where messages are made by it; else "" */
  uint64_t id;       /* hk_place */
  uint64_t again;    /* how often alerts that stand were told again; 0: this is the first time */
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
