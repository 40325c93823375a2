/* Which backend the daemon computes with. */
#include "daemon/shard.h"

#include "gpu/cuda.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *hk_backend_failure(struct hk_backend *b, int status)
{
  const char *words = strcmp(b->ops->name, "cuda") == 0 ? hk_cuda_failure(b) : "";
  return words[0] ? words : strerror(-status);
}

int hk_backend_open(struct hk_backend **out, const struct hk_config *config, void (*ready)(void *arg), void *arg, char *error,
                    size_t size)
{
  struct hk_detector *detectors = calloc(config->n_detectors, sizeof *detectors);
  if (!detectors) {
    snprintf(error, size, "no memory for the detectors");
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < config->n_detectors; i++)
    detectors[i] = config->detectors[i].detector;
  const struct hk_backend_config c = {
    .detectors = detectors,
    .n_detectors = config->n_detectors,
    .max_sensors = config->max_sensors,
    .threads = config->threads,
    .memory = config->memory,
    .in_flight = HK_SHARD_IN_FLIGHT,
    .ready = ready,
    .ready_arg = arg,
  };
  int status = -ENODEV;
  if (config->backend == HK_BACKEND_CUDA || config->backend == HK_BACKEND_AUTO)
    status = hk_cuda_open(out, &c, error, size);
  if (config->backend == HK_BACKEND_CPU || (config->backend == HK_BACKEND_AUTO && status != 0))
    status = hk_cpu_open(out, &c, error, size);
  if (config->backend == HK_BACKEND_REFERENCE)
    status = hk_reference_open(out, &c, error, size);
  free(detectors);
  return status;
}
