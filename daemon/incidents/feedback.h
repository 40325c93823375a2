/* Feedback: what people said of incidents: `expected` or `false`. The sensors of such a one are silent for a week of the data,
 * unless the rank is higher by 1 than it was; nothing is taken off their severities, so that nothing else is hidden.
 *
 * What was said waits until what was known at its place in the log is judged, so that whoever decides again does the same.
 *
 * Thread: that of the incidents. */
#ifndef HK_FEEDBACK_H
#define HK_FEEDBACK_H

#include "daemon/incidents/incidents.h"

#define HK_FEEDBACK_MOST                                                                                                         \
  1024u /* that are in force; a new one takes the place of the oldest, whose sensors stay silent all the same */

enum hk_feedback_kind { HK_FEEDBACK_EXPECTED = 1, HK_FEEDBACK_FALSE = 2, HK_FEEDBACK_UNDONE = 3 };

struct hk_feedback_said {
  uint64_t position; /* in the log */
  uint64_t incident;
  int64_t until; /* ns, of the data; 0: it waits */
  double rank;
  uint32_t kind;            /* enum hk_feedback_kind */
  struct hk_string sensors; /* names, each with a 0 behind it */
  struct hk_string text;    /* who said it, in words */
};

struct hk_feedback {             /* all zero: nothing was said */
  struct hk_feedback_said *list; /* by position; strings are the list's own: one piece of memory each, sensors first */
  uint32_t n, room;
};

void hk_feedback_free(struct hk_feedback *feedback);
/* Somebody said it; copied. 0 or -ENOMEM. */
int hk_feedback_put(struct hk_feedback *feedback, const struct hk_feedback_said *said);
/* What was said up to a position is in force. What is over by now is forgotten. */
void hk_feedback_apply(struct hk_feedback *feedback, struct hk_incidents *incidents, uint64_t seen);
/* What is in force, or will be, of an incident; NULL: nothing. Valid until something else is said. */
const struct hk_feedback_said *hk_feedback_of(const struct hk_feedback *feedback, uint64_t incident);
/* "expected", "false", "undone". */
const char *hk_feedback_word(uint32_t kind);
/* What is in force, the latest first, as objects of JSON with commas between them. */
void hk_feedback_show(const struct hk_feedback *feedback, struct hk_buffer *out);

/* The image, appended to out, and back from one into an empty one: how many bytes it has; 0: it is damaged, or there is no
 * memory. */
void hk_feedback_write(const struct hk_feedback *feedback, struct hk_buffer *out);
size_t hk_feedback_read(struct hk_feedback *feedback, const char *image, size_t size);

#endif
