/* Shared: what a machine of a cluster has of the log of events that all machines share, beside the records (event_copy.h): what
 * it appends and the broker has not confirmed, who leads, and the places of receivers of alerts.
 *
 * One machine at a time leads: it makes incidents and sends alerts. Who leads is in the log: a record says so, and from there on
 * records that only the leader writes count if they are its own. So a former leader that does not know of its successor changes
 * nothing.
 *
 * Thread: the cluster's, unless stated otherwise. */
#ifndef HK_EVENT_SHARED_H
#define HK_EVENT_SHARED_H

#include "daemon/durable/event_holders.h"
#include "daemon/durable/place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hk_event_shared;

/* A message to the shared log. */
struct hk_shared_message {
  struct hk_shared_message *next;
  uint64_t number; /* 1, 2, 3... */
  uint64_t about;  /* hash of the sensor or partition that it is about; 0: its order among all others counts */
  size_t size;
  uint8_t message[]; /* not aligned */
};

/* A record of the shared log. */
struct hk_shared_record {
  uint32_t type; /* enum hk_log_record, or one of those below */
  bool leads;    /* its writer led then */
  const uint8_t *payload;
  size_t size;
};
enum { HK_SHARED_PLACE = 100, HK_SHARED_MARK, HK_SHARED_HOLDS, HK_SHARED_WISH };

/* Returns 0 or a negative errno; to free in either case, if *out is not NULL. Thread: main. */
int hk_shared_open(struct hk_event_shared **out);
void hk_shared_free(struct hk_event_shared *shared); /* NULL is allowed */

/* --- to the shared log; thread of the first two: any -------------------------------------------------------------------- */

/* Makes a message, whose payload is to be written. NULL: no memory. */
struct hk_shared_message *hk_shared_message(uint32_t type, size_t payload);
uint8_t *hk_shared_payload(struct hk_shared_message *message);
/* Says that only its order among messages about this sensor, or partition, counts; before hk_shared_put. */
void hk_shared_about(struct hk_shared_message *message, const char *what, size_t length);
/* Appends it to what is to be published; returns its number, 0 for NULL. Thread: any, as of the next two. */
uint64_t hk_shared_put(struct hk_event_shared *shared, struct hk_shared_message *message);
/* Number of the last appended message. */
uint64_t hk_shared_appended(const struct hk_event_shared *shared);
/* Whether the shared log has all messages up to a number. */
bool hk_shared_safe(const struct hk_event_shared *shared, uint64_t appended);
/* The next outgoing message after one of them, or the first (NULL); NULL: none. */
const struct hk_shared_message *hk_shared_outgoing(struct hk_event_shared *shared, const struct hk_shared_message *after);
/* Readable when there is something new; hk_shared_woken empties it. */
int hk_shared_fd(const struct hk_event_shared *shared);
void hk_shared_woken(struct hk_event_shared *shared);
/* The shared log has all messages up to a number. */
void hk_shared_confirmed(struct hk_event_shared *shared, uint64_t number);
/* Number of messages that it has not. Thread: any. */
uint64_t hk_shared_waiting(const struct hk_event_shared *shared);

/* --- from the shared log ---------------------------------------------------------------------------------------------------- */

/* Reads a message, and takes what it says of places, marks and the leader. False, with a reason: it cannot be read. */
bool hk_shared_read(struct hk_event_shared *shared, const void *message, size_t size, struct hk_shared_record *out,
                    const char **why);
/* The copy has all records up to a position. */
void hk_shared_reach(struct hk_event_shared *shared, uint64_t position);
/* Position of the last record, and of the last shown one. Thread: any. */
uint64_t hk_shared_last(const struct hk_event_shared *shared);
uint64_t hk_shared_shown(const struct hk_event_shared *shared);
/* Appends a mark, which is ours; returns its number among our marks, 0 without memory. leads: from there on this machine leads.
 * Thread: any, as of the next. */
uint64_t hk_shared_mark(struct hk_event_shared *shared, bool leads);
/* Our last mark that was read back: what the shared log had when it was appended was read before it. */
uint64_t hk_shared_marked(const struct hk_event_shared *shared);
/* The copy has everything that was in the shared log at the start: it is shown from now on. */
void hk_shared_ready(struct hk_event_shared *shared);
/* Whether it is shown. Thread: any. */
bool hk_shared_is_ready(const struct hk_event_shared *shared);

/* Whether this machine wants to lead. Thread: any, both. */
void hk_shared_want(struct hk_event_shared *shared, bool wants);
bool hk_shared_wants(const struct hk_event_shared *shared);
/* It leads now, until this is called again: at least every few seconds, for a thread that was stopped does not know how long. */
#define HK_SHARED_LEADS INT64_C(10000000000) /* ns */
void hk_shared_lead(struct hk_event_shared *shared, bool leads);
/* Whether this machine leads. Thread: any. */
bool hk_shared_leads(const struct hk_event_shared *shared);

/* A receiver's place, as the last leader that wrote it left it. False: none. Thread: any. */
bool hk_shared_place(struct hk_event_shared *shared, const char *name, struct hk_place *out);
/* Appends a place; returns its number, for hk_shared_safe; 0: no memory. Thread: any. */
uint64_t hk_shared_append_place(struct hk_event_shared *shared, const char *name, const struct hk_place *place);

/* Who has which partition. Thread: any. */
struct hk_holders *hk_shared_holders(struct hk_event_shared *shared);
/* Appends that this machine has a partition, or, with machine = NULL, that it is to have it (event_holders.h); returns its
 * number; 0: no memory. */
uint64_t hk_shared_append_holder(struct hk_event_shared *shared, uint32_t partition, uint64_t epoch, const char *machine);

#endif
