/* An order of equations in which their matrix is a narrow band: reverse Cuthill-McKee. Thread: the caller's. */
#ifndef HK_CUTHILL_H
#define HK_CUTHILL_H

#include <stdint.h>

/* Numbers n equations anew. place: of each equation in the order. The neighbours of an equation, those with which it has a number
 * in the matrix, are from at[i] to at[i + 1], and each is also the neighbour's neighbour. Returns 0 or -ENOMEM. */
int hk_cuthill_order(uint32_t *place, uint32_t n, const uint32_t *at, const uint32_t *neighbour);

#endif
