/* EVENTS: changes of alerts, and silent sensors. One reader and one writer, as in message.h. */
#ifndef HK_EVENT_MESSAGE_H
#define HK_EVENT_MESSAGE_H

#include "proto/hankel.h"
#include "proto/wire/payload.h"

#define HK_EVENT_BYTES 56u
#define HK_EVENT_PLACE_BYTES 16u  /* additional bytes with position and sequence, */
#define HK_EVENT_DETAIL_BYTES 42u /* with details, for an empty `by`, */
#define HK_EVENT_NOTE_BYTES 40u   /* with notes, */
#define HK_EVENT_GROUP_BYTES 8u   /* and with incidents */
/* The highest severity. hk_severity_told: a severity as messages encode it; NaN becomes 0. */
#define HK_SEVERITY_TOLD 40.0f
float hk_severity_told(float severity);

enum hk_events_with { HK_EVENTS_PLACED = 1, HK_EVENTS_DETAILED = 2, HK_EVENTS_NOTED = 4, HK_EVENTS_GROUPED = 8 };
struct hk_event_message {
  uint32_t handle, number;
  uint8_t kind; /* enum hankel_event_kind */
  float score;
  int64_t time, from, instant;
  double before, after;
  uint64_t position, sequence; /* 0 if not sent */
  float severity; /* 0..HK_SEVERITY_TOLD, sent in thousandths. severity and all members below: 0 and "" if details are not sent */
  float margin;
  float spread_before, spread_after;
  uint8_t channel; /* enum hankel_channel */
  uint8_t marks;   /* sum of enum hankel_mark */
  uint32_t held, similar;
  float likeness;
  int64_t similar_from;
  struct hk_string by;
  struct hankel_novelty novelty; /* all 0 if notes are not sent, or the note is of another kind */
  uint64_t incident;             /* 0 if incidents are not sent */
  struct hankel_limit limit;     /* as novelty */
};

/* with: sum of enum hk_events_with; reading sets list->with to the parts that are present. */
int hk_events_write(struct hk_writer *w, uint32_t n, const struct hk_event_message *events, uint32_t with);
int hk_events_read(const struct hk_frame *f, struct hk_list *list);
void hk_event_next(struct hk_list *list, struct hk_event_message *event);

#endif
