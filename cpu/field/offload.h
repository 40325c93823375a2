/* Rows of a large field, computed by a device that has the columns of its residual (residual.h). The host has them as well, as
 * they were when somebody last looked at them or changed them there; what is read after every row (z, off, errors, error) comes
 * back with the row.
 *
 * The device gives the bits of hk_residual_row, so it does not matter which rows it has computed. One that fails is done without
 * from then on: the field goes on from the columns that the host has. Thread: the field's. */
#ifndef HK_FIELD_OFFLOAD_H
#define HK_FIELD_OFFLOAD_H

#include "cpu/field/residual.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HK_OFFLOAD_LEAST 4096u /* members; with fewer of them the host takes about as long as the copies */

/* What a device does for a field. Each but `close` may wait for seconds, and not for ever. */
struct hk_residual_device {
  /* A copy of the columns of `host` on device `number`. 0 and *out, or a negative errno with a message. */
  int (*open)(void **out, const struct hk_residual *host, uint32_t number, char *error, size_t size);
  void (*close)(void *columns);
  /* hk_residual_row, except for `rows` of `host`; columns now.z, now.off, errors and error of `host` are written, too. 0, or a
   * negative errno with a message: nothing is said of the columns then. */
  int (*row)(void *columns, const struct hk_residual *host, const double *x, double *r, char *error, size_t size);
  /* Copies all columns down into those of `host`, or up from them, with `rows` as `host` has it. As row. */
  int (*read)(void *columns, const struct hk_residual *host, char *error, size_t size);
  int (*write)(void *columns, const struct hk_residual *host, char *error, size_t size);
};

/* Where a field is computed. All zero: on the host. */
struct hk_field_place {
  const struct hk_residual_device *device; /* NULL: the host */
  uint32_t number;                         /* of it */
  uint32_t least;                          /* members; below, the host computes */
  /* The device has the columns now; or (why is not NULL) it does without them, and the host computes from now on. NULL: nobody is
   * told. */
  void (*told)(void *arg, const char *why);
  void *arg;
};

struct hk_field_offload {
  struct hk_field_place place;
  void *columns; /* on the device; NULL: none yet */
  bool ahead;    /* the device has learned what the host's columns do not say */
  bool behind;   /* the host's were changed since they were copied up */
};

/* A row of so many members, wherever it is computed. */
void hk_offload_row(struct hk_field_offload *offload, struct hk_residual *host, uint32_t members, const double *x, double *r);
/* Before anybody reads other columns than those that come with a row, or writes to any. */
void hk_offload_look(struct hk_field_offload *offload, const struct hk_residual *host);
void hk_offload_change(struct hk_field_offload *offload, const struct hk_residual *host);
/* Before the columns of the host get room for more nodes: as hk_offload_change, and the device lets go of its own. */
void hk_offload_grow(struct hk_field_offload *offload, const struct hk_residual *host);
/* Lets go of the device's columns. */
void hk_offload_close(struct hk_field_offload *offload);

#ifdef __cplusplus
}
#endif
#endif
