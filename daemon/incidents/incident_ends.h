/* Ends of open incidents, the earliest first: which are over is known without a look at the others. Of the same end, those come
 * first that were put first. A binary heap.
 *
 * Thread: one at a time. */
#ifndef HK_INCIDENT_ENDS_H
#define HK_INCIDENT_ENDS_H

#include <stdbool.h>
#include <stdint.h>

/* Of an incident. */
struct hk_incident_end {
  int64_t time;    /* ns: the data must go on from here by a hold */
  uint64_t number; /* in the order of putting */
  uint32_t place;
};

struct hk_incident_ends { /* all zero: empty */
  struct hk_incident_end **of;
  uint32_t n, room; /* of: to free */
  uint64_t put;     /* so far */
};

/* Makes room for one more. False: no memory. */
bool hk_ends_reserve(struct hk_incident_ends *ends);
/* Puts one, for which there is room and which stays the caller's; takes it out. */
void hk_ends_put(struct hk_incident_ends *ends, struct hk_incident_end *end, int64_t time);
void hk_ends_take(struct hk_incident_ends *ends, const struct hk_incident_end *end);
/* The earliest; NULL: there is none. */
struct hk_incident_end *hk_ends_first(const struct hk_incident_ends *ends);

#endif
