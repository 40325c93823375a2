/* Focus on the GPU, for long lines: computes what cpu/field/focus.h does, to the last bit, with a thread for each sensor and
 * place.
 *
 * A handle holds the tables and columns of one line in device memory. Values of rows are copied to the device; strengths, who is
 * to blame, and what was found come back; all else remains there until it is read.
 *
 * Handle: one thread at a time. In a build without nvcc hk_focus_gpu_open returns -ENODEV. */
#ifndef HK_FOCUS_GPU_H
#define HK_FOCUS_GPU_H

#include "cpu/field/focus.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hk_focus_gpu;

/* A row's output, in memory of the handle that is valid until its next call. */
struct hk_focus_gpu_row {
  const float *value; /* by sensor, as in struct hk_focus, which is the next one, too */
  const uint32_t *blamed;
  struct hk_focus_find find;
};

/* Bytes of device memory for a line. */
uint64_t hk_focus_gpu_bytes(const struct hk_focus_line *line);

/* Copies `line` to GPU number `device`. Returns 0 and *out, or a negative errno with a message: -ENODEV no usable GPU (compute
 * capability 8.0) or a build without nvcc, -ENOMEM with the number of bytes, -EIO. */
int hk_focus_gpu_open(struct hk_focus_gpu **out, const struct hk_focus_line *line, uint32_t device, char *error, size_t size);
void hk_focus_gpu_close(struct hk_focus_gpu *g); /* NULL is allowed */

/* Begins to process `rows` rows (1..HK_FOCUS_AT_ONCE) from `row` on, which is later than the last one: x has the values of one
 * row after the other, by sensor; where it is page-locked memory it must stay until the call was waited for. x NULL: the values
 * of the last call, and nothing is copied there or back; for benchmarks. Waits for nothing but an earlier call. Returns 0 or
 * -EIO; after an error here or below the columns on the device are undefined. */
int hk_focus_gpu_begin(struct hk_focus_gpu *g, int64_t row, const double *x, uint32_t rows);
/* Waits for that. Returns 0, -ETIMEDOUT or -EIO. */
int hk_focus_gpu_wait(struct hk_focus_gpu *g);
/* Row `k` of the last call, after it was waited for. Returns 0 or -EIO. */
int hk_focus_gpu_row(struct hk_focus_gpu *g, uint32_t k, struct hk_focus_gpu_row *out);

/* Copies the columns from (write) or to (read) a line with the same positions and rule. Returns 0, -ETIMEDOUT or -EIO. */
int hk_focus_gpu_write(struct hk_focus_gpu *g, const struct hk_focus_line *line);
int hk_focus_gpu_read(struct hk_focus_gpu *g, struct hk_focus_line *line);

#ifdef __cplusplus
}
#endif
#endif
