/* Message: events into what a receiver of each type wants to read. Thread: any. */
#ifndef HK_NOTIFY_MESSAGE_H
#define HK_NOTIFY_MESSAGE_H

#include "daemon/durable/event_log.h"
#include "daemon/notify/send.h"

/* What a message tells of; in the order of the log. Names and other strings are the owner's. */
struct hk_notice {
  struct hk_logged logged;          /* of an incident: its position, severity and times, and what it is called */
  struct hk_logged_incident change; /* id 0: it is an alert */
  bool again;                       /* it was told before, and stands */
  bool test;                        /* nothing has happened: somebody tries whether messages arrive */
};

struct hk_told_of {
  const struct hk_notice **notice;
  uint32_t n;
  const char *prefix; /* that all have in common, where messages are made by it; else "" */
  uint64_t id;        /* hk_place */
  uint64_t again;     /* how often alerts that stand were told again; 0: this is the first time */
  int64_t now;        /* ns, wall clock */
};

/* 0 or -ENOMEM. message: zeroed; its body is freed with hk_buffer_free. */
int hk_message_make(struct hk_message *message, const struct hk_notify_rule *rule, const struct hk_told_of *what);
/* The prefix of a name: up to the first / or . */
size_t hk_message_prefix(struct hk_string name);

#endif
