/* A process whose equations are given as matrices: computes its unknowns for successive times.
 *
 *   M dx/dt + A x = B u
 *
 * x: n unknowns (temperatures of a plate or a hall, voltages, concentrations); A: what couples them; M: what they store, without
 * which there is no memory; B: how inputs u, which are measured or constant, come in. Some unknowns may be measured: each of them
 * has its measured value in place of its equation. Steps are implicit (Euler's method), so that storage may be zero for some
 * unknowns and an interval of any length is stable:
 *
 *   S x = M x_before / dt + B u,   S = A + M / dt
 *
 * Columns of measured unknowns go to the right side, so that S stays symmetric if A and M are. S has the same numbers in each
 * step, so it is factorised once: a symmetric, positive definite one as in cpu/sparse/sparse.h, any other as a band in reverse
 * Cuthill-McKee order with partial pivoting, as in cpu/band/band.h, or on a GPU (gpu/model/matrix_gpu.h). Rows are scaled by
 * powers of two before.
 *
 * The steady state: A x = B u. What a process remembers is estimated by t = A^-1 M 1, the mean times of whatever is put into all
 * unknowns; their largest, the age, is no less than the slowest time constant where A^-1 M has no negative number.
 *
 * On one machine, one kind of solver and one version of the libraries the same numbers give the same bits, also after a restart:
 * the state is x alone, and factors do not depend on the past. Thread: the owner's. */
#ifndef HK_MATRIX_H
#define HK_MATRIX_H

#include "cpu/model/matrix_shape.h"
#include "cpu/sparse/sparse.h"

#define HK_MATRIX_NUMBERS_MAX ((uint64_t)1 << 31) /* of the factors of a band */

/* Solves band systems of one matrix, one after another: on the host, or on a GPU. */
struct hk_matrix_band {
  /* number: of the device. Returns 0, -ENOMEM, or an error of the device, with a message. */
  int (*open)(void **out, const struct hk_band_shape *shape, uint32_t number, char *error, size_t size);
  void (*close)(void *solver); /* NULL is allowed */
  /* Factorises a matrix and solves, and solves with those factors; as hk_band_solve_one and hk_band_solve_with. Return 0 and the
   * outcome, or -EIO: the device failed. */
  int (*solve)(void *solver, const double *a, const double *b, double *x, struct hk_band_outcome *outcome);
  int (*solve_with)(void *solver, const double *a, const double *b, double *x, struct hk_band_outcome *outcome);
  bool keeps; /* `solve` keeps what it needs of `a` */
};

extern const struct hk_matrix_band hk_matrix_band_host;

struct hk_matrix {
  const struct hk_matrix_shape *shape; /* owned by the caller, as band */
  double *state;                       /* x */
  double *memory;
  struct hk_sparse *sparse; /* NULL: the band is used */
  const struct hk_matrix_band *band;
  void *solver;      /* of the band; NULL: not needed until now */
  uint32_t number;   /* of its device */
  double *numbers;   /* of S by rows, as cpu/band/band.h has them */
  bool fresh;        /* they are not factorised yet */
  bool banded;       /* the factors are the band's */
  double dt, times;  /* of the factors; dt = 0: there are none */
  double age;        /* s, of the last steady state */
  double error;      /* the backward error of the last step */
  uint32_t singular; /* after -EDOM: an unknown */
};

/* Makes a process with x = 0. band: NULL: the host's. Returns 0; or -ENOMEM, -E2BIG: the factors of its band would be over
 * HK_MATRIX_NUMBERS_MAX, or an error of the band's device, with a message. hk_matrix_close: all zero is allowed. */
int hk_matrix_open(struct hk_matrix *process, const struct hk_matrix_shape *shape, const struct hk_matrix_band *band,
                   uint32_t number, char *error, size_t size);
void hk_matrix_close(struct hk_matrix *process);
/* The name of the solver that is used, and the bytes of a process, without its shape. */
const char *hk_matrix_solver(const struct hk_matrix *process);
uint64_t hk_matrix_bytes(const struct hk_matrix_shape *shape);
/* Whether a GPU is worth it: the band is wide, large, and S is not symmetric. */
bool hk_matrix_is_wide(const struct hk_matrix_shape *shape);

/* The steady state. is: values of the boundaries. times: factor of A. Returns 0; -EDOM: A is singular; -ERANGE: no solution has a
 * small error; -ENOMEM; or -EIO. After an error the state is unchanged, as below. */
int hk_matrix_steady(struct hk_matrix *process, const double *is, double times);
/* Advances by dt seconds. more: what comes in beside B u, by unknown; NULL: none. Returns as above. */
int hk_matrix_step(struct hk_matrix *process, const double *is, const double *more, double dt, double times);
/* Reads n values from the state; those of inputs are NaN. */
void hk_matrix_read(const struct hk_matrix *process, const struct hk_matrix_place *place, uint32_t n, double *value);

#endif
