/* Computes the rows of a large field on a device that has a copy of the columns of its residual (residual.h). The host's columns
 * are as of the last hk_offload_look or hk_offload_change; what is read after each row (z, off, errors, error) is copied back
 * with the row.
 *
 * The device gives the same bits as hk_residual_row, so it does not matter which rows it computed. A device that fails is not
 * used again: the field continues from the columns of the host. Thread: the field's. */
#ifndef HK_FIELD_OFFLOAD_H
#define HK_FIELD_OFFLOAD_H

#include "cpu/field/residual.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HK_OFFLOAD_LEAST 4096u /* members; for fewer the host takes about as long as the copies */

/* Functions of a device. All except `close` may block for seconds, but not forever. */
struct hk_residual_kind {
  /* Copies the columns of `host` to device `number`. Returns 0 and *out, or a negative errno with a message. */
  int (*open)(void **out, const struct hk_residual *host, uint32_t number, char *error, size_t size);
  void (*close)(void *columns);
  /* As hk_residual_row, without changing `rows` of `host`; also writes columns now.z, now.off, errors and error of `host`.
   * Returns 0, or a negative errno with a message; then the columns are undefined. */
  int (*row)(void *columns, const struct hk_residual *host, const double *x, double *r, char *error, size_t size);
  /* Copies all columns to `host` (read) or from it (write), without changing its `rows`. Returns as row. */
  int (*read)(void *columns, const struct hk_residual *host, char *error, size_t size);
  int (*write)(void *columns, const struct hk_residual *host, char *error, size_t size);
};

/* Where a field is computed. All zero: the host. */
struct hk_field_place {
  const struct hk_residual_kind *kind; /* NULL: the host */
  uint32_t number;                     /* number of the device */
  uint32_t least;                      /* the host computes fields with fewer members */
  /* Reports that the device now has the columns or, if why is not NULL, that the host computes from now on. NULL: no report. */
  void (*told)(void *arg, const char *why);
  void *arg;
};

struct hk_field_offload {
  struct hk_field_place place;
  void *columns; /* columns on the device; NULL: none */
  bool ahead;    /* the device's columns are newer than the host's */
  bool behind;   /* the host's columns are newer than the device's */
};

/* Computes a row of a field of `members` members, on the device or the host. */
void hk_offload_row(struct hk_field_offload *offload, struct hk_residual *host, uint32_t members, const double *x, double *r);
/* hk_offload_look: call before reading columns of the host other than those that come with a row. hk_offload_change: call before
 * writing to any. */
void hk_offload_look(struct hk_field_offload *offload, const struct hk_residual *host);
void hk_offload_change(struct hk_field_offload *offload, const struct hk_residual *host);
/* Call before the host's columns are enlarged: as hk_offload_change, and frees the device's columns. */
void hk_offload_grow(struct hk_field_offload *offload, const struct hk_residual *host);
/* Frees the device's columns. */
void hk_offload_close(struct hk_field_offload *offload);

#ifdef __cplusplus
}
#endif
#endif
