/* Reads labelled recordings in the layouts of three public collections. A folder contains any of
 *
 *   nab/   CSV files (timestamp,value) and windows.json: the labelled windows of each, [first, last] for all its sensors, or
 *          [first, last, sensor]
 *   tssb/  bare numbers, NAME.txt, and desc.txt: a line NAME,WINDOW,CHANGE,... for each, changes as ascending indices
 *   skab/  CSV files with a changepoint column, 1 where something changed; every other column but `anomaly` is a sensor
 *
 * or is a single CSV file, labelled by a column changepoint as in skab/, or by a file such as nab/windows.json.
 *
 * Everything is read into memory. Thread: the caller's. */
#ifndef HK_LABELLED_H
#define HK_LABELLED_H

#include "proto/wire/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A labelled window of time, or instant if both are equal; ns since the epoch. */
struct hk_label {
  int64_t first, last;
};

/* One sensor's points. Owner: its set. */
struct hk_recording {
  char name[1024];              /* of the file, without .csv or .txt, and behind a blank of the sensor where a file has several */
  char sensor[HK_NAME_MAX + 1]; /* hk_seed is made of it */
  uint32_t of_file;             /* bytes of the name that are the file's */
  uint32_t file;                /* index of the file in its set */
  uint32_t window;              /* the window that the collection suggests; 0: none */
  uint32_t n, room;
  int64_t *time; /* ns since the epoch */
  double *value;
  struct hk_label *label;
  uint32_t n_labels;
};

struct hk_labelled {
  const char *name;
  bool instants; /* labels are change points */
  bool derived;  /* by a field: no counters, whatever the detector's `rate` */
  struct hk_recording *recording;
  uint32_t n, n_files;
};

#define HK_LABELLED_SETS 3

/* Reads set number `which` of a folder. Returns 1; 0 if the folder has no such set; or a negative errno with a message. */
int hk_labelled_read(struct hk_labelled *out, const char *folder, unsigned which, char *error, size_t size);
/* Reads all sets of a folder; or a CSV file as the first set, with the labels of its name in the file `labels` (NULL: none).
 * sets: zeros; hk_labelled_free each in either case. Returns how many there are, at least 1, or a negative errno with a message.
 */
int hk_labelled_read_all(struct hk_labelled sets[HK_LABELLED_SETS], const char *path, const char *labels, char *error,
                         size_t size);
/* Adds a point to a recording. Returns 0 or -ENOMEM. */
int hk_labelled_add_point(struct hk_recording *r, int64_t time, double value);
void hk_labelled_free(struct hk_labelled *set); /* may be all zero */

#endif
