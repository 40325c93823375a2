#include "cpu/lapack.h"

#include "cpu/sonames.h"

struct hk_lapack hk_lapack;
struct hk_blas hk_blas;

static struct hk_library blas_library = HK_LIBRARY(HK_SONAME_OPENBLAS, hk_blas, HK_BLAS_CALLS);
static struct hk_library lapack_library = HK_LIBRARY(HK_SONAME_LAPACKE, hk_lapack, HK_LAPACK_CALLS);
static pthread_mutex_t lapack_mutex = PTHREAD_MUTEX_INITIALIZER;

int hk_lapack_load(char *why, size_t size)
{
  int status = 0;
  pthread_mutex_lock(&lapack_mutex);
  if (!lapack_library.loaded) {
    blas_library.below = true; /* LAPACKE hands on to LAPACK, which OpenBLAS has, too: its own is found first */
    status = hk_library_load(&blas_library, why, size);
    if (status == 0)
      status = hk_library_load(&lapack_library, why, size);
    if (status == 0)
      hk_blas.set_num_threads(1); /* the threads are the engine's */
  }
  pthread_mutex_unlock(&lapack_mutex);
  return status;
}
