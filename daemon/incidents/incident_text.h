/* An incident as text: a line of JSON for programs, a sentence for people.
 *
 * Both are appended to out, which is marked `failed` without memory. Thread: that of the incidents. */
#ifndef HK_INCIDENT_TEXT_H
#define HK_INCIDENT_TEXT_H

#include "daemon/incidents/incidents.h"

/* Counts of a day (UTC) of the data. Null initialiser: all zero. */
struct hk_incident_day {
  int64_t day; /* since 1970 */
  uint32_t told, withheld;
  double gravest; /* highest rank of a withheld one */
};

/* A decision, as hk_incident_decided has it. */
struct hk_incident_news {
  const struct hk_incidents *all;
  const struct hk_incident *incident, *into;
  const struct hk_incident_day *day; /* of which this is part */
  int64_t time;
  double threshold;
  enum hk_incident_decision decision;
  struct hk_string section; /* [incidents NAME]; "": it has no name */
};

/* A decision of a later day resets the counts. */
void hk_incident_day_count(struct hk_incident_day *day, int64_t time, enum hk_incident_decision decision,
                           const struct hk_incident *incident);

/* "told", "update", "merged", "closed", or "withheld": closed without having been reported. */
const char *hk_incident_word(enum hk_incident_decision decision, const struct hk_incident *incident);

/* An object and a newline: PROTOCOL.md, incidents. At most HK_INCIDENT_LISTED of its sensors are listed. */
#define HK_INCIDENT_LISTED 64u
void hk_incident_json(struct hk_buffer *out, const struct hk_incident_news *news);

/* The names of the listed sensors, in that order, each followed by a 0. */
void hk_incident_sensors(struct hk_buffer *out, const struct hk_incident *incident);

/* A line without newline: the sensors and their node, the first, the strongest and what it says, and the probability by chance.
 * Names are unchanged: the caller removes characters that act on a terminal. */
void hk_incident_sentence(struct hk_buffer *out, const struct hk_incident_news *news);
/* The part of the line with the kind of decision. */
void hk_incident_what(struct hk_buffer *out, const struct hk_incident_news *news);

#endif
