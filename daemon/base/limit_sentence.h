/* What an alert of the channel limit says to people. Thread: any. */
#ifndef HK_LIMIT_SENTENCE_H
#define HK_LIMIT_SENTENCE_H

#include "proto/hankel.h"

#include <stdio.h>

/* A sentence that says when the limit is reached, of an event with a limit whose `blocks` is not 0. */
void hk_limit_sentence(FILE *out, const struct hankel_event *event);

#endif
