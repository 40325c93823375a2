/* The backends that the daemon can use, and their properties beyond cpu/backend.h. */
#ifndef HK_BACKENDS_H
#define HK_BACKENDS_H

#include "cpu/backend.h"
#include "cpu/field/offload.h"
#include "cpu/picture/device.h"
#include "daemon/config/config.h"

#include <stdbool.h>

#define HK_IN_FLIGHT 4 /* batches between submit and reap */

struct hk_backend_kind {
  int (*open)(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size);
  /* Describes the last failure of the backend; "": none. NULL: only the errno is known. */
  const char *(*failure)(struct hk_backend *b);
  uint32_t (*devices)(void);                 /* number of its devices, each with its own backend; NULL: one */
  struct hk_field_kinds fields;              /* computes large fields on this device */
  const struct hk_pipelines_kind *pipelines; /* computes models of many lines; NULL: the host does */
  const struct hk_pipelines_kind *matrices;  /* the same of processes given as matrices with wide bands */
  const struct hk_picture_device *pictures;  /* computes pictures; NULL: the host does */
  uint32_t batch;                            /* capacity of a batch, points */
  bool device; /* a separate device, which may be lost or hang while the rest of the machine works */
};

/* One for each enum hk_backend_choice except HK_BACKEND_AUTO. Tests have tables of their own. */
extern const struct hk_backend_kind hk_backend_kinds[];

/* Options for opening a backend, beside the configuration. */
struct hk_backend_wish {
  const struct hk_detector *detectors; /* by number; NULL: the configuration's */
  uint32_t n_detectors;
  uint64_t memory;     /* limit for the memory of sensors, bytes; 0: none */
  uint32_t number, of; /* number of this backend among `of` backends that share the sensors; also the number of its GPU */
  void (*ready)(void *arg);
  void *arg;
};

/* Opens the backend of a choice (not auto) for the detectors and sensors of the configuration. Returns 0, or a negative errno
 * with a message. */
int hk_backend_open(struct hk_backend **out, const struct hk_backend_kind *kind, const struct hk_config *config,
                    const struct hk_backend_wish *wish, char *error, size_t size);

/* Where a shard with a backend of this kind (NULL: none) computes the model of a plan (NULL: none): on GPU `number` if that is
 * faster, else on `threads` threads of the host (0: one for each core). */
struct hk_pipelines_place hk_backend_pipelines(const struct hk_backend_kind *kind, uint32_t number, uint32_t threads,
                                               const struct hk_model_plan *plan);

/* Describes the failure of a backend. */
const char *hk_backend_failure(const struct hk_backend_kind *kind, struct hk_backend *b, int status);

#endif
