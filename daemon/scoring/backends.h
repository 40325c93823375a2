/* The backends that the daemon can use, and their properties beyond cpu/backend.h. */
#ifndef HK_DAEMON_BACKEND_H
#define HK_DAEMON_BACKEND_H

#include "cpu/backend.h"
#include "cpu/field/offload.h"
#include "daemon/config/config.h"

#include <stdbool.h>

#define HK_IN_FLIGHT 4 /* batches between submit and reap */

struct hk_backend_kind {
  int (*open)(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size);
  /* What the backend last failed of, in words; "" when of nothing. NULL: the errno has to do. */
  const char *(*failure)(struct hk_backend *b);
  uint32_t (*devices)(void);                 /* number of its devices, each with its own backend; NULL: one */
  const struct hk_residual_device *fields;   /* that computes residuals of large fields beside it; NULL: the host does */
  const struct hk_pipelines_kind *pipelines; /* computes models of many lines; NULL: the host does */
  uint32_t batch;                            /* points that a batch holds */
  bool device; /* a separate device, which may be lost or hang while the rest of the machine works */
};

/* One for each enum hk_backend_choice but HK_BACKEND_AUTO. Tests have tables of their own. */
extern const struct hk_backend_kind hk_backend_kinds[];

/* Options for opening a backend, beside the configuration. */
struct hk_backend_wish {
  const struct hk_detector *detectors; /* by number; NULL: the configuration's */
  uint32_t n_detectors;
  uint64_t memory;     /* bytes that sensors may take, 0 = no limit */
  uint32_t number, of; /* which of so many backends it is, that share the sensors; the number is that of the GPU, too */
  void (*ready)(void *arg);
  void *arg;
};

/* Opens the backend of a choice (not auto), for the detectors and sensors of the configuration. 0, or a negative errno with a
 * message. */
int hk_backend_open(struct hk_backend **out, const struct hk_backend_kind *kind, const struct hk_config *config,
                    const struct hk_backend_wish *wish, char *error, size_t size);

/* Where a shard with a backend of this kind (NULL: none) computes the model of a plan (NULL: none): on its GPU, number `number`,
 * where that is faster, else by so many threads of the host (0: one for each core). */
struct hk_pipelines_place hk_backend_pipelines(const struct hk_backend_kind *kind, uint32_t number, uint32_t threads,
                                               const struct hk_model_plan *plan);

/* Why a backend failed, in words. */
const char *hk_backend_failure(const struct hk_backend_kind *kind, struct hk_backend *b, int status);

#endif
