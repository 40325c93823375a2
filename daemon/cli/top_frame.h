/* Formats the daemon's report for `hankel top`, in lines of limited width. Thread: the caller's. */
#ifndef HK_TOP_FRAME_H
#define HK_TOP_FRAME_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct hk_top_frame {
  const char *address;
  const char *lost;   /* why there is no connection; NULL: connected */
  double points;      /* points per second; < 0: unknown */
  int64_t now;        /* s since 1970 */
  int columns, lines; /* size of the terminal; lines 0: unlimited */
  bool ansi;          /* use colours, and clear the end of each line */
};

/* report: the latest; NULL before the first. */
void hk_top_print(FILE *out, const struct hk_top_frame *frame, const cJSON *report);

#endif
