/* Chooses the kernels: the best instruction set that is compiled in and supported by this processor, or a lower one named by
 * HANKELD_KERNELS. Unknown names are ignored. */
#include "cpu/sst/kernels.h"

#include <stdlib.h>
#include <string.h>

extern const struct hk_kernels hk_kernels_portable, hk_kernels_avx2, hk_kernels_avx512, hk_kernels_avx512_half;

/* Those that are compiled in, the best first, from the first on that this processor can run. */
const struct hk_kernels *const *hk_kernels_all(void)
{
  static const struct hk_kernels *const all[] = {
#ifdef HK_HAVE_AVX512
    &hk_kernels_avx512, &hk_kernels_avx512_half,
#endif
#ifdef HK_HAVE_AVX2
    &hk_kernels_avx2,
#endif
    &hk_kernels_portable, NULL
  };
  const struct hk_kernels *const *have = all;
#ifdef HK_HAVE_AVX512
  __builtin_cpu_init();
  if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma")))
    have += 2;
#endif
#ifdef HK_HAVE_AVX2
  __builtin_cpu_init();
  if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) && *have == &hk_kernels_avx2)
    have++;
#endif
  return have;
}

const struct hk_kernels *hk_kernels(void)
{
  const struct hk_kernels *const *have = hk_kernels_all();
  const char *wanted = getenv("HANKELD_KERNELS");
  for (const struct hk_kernels *const *k = have; wanted && *k; k++)
    if (strcmp((*k)->name, wanted) == 0)
      return *k;
  return *have;
}

const char *hk_kernels_name(void)
{
  return hk_kernels()->name;
}
