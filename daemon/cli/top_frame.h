/* What `hankel top` shows, made of the daemon's report: lines of at most so many columns. Thread: the caller's. */
#ifndef HK_TOP_FRAME_H
#define HK_TOP_FRAME_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct hk_top_frame {
  const char *address;
  const char *lost;   /* why there is no connection; NULL: there is one */
  double points;      /* a second; < 0: not known */
  int64_t now;        /* s since 1970 */
  int columns, lines; /* of the terminal; lines 0: as many as it takes */
  bool ansi;          /* colours, and the end of each line is cleared */
};

/* report: the last one, NULL before the first. */
void hk_top_print(FILE *out, const struct hk_top_frame *frame, const cJSON *report);

#endif
