/* What an alert about a change that travels along a line says to people. Thread: any. */
#ifndef HK_FOCUS_SENTENCE_H
#define HK_FOCUS_SENTENCE_H

#include "proto/hankel.h"

#include <stdio.h>

/* A sentence with place, time and speed, of an event with the mark HANKEL_TRAVELS. near: name of the sensor nearest to the place,
 * fit to be shown; "": not known. */
void hk_focus_sentence(FILE *out, const struct hankel_event *event, const char *near);

#endif
