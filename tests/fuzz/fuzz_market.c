/* Matrix Market files from arbitrary bytes. An accepted matrix is examined; a small square one becomes that of a process, which
 * is solved for its steady state and advanced by a few steps. */
#include "cpu/model/matrix.h"
#include "cpu/model/matrix_shape.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(good)                                                                                                              \
  do                                                                                                                             \
    if (!(good))                                                                                                                 \
      abort(); /* of this very line */                                                                                           \
  while (0)

#define SMALL 64u

static void look(const struct hk_market *m)
{
  check(m->rows > 0 && m->columns > 0 && m->at[0] == 0);
  for (uint32_t i = 0; i < m->rows; i++)
    for (uint32_t k = m->at[i]; k < m->at[i + 1]; k++) {
      check(m->column[k] < m->columns && isfinite(m->value[k]) && hk_market_place(m, i, m->column[k]) == k);
      check(k == m->at[i] || m->column[k - 1] < m->column[k]);
    }
}

/* The first unknown is measured, and the diagonal is the storage. */
static void go(const struct hk_market *m)
{
  static const struct hk_matrix_place first[] = { { HK_MATRIX_UNKNOWN, 0 } };
  static const bool given[SMALL] = { true };
  double *storage = calloc((size_t)m->at[m->rows] + 1, sizeof *storage);
  struct hk_matrix_shape shape = {
    .n = m->rows, .drives = 1, .equations = *m, .storage = storage, .drive = first, .given = given
  };
  struct hk_matrix w;
  uint32_t *order;
  char error[160];
  check(storage);
  for (uint32_t i = 0; i < m->rows; i++)
    if (hk_market_place(m, i, i) != UINT32_MAX)
      storage[hk_market_place(m, i, i)] = 2;
  check(hk_matrix_order(&shape, &order) == 0 && hk_matrix_open(&w, &shape, NULL, 0, error, sizeof error) == 0);
  if (hk_matrix_steady(&w, (double[]){ 3 }, 1) == 0)
    check(w.age >= 0 && isfinite(w.age));
  for (uint32_t k = 0; k < 3; k++)
    if (hk_matrix_step(&w, (double[]){ 5 }, NULL, 0.5, 1) == 0)
      check(w.error <= HK_BAND_ERROR && isfinite(w.state[m->rows - 1]) && fabs(w.state[0] - 5) < 1e-9);
  hk_matrix_close(&w);
  free(order);
  free(storage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct hk_market m;
  char error[256] = "";
  if (hk_market_parse(&m, (const char *)data, size, error, sizeof error) != 0) {
    check(error[0] != 0 && !m.at);
    return 0;
  }
  look(&m);
  if (m.rows == m.columns && m.rows <= SMALL)
    go(&m);
  hk_market_free(&m);
  return 0;
}
