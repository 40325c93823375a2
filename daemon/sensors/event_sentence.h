/* What an alert says to people, in numbers. Thread: any. */
#ifndef HK_EVENT_SENTENCE_H
#define HK_EVENT_SENTENCE_H

#include "cpu/backend.h"

#include <stdbool.h>
#include <stdio.h>

/* Writes what is new, where and when a change travels, when a limit is reached, or how the sensor differs, and its levels. near:
 * of an alert that travels, the sensor nearest to the place, fit to be shown; "": not known. */
void hk_event_sentence(FILE *out, const struct hk_event *event, const char *near);
/* The same into out, as much as fits. Returns the number of bytes; 0: no memory. */
#define HK_EVENT_SAID 512u
size_t hk_event_said(const struct hk_event *event, const char *near, char out[HK_EVENT_SAID]);

/* Whether the sentence has no time of the change: hk_event.instant says more. */
bool hk_event_says_no_instant(const struct hk_event *event);

#endif
