/* The event log's knowledge of each sensor, from its opening and from records that the replay has appended since. */
#ifndef HK_EVENT_LOG_PAST_H
#define HK_EVENT_LOG_PAST_H

#include "daemon/durable/event_records.h"

#include <xxhash.h>

/* What is known of a sensor; all zero: nothing is. */
struct hk_eventlog_past {
  uint64_t sequence; /* of its last event */
  uint64_t open;     /* position of the last event of the alert that was raised and not cleared; 0: none */
  uint32_t number;   /* of its last alert */
};

/* The last sequence of a sensor, as found at the start. Open addressing by key, 0 = free. */
struct hk_past_reached {
  uint64_t key, sequence;
  uint64_t open;   /* position of the last event of the standing alert; 0: none */
  uint32_t number; /* of the last alert */
  uint32_t noted;  /* number of the last acknowledged alert; 0: none */
  int64_t time;    /* of the last event that is no acknowledgement: of its point */
  int64_t when;
  char by[HK_WHO_MAX + 1];
};

struct hk_past { /* all zero: not open */
  struct hk_past_reached *reached;
  uint64_t n, size;
  uint8_t secret[XXH3_SECRET_SIZE_MIN + 56]; /* of the hash of keys */
};

/* Opens it. Returns 0, or -EIO: no random numbers. */
int hk_past_open(struct hk_past *past);
/* Frees it: nothing is known any more. */
void hk_past_free(struct hk_past *past);
/* Records an event as the last one of its sensor. Returns 0 or -ENOMEM. */
int hk_past_reach(struct hk_past *past, const struct hk_logged *logged);
/* As hk_eventlog_past and hk_eventlog_noted. */
struct hk_eventlog_past hk_past_find(const struct hk_past *past, uint32_t handle, struct hk_string name);
bool hk_past_noted(const struct hk_past *past, uint32_t handle, struct hk_string name, struct hk_logged *out);

/* As found; NULL: nothing is known of the sensor. */
const struct hk_past_reached *hk_past_look(const struct hk_past *past, uint32_t handle, struct hk_string name);

/* Whether anything is known. */
static inline bool hk_past_any(const struct hk_past *past)
{
  return past->reached != NULL;
}

#endif
