/* A sheet of small plots, as SVG: of each labelled recording the series with its labels, and below it a strip for each detector
 * with its score; in both the changes that the alerts tell of.
 *
 * Everything is written as it comes, in any order, each plot having its place from the beginning. Thread: the caller's. */
#ifndef HK_SHEET_H
#define HK_SHEET_H

#include "daemon/cli/judge.h"

#include <stdio.h>

#define HK_SHEET_DETECTORS 8 /* strips at most */

/* Owner: the caller. All zero is one that was not opened. */
struct hk_sheet {
  FILE *file;
  uint32_t recordings, detectors;
};

/* Begins a sheet for so many recordings and detectors (keys: what is said of each). 0 or a negative errno. */
int hk_sheet_open(struct hk_sheet *sheet, const char *path, const char *title, uint32_t recordings, const char *const *keys,
                  uint32_t detectors);

/* The series of recording i, n values, and its labels. value = NULL: the labels alone. */
void hk_sheet_series(struct hk_sheet *sheet, uint32_t i, const char *name, const double *value, uint32_t n,
                     const struct hk_marked *marked, uint32_t n_marked);

/* What a detector made of recording i: n scores, NaN where there is none, and what was found. */
void hk_sheet_score(struct hk_sheet *sheet, uint32_t i, uint32_t detector, const float *score, uint32_t n,
                    const struct hk_found *found, uint32_t n_found);

/* Ends it. 0, or a negative errno when something could not be written. */
int hk_sheet_close(struct hk_sheet *sheet);

#endif
