/* Backends by name. */
#include "daemon/cli/backend_option.h"
#include "gpu/cuda.h"

enum { CHOICE_AUTO, CHOICE_CPU, CHOICE_CUDA, CHOICE_REFERENCE };

const char *const hk_choices[] = { "auto", "cpu", "cuda", "reference", NULL };

int hk_choose_backend(struct hk_backend **out, int choice, const struct hk_backend_config *config, char *error, size_t size)
{
  if (choice == CHOICE_REFERENCE)
    return hk_reference_open(out, config, error, size);
  if (choice == CHOICE_CUDA || choice == CHOICE_AUTO) {
    const int status = hk_cuda_open(out, config, error, size);
    if (status == 0 || choice == CHOICE_CUDA)
      return status;
  }
  return hk_cpu_open(out, config, error, size);
}
