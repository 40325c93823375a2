/* A process given as matrices, as the only line of its plan (pipelines.h). Thread: the owner's. */
#ifndef HK_PIPELINES_MATRIX_H
#define HK_PIPELINES_MATRIX_H

#include "cpu/model/pipelines_kind.h"

/* The kind of the host, and what kinds of other solvers of the band are made of. */
extern const struct hk_pipelines_kind hk_pipelines_matrix;
int hk_pipelines_matrix_open(struct hk_pipelines **out, const struct hk_model_plan *plan, const struct hk_matrix_band *band,
                             uint32_t number, char *error, size_t size);
void hk_pipelines_matrix_close(struct hk_pipelines *lines);
int hk_pipelines_matrix_step(struct hk_pipelines *lines, struct hk_pipelines_line *line, double dt,
                             const struct hk_pipelines_seen *seen);
int hk_pipelines_matrix_put(struct hk_pipelines *lines, uint32_t line, const double *state);
int hk_pipelines_matrix_get(struct hk_pipelines *lines, double *state);
int hk_pipelines_matrix_get_line(struct hk_pipelines *lines, uint32_t line, double *state);
/* The steady state, with the solver of the lines. drive: as hk_matrix_steady takes it. *age: s. Returns 0 or its errors. */
int hk_pipelines_matrix_settle(struct hk_pipelines *lines, const double *drive, double *age, double *state);

/* What a process costs on the host. */
struct hk_matrix_cost {
  double begin, row;  /* s of a steady state and the first step, with their factors; and of a further step: a median */
  const char *solver; /* static */
  double age;         /* s */
};
/* Measures it. Returns 0, or an error of hk_matrix_open, hk_matrix_steady or hk_matrix_step; *singular after -EDOM: an unknown.
 */
int hk_pipelines_matrix_measure(const struct hk_model_plan *plan, double interval, struct hk_matrix_cost *out,
                                uint32_t *singular);

#endif
