/* What is said of an incident: to programs as a line of JSON, to people as a sentence.
 *
 * Both are appended to out, which is marked `failed` where there is no memory. Thread: that of the incidents. */
#ifndef HK_INCIDENT_TEXT_H
#define HK_INCIDENT_TEXT_H

#include "daemon/incidents/incidents.h"

/* Counts of a day (UTC) of the data. Null initialiser: all zero. */
struct hk_incident_day {
  int64_t day; /* since 1970 */
  uint32_t told, withheld;
  double gravest; /* rank of the gravest that was withheld */
};

/* A decision, as hk_incident_decided has it. */
struct hk_incident_news {
  const struct hk_incidents *all;
  const struct hk_incident *incident, *into;
  const struct hk_incident_day *day; /* of which this is part */
  int64_t time;
  double threshold;
  enum hk_incident_decision decision;
};

/* A decision that belongs to a later day than that begins it anew. */
void hk_incident_day_count(struct hk_incident_day *day, int64_t time, enum hk_incident_decision decision,
                           const struct hk_incident *incident);

/* "told", "update", "merged", "closed", or "withheld": closed without having been told. */
const char *hk_incident_word(enum hk_incident_decision decision, const struct hk_incident *incident);

/* An object and a newline: PROTOCOL.md, incidents. At most HK_INCIDENT_LISTED of its sensors are listed. */
#define HK_INCIDENT_LISTED 64u
void hk_incident_json(struct hk_buffer *out, const struct hk_incident_news *news);

/* The names of its sensors that are listed, in that order, each with a 0 behind it. */
void hk_incident_sensors(struct hk_buffer *out, const struct hk_incident *incident);

/* A line with no newline: who, how many of what node, which was first, which shows most, and how rare that is by chance. Names
 * are as they are: characters that act on a terminal are the caller's to take out. */
void hk_incident_sentence(struct hk_buffer *out, const struct hk_incident_news *news);
/* The part of it that says what has happened. */
void hk_incident_what(struct hk_buffer *out, const struct hk_incident_news *news);

#endif
