/* The table of backends. */
#include "daemon/scoring/backends.h"

#include "gpu/cuda.h"
#include "gpu/model/matrix_gpu.h"
#include "gpu/model/pipelines_gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct hk_backend_kind hk_backend_kinds[] = {
  [HK_BACKEND_CPU] = { .open = hk_cpu_open, .batch = 16384 },
  [HK_BACKEND_CUDA] = { .open = hk_cuda_open,
                        .failure = hk_cuda_failure,
                        .devices = hk_cuda_devices,
                        .fields = { &hk_cuda_residual, &hk_cuda_focus },
                        .pipelines = &hk_pipelines_gpu,
                        .matrices = &hk_matrix_gpu,
                        .pictures = &hk_cuda_pictures,
                        .batch = 262144,
                        .device = true },
  [HK_BACKEND_REFERENCE] = { .open = hk_reference_open, .batch = 16384 },
};

struct hk_pipelines_place hk_backend_pipelines(const struct hk_backend_kind *kind, uint32_t number, uint32_t threads,
                                               const struct hk_model_plan *plan)
{
  if (kind && kind->matrices && plan && plan->matrix && hk_matrix_is_wide(plan->matrix))
    return (struct hk_pipelines_place){ kind->matrices, number };
  if (kind && kind->pipelines && plan && !plan->heat && plan->lines >= HK_PIPELINES_DEVICE_LEAST)
    return (struct hk_pipelines_place){ kind->pipelines, number };
  return (struct hk_pipelines_place){ &hk_pipelines_host, threads };
}

const char *hk_backend_failure(const struct hk_backend_kind *kind, struct hk_backend *b, int status)
{
  const char *words = kind->failure ? kind->failure(b) : "";
  return words[0] ? words : strerror(-status);
}

int hk_backend_open(struct hk_backend **out, const struct hk_backend_kind *kind, const struct hk_config *config,
                    const struct hk_backend_wish *wish, char *error, size_t size)
{
  struct hk_detector *own = wish->detectors ? NULL : calloc(config->n_detectors, sizeof *own);
  if (!wish->detectors && !own) {
    snprintf(error, size, "no memory for the detectors");
    return -ENOMEM;
  }
  for (uint32_t i = 0; own && i < config->n_detectors; i++)
    own[i] = config->detectors[i].detector;
  const struct hk_backend_config c = {
    .detectors = own ? own : wish->detectors,
    .n_detectors = own ? config->n_detectors : wish->n_detectors,
    .max_detectors = HK_DETECTORS_MAX,
    .max_sensors = (config->max_sensors + wish->of - 1) / wish->of,
    .threads = config->threads,
    .memory = wish->memory,
    .in_flight = HK_IN_FLIGHT,
    .ready = wish->ready,
    .ready_arg = wish->arg,
    .device = wish->number,
  };
  const int status = kind->open(out, &c, error, size);
  free(own);
  return status;
}
