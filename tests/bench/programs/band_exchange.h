/* Row exchanges of block columns on a GPU. */
#ifndef HK_BAND_EXCHANGE_H
#define HK_BAND_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* cudaStream_t points to it */

/* `blocks` blocks of `size` columns (at most 512), `apart` numbers from one to the next: row to[k] becomes what row from[k] was;
 * to[k] = k for the first `size` ones, which go to `top` (size x size for each block) unless that is NULL. At most 2 size pairs,
 * whose number lies on the device, too. */
typedef struct band_exchange_rows {
  double *first, *top;
  ptrdiff_t apart;
  size_t ld;
  const int *from, *to, *pairs;
  uint32_t size, blocks;
} band_exchange_rows;

int band_exchange(const band_exchange_rows *rows, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
