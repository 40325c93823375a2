/* Draws a sheet of small plots as SVG: for each labelled recording the series with its labels, and below it a strip with the
 * score of each detector; both with the change instants of alerts.
 *
 * Plots have fixed places and are written at once, in any order. Thread: the caller's. */
#ifndef HK_SVG_SHEET_H
#define HK_SVG_SHEET_H

#include "daemon/cli/judge.h"

#include <stdio.h>

#define HK_SHEET_DETECTORS 8 /* maximum number of strips */

/* Owner: the caller. All zero: not open. */
struct hk_sheet {
  FILE *file;
  uint32_t recordings, detectors;
};

/* Begins a sheet. keys: caption of each detector. Returns 0 or a negative errno. */
int hk_sheet_open(struct hk_sheet *sheet, const char *path, const char *title, uint32_t recordings, const char *const *keys,
                  uint32_t detectors);

/* Draws the n values of recording i and its labels. value = NULL: only the labels. */
void hk_sheet_series(struct hk_sheet *sheet, uint32_t i, const char *name, const double *value, uint32_t n,
                     const struct hk_marked *marked, uint32_t n_marked);

/* Draws the n scores of a detector for recording i (NaN: none) and its alerts. */
void hk_sheet_score(struct hk_sheet *sheet, uint32_t i, uint32_t detector, const float *score, uint32_t n,
                    const struct hk_found *found, uint32_t n_found);

/* Ends the sheet. Returns 0, or a negative errno if a write failed. */
int hk_sheet_close(struct hk_sheet *sheet);

#endif
