/* Backends by name. */
#include "daemon/cli/engine.h"

enum { ENGINE_AUTO, ENGINE_CPU, ENGINE_CUDA, ENGINE_REFERENCE };

const char *const hk_engine_names[] = { "auto", "cpu", "cuda", "reference", NULL };

int hk_engine_open(struct hk_backend **out, int name, const struct hk_backend_config *config, char *error, size_t size)
{
  if (name == ENGINE_REFERENCE)
    return hk_reference_open(out, config, error, size);
  return hk_cpu_open(out, config, error, size);
}
