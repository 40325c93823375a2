/* Processes given as matrices, in model files (model_plan.h). Functions return 0, or -EINVAL or -ENOMEM with a message. Thread:
 * the caller's. */
#ifndef HK_MODEL_PLAN_MATRIX_H
#define HK_MODEL_PLAN_MATRIX_H

#include "cpu/model/matrix.h"
#include "cpu/model/plan_lines.h"

/* The part of a plan that only these have. All columns are owned; `shape` points to them. */
struct hk_plan_matrix {
  struct hk_matrix_shape shape;
  struct hk_matrix_place *drive, *where; /* where: by sensor */
  double *storage, *constant;
  bool *given;
  uint32_t *order;
  char unit[HK_PLAN_UNIT_MAX];
};

/* Reads the files, and places all sensors. folder: of the files; NULL: they may not be read. */
int hk_plan_matrix_make(struct hk_plan_matrix *matrix, const struct hk_plan_lines *lines, const char *folder);
/* Mixes what a state depends on into a hash (cpu/state_mark.h). */
uint64_t hk_plan_matrix_mark(const struct hk_matrix_shape *shape, uint64_t hash);
void hk_plan_matrix_free(struct hk_plan_matrix *matrix); /* all zero is allowed */

#endif
