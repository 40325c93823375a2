/* In place of sparse_ldl.c where the build has no SuiteSparse. */
#include "cpu/sparse/sparse.h"

#include <stddef.h>

const struct hk_sparse_kind *const hk_sparse_ldl = NULL;
