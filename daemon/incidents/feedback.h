/* Feedback: people's marks of incidents, `expected` or `false`. The incident's sensors are muted for a week of the data, unless
 * the rank is higher by 1 than it was; their severities do not change, so that nothing else is hidden.
 *
 * A mark waits until all events before it in the log are judged, so that repeated decisions are the same.
 *
 * Thread: that of the incidents. */
#ifndef HK_FEEDBACK_H
#define HK_FEEDBACK_H

#include "daemon/incidents/incidents.h"

#define HK_FEEDBACK_MOST 1024u /* marks in force; a new one replaces the oldest, whose sensors stay muted */

enum hk_feedback_kind { HK_FEEDBACK_EXPECTED = 1, HK_FEEDBACK_FALSE = 2, HK_FEEDBACK_UNDONE = 3 };

struct hk_feedback_said {
  uint64_t position; /* in the log */
  uint64_t incident;
  int64_t until; /* ns, of the data; 0: it waits */
  double rank;
  uint32_t kind;            /* enum hk_feedback_kind */
  struct hk_string sensors; /* names, each with a 0 behind it */
  struct hk_string text;    /* name of the person */
};

struct hk_feedback {             /* all zero: no marks */
  struct hk_feedback_said *list; /* by position; strings are the list's own: one piece of memory each, sensors first */
  uint32_t n, room;
};

void hk_feedback_free(struct hk_feedback *feedback);
/* Adds a mark; copied. 0 or -ENOMEM. */
int hk_feedback_put(struct hk_feedback *feedback, const struct hk_feedback_said *said);
/* Puts marks up to a position in force, and forgets expired ones. */
void hk_feedback_apply(struct hk_feedback *feedback, struct hk_incidents *incidents, uint64_t seen);
/* The mark of an incident, in force or waiting; NULL: none. Valid until the next change. */
const struct hk_feedback_said *hk_feedback_of(const struct hk_feedback *feedback, uint64_t incident);
/* "expected", "false", "undone". */
const char *hk_feedback_word(uint32_t kind);
/* Marks in force, the latest first, as JSON objects separated by commas. */
void hk_feedback_show(const struct hk_feedback *feedback, struct hk_buffer *out);

/* Appends the image to out; restores from an image into an empty list, and returns the bytes read; 0: it is damaged, or no
 * memory. */
void hk_feedback_write(const struct hk_feedback *feedback, struct hk_buffer *out);
size_t hk_feedback_read(struct hk_feedback *feedback, const char *image, size_t size);

#endif
