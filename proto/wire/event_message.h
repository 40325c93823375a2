/* EVENTS: what becomes of alerts, and which sensors are silent. One reader and one writer, as in message.h. */
#ifndef HK_EVENT_MESSAGE_H
#define HK_EVENT_MESSAGE_H

#include "proto/hankel.h"
#include "proto/wire/payload.h"

#define HK_EVENT_BYTES 56u
#define HK_EVENT_PLACE_BYTES 16u  /* more, with position and sequence, */
#define HK_EVENT_DETAIL_BYTES 42u /* and with details, whose `by` is empty */
#define HK_EVENT_NOTE_BYTES 40u   /* and with what is new, */
#define HK_EVENT_GROUP_BYTES 8u   /* and with incidents */
/* The greatest severity that there is. hk_severity_told: one as a message tells it; not a number is 0. */
#define HK_SEVERITY_TOLD 40.0f
float hk_severity_told(float severity);

enum hk_events_with { HK_EVENTS_PLACED = 1, HK_EVENTS_DETAILED = 2, HK_EVENTS_NOTED = 4, HK_EVENTS_GROUPED = 8 };
struct hk_event_message {
  uint32_t handle, number;
  uint8_t kind; /* enum hankel_event_kind */
  float score;
  int64_t time, from, instant;
  double before, after;
  uint64_t position, sequence; /* 0 where they are not sent along */
  float severity; /* 0..HK_SEVERITY_TOLD, told in thousandths. This and what follows: 0 and "" where details are not sent along */
  float margin;
  float spread_before, spread_after;
  uint8_t channel; /* enum hankel_channel */
  uint8_t marks;   /* enum hankel_mark, added up */
  uint32_t held, similar;
  float likeness;
  int64_t similar_from;
  struct hk_string by;
  struct hankel_novelty novelty; /* all 0 where notes are not sent along, or another one is */
  uint64_t incident;             /* 0 where they are not sent along */
  struct hankel_limit limit;     /* as novelty */
};

/* with: enum hk_events_with, added up; in a list that was read it says what is there. */
int hk_events_write(struct hk_writer *w, uint32_t n, const struct hk_event_message *events, uint32_t with);
int hk_events_read(const struct hk_frame *f, struct hk_list *list);
void hk_event_next(struct hk_list *list, struct hk_event_message *event);

#endif
