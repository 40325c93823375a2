/* Reads matrices in the Matrix Market exchange format (R. F. Boisvert, R. Pozo, K. A. Remington, NISTIR 5935, 1996), which
 * MATLAB, Octave, scipy (scipy.io.mmwrite) and most tools for finite elements write.
 *
 * Read are `matrix coordinate` and `matrix array` of the fields real, double and integer, general, symmetric or skew-symmetric;
 * no others. Entries of the same place are added, as assembled elements are. Entries that are zero stay: they belong to the
 * pattern. Thread: the caller's. */
#ifndef HK_MARKET_H
#define HK_MARKET_H

#include <stddef.h>
#include <stdint.h>

#define HK_MARKET_BYTES ((size_t)1 << 30) /* maximum size of a file, */
#define HK_MARKET_SIDE_MAX (1u << 20)     /* of the rows and of the columns of a matrix, */
#define HK_MARKET_NUMBERS_MAX (1u << 26)  /* and of its numbers */

/* A matrix by rows: the numbers of row i are from at[i] to at[i + 1], by ascending column. */
struct hk_market {
  uint32_t rows, columns;
  uint32_t *at, *column; /* owned, as */
  double *value;         /* finite */
};

/* Reads a text in memory. Returns 0; or -EINVAL or -ENOMEM with a message that names line and column, and *out is empty. */
int hk_market_parse(struct hk_market *out, const char *text, size_t length, char *error, size_t size);
void hk_market_free(struct hk_market *matrix); /* all zero is allowed */

/* Where the number in a row and column is; UINT32_MAX: none is there. */
uint32_t hk_market_place(const struct hk_market *matrix, uint32_t row, uint32_t column);
/* The sum of a row's numbers times x[column]. */
double hk_market_times(const struct hk_market *matrix, uint32_t row, const double *x);

#endif
