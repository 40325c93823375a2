/* Computes the rows of a large field on a device that has a copy of the columns of the host: of a residual (residual.h), or of a
 * line (focus.h). The host's columns are as of the last hk_offload_look or hk_offload_change; what is read after each row (out,
 * and z if it shows, of a residual; value and blamed of a line) is copied back with the row.
 *
 * The outputs of a row go back to the host, which makes points of the derived sensors of them, although these may be on the same
 * device: the journal, subscribers, alerts and the order of points need them there, and the way back up is a hundredth of what a
 * row takes (tests/bench/results/cuda-field-row.txt).
 *
 * The device gives the same bits as hk_residual_row and hk_focus_row, so it does not matter which rows it computed. A device that
 * fails is not used again: the field continues from the columns of the host. Thread: the field's. */
#ifndef HK_FIELD_OFFLOAD_H
#define HK_FIELD_OFFLOAD_H

#include "cpu/field/correlate.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_OFFLOAD_LEAST 4096u /* nodes; for fewer the host takes about as long as the copies */
#define HK_OFFLOAD_ADDS                                                                                                          \
  8u /* a focus of so many adds a row counts as a node: it is faster there from half of HK_OFFLOAD_LEAST on */

/* Functions of a device for one operator. `host` is a struct hk_residual of a residual, a struct hk_focus_line of a focus. All
 * except `close` may block for seconds, but not forever. */
struct hk_offload_kind {
  /* Copies the columns of `host` to device `number`. Returns 0 and *out, or a negative errno with a message. */
  int (*open)(void **out, const void *host, uint32_t number, char *error, size_t size);
  void (*close)(void *columns);
  /* As hk_residual_row (x, r; row is not looked at) or hk_focus_row (row, x; r is not). Of `host` it also writes what is read
   * after each row, and counts the row. Returns 0, or a negative errno with a message; then the columns on the device are
   * undefined. */
  int (*row)(void *columns, void *host, int64_t row, const double *x, double *r, char *error, size_t size);
  /* Copies all columns to `host` (read) or from it (write). Returns as row. */
  int (*read)(void *columns, void *host, char *error, size_t size);
  int (*write)(void *columns, const void *host, char *error, size_t size);
  /* As hk_correlate, on device `number`; NULL: the host chooses. */
  int (*correlate)(const struct hk_correlate_task *task, uint32_t number, char *error, size_t size);
};

/* The operators that a device computes; NULL: the host does. */
struct hk_field_kinds {
  const struct hk_offload_kind *residual, *focus;
};

/* Where a field is computed. All zero: the host. */
struct hk_field_place {
  const struct hk_field_kinds *kinds; /* NULL: the host */
  uint32_t number;                    /* number of the device */
  uint32_t least;                     /* the host computes fields with fewer nodes */
  /* Reports that the device now has the columns or, if why is not NULL, that the host computes from now on. NULL: no report. */
  void (*told)(void *arg, const char *why);
  void *arg;
};

struct hk_field_offload {
  struct hk_field_place place;
  const struct hk_offload_kind *kind; /* NULL: the host computes */
  void *columns;                      /* columns on the device; NULL: none */
  void *host;                         /* those of the host, if there are `columns` */
  bool ahead;                         /* the device's columns are newer than the host's */
  bool behind;                        /* the host's columns are newer than the device's */
};

/* Computes a row of a field of `nodes` nodes on the device. False: the host has to. */
bool hk_offload_row(struct hk_field_offload *offload, void *host, uint32_t nodes, int64_t row, const double *x, double *r);
/* Chooses neighbours on the device that has the columns. False: the host has to. */
bool hk_offload_correlate(struct hk_field_offload *offload, const struct hk_correlate_task *task);
/* hk_offload_look: call before reading columns of the host other than those that come with a row. hk_offload_change: call before
 * writing to any. */
void hk_offload_look(struct hk_field_offload *offload);
void hk_offload_change(struct hk_field_offload *offload);
/* Call before the host's columns are enlarged: as hk_offload_change, and frees the device's columns. */
void hk_offload_grow(struct hk_field_offload *offload);
/* Frees the device's columns. */
void hk_offload_close(struct hk_field_offload *offload);

#ifdef __cplusplus
}
#endif
#endif
