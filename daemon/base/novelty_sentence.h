/* Text of alerts: times, and the sentence of the channel novelty. Thread: any. */
#ifndef HK_NOVELTY_SENTENCE_H
#define HK_NOVELTY_SENTENCE_H

#include "proto/hankel.h"

#include <stdint.h>
#include <stdio.h>

#define HK_TIMESTAMP_SIZE 40
/* Formats ns since the epoch as `YYYY-MM-DD hh:mm:ss`, in UTC, with 3, 6 or 9 decimals if they are not 0. out:
 * HK_TIMESTAMP_SIZE bytes. */
void hk_timestamp_format(int64_t ns, char *out);
/* The same in whole milliseconds, for sentences: clients stamp points with nanoseconds, which nobody reads. */
void hk_timestamp_say(int64_t ns, char *out);

/* Writes what is new, in numbers. event: its novelty has a kind. */
void hk_novelty_sentence(FILE *out, const struct hankel_event *event);

#endif
