/* What `hankel evaluate` is asked for, and its run: each detector on each collection of labelled recordings. It prints a table
 * for each detector, and draws a sheet of plots for each collection (svg_sheet.h). Thread: the caller's. */
#ifndef HK_EVALUATION_H
#define HK_EVALUATION_H

#include "daemon/cli/trial.h"
#include "daemon/cli/tuning.h"

#define HK_EVALUATED_MAX 256

enum hk_evaluation_format { HK_EVALUATION_TABLE, HK_EVALUATION_CSV };

struct hk_evaluation {
  struct hk_trial trial;
  const char *folder; /* or a CSV file */
  const char *labels; /* of that file; NULL: a column has them, or there are none */
  const char *field;  /* keys; NULL: no field is compared */
  const char *detectors[HK_EVALUATED_MAX];
  bool group[HK_EVALUATED_MAX]; /* these keys are of a group */
  uint32_t n_detectors;
  struct hk_tuning tuning;
  const char *plots; /* folder for them, or NULL */
  int format;        /* enum hk_evaluation_format */
  uint64_t starts;   /* points of the pieces into which recordings are cut; 0: they are not cut */
  bool brief, no_series, calibrate;
  /* set while it runs: */
  bool grouped;           /* the present detector is a group's */
  struct hk_sheet *sheet; /* that of the present collection, or NULL, */
  uint32_t strip;         /* and the place of the detector there */
};

/* Checks all keys, reads the recordings and evaluates. Returns 0, or an exit code after a message. */
int hk_evaluation_run(struct hk_evaluation *evaluation);

#endif
