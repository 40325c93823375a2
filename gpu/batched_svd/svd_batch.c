/* The host side of batched bidiagonalisation and singular value decomposition: memory, the order of launches, and the QR
 * iteration where CPU threads do it.
 *
 * Happy path of a decomposition: the caller's stream reduces all matrices and forms the two bases; next to it, rounds of the
 * QR iteration fill one of two buffers with rotations (a kernel on a stream of its own, or threads and a copy), while the
 * caller's stream applies those of the other. When no matrix has anything left, values and vectors are put in order.
 *
 * Failure modes: what CUDA refuses ends the call with -EIO after all that was launched is done. */
#include "gpu/batched_svd/svd_batch.h"
#include "gpu/batched_svd/bidiagonal.h"
#include "gpu/batched_svd/bidiagonal_vectors.h"
#include "gpu/cuda_error.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 256u
#define ROUNDS_AT_ONCE 2u

struct hk_svd_batch {
  struct hk_svd_config config;
  struct hk_bidiagonal form;
  bool turned;    /* m < n: internally the matrix is transposed */
  uint32_t count; /* matrices of the last reduction */
  unsigned char *device, *pinned;
  float *d, *e, *basis_left, *basis_right;
  uint32_t *status, *unsolved; /* unsolved: a number for each buffer of rotations */
  int32_t *place;
  struct hk_qr *qr;
  unsigned char *rotations[ROUNDS_AT_ONCE];
  struct { /* pinned */
    float *d, *e;
    uint32_t *status, *unsolved;
    struct hk_qr *qr, *start;
    unsigned char *rotations[ROUNDS_AT_ONCE];
  } host;
  cudaStream_t side;
  cudaEvent_t reduced, produced[ROUNDS_AT_ONCE], applied[ROUNDS_AT_ONCE];
};

/* Gives out parts of a block of memory; with base NULL it only counts. */
struct share {
  unsigned char *base;
  uint64_t taken;
};

static void *share_take(struct share *s, uint64_t n, size_t size)
{
  void *p = s->base ? s->base + s->taken : NULL;
  s->taken += (n * size + 255) & ~(uint64_t)255;
  return p;
}

static bool config_fits(const struct hk_svd_config *c)
{
  return c->m >= 1 && c->n >= 1 && c->m <= HK_SVD_SIDE_MAX && c->n <= HK_SVD_SIDE_MAX && c->batch >= 1 && c->batch <= 65535 &&
         c->host_threads <= THREADS_MAX;
}

static void svd_batch_lay_out(struct hk_svd_batch *b, struct share *device, struct share *pinned)
{
  struct hk_bidiagonal *f = &b->form;
  const uint64_t batch = b->config.batch, k = f->columns, elements = k * batch;
  f->left = share_take(device, elements * f->ld_left, sizeof *f->left);
  f->right = share_take(device, elements * f->ld_right, sizeof *f->right);
  f->tau_left = share_take(device, elements, sizeof *f->tau_left);
  f->tau_right = share_take(device, elements, sizeof *f->tau_right);
  f->scale = share_take(device, batch, sizeof *f->scale);
  b->d = share_take(device, elements, sizeof *b->d);
  b->e = share_take(device, elements, sizeof *b->e);
  b->status = share_take(device, batch, sizeof *b->status);
  b->unsolved = share_take(device, ROUNDS_AT_ONCE, sizeof *b->unsolved);
  b->place = share_take(device, elements, sizeof *b->place);
  b->qr = share_take(device, batch, sizeof *b->qr);
  b->host.unsolved = share_take(pinned, ROUNDS_AT_ONCE, sizeof *b->host.unsolved);
  b->host.start = share_take(pinned, batch, sizeof *b->host.start);
  if (b->config.vectors) {
    b->basis_left = share_take(device, elements * f->ld_left, sizeof *b->basis_left);
    b->basis_right = share_take(device, elements * f->ld_right, sizeof *b->basis_right);
    for (uint32_t i = 0; i < ROUNDS_AT_ONCE; i++)
      b->rotations[i] = share_take(device, batch, hk_qr_bytes(f->columns));
  }
  if (b->config.host_threads) {
    b->host.d = share_take(pinned, elements, sizeof *b->host.d);
    b->host.e = share_take(pinned, elements, sizeof *b->host.e);
    b->host.status = share_take(pinned, batch, sizeof *b->host.status);
    b->host.qr = share_take(pinned, batch, sizeof *b->host.qr);
    for (uint32_t i = 0; b->config.vectors && i < ROUNDS_AT_ONCE; i++)
      b->host.rotations[i] = share_take(pinned, batch, hk_qr_bytes(f->columns));
  }
}

/* The internal shapes, for a valid configuration. */
static void svd_batch_set_up(struct hk_svd_batch *b, const struct hk_svd_config *config)
{
  struct hk_bidiagonal *f = &b->form;
  *b = (struct hk_svd_batch){ .config = *config, .turned = config->m < config->n };
  f->rows = b->turned ? config->n : config->m;
  f->columns = b->turned ? config->m : config->n;
  f->row_step = b->turned ? f->columns : 1;
  f->column_step = b->turned ? 1 : f->rows;
  f->ld_left = hk_bidiagonal_rows(f->rows);
  f->ld_right = (f->columns + 31) & ~31u;
}

int hk_svd_batch_open(struct hk_svd_batch **out, const struct hk_svd_config *config, char *error, size_t size)
{
  *out = NULL;
  if (!config_fits(config)) {
    snprintf(error, size, "matrices have 1 to %u rows and columns, a batch 1 to 65535, and there are %u threads at most",
             HK_SVD_SIDE_MAX, THREADS_MAX);
    return -EINVAL;
  }
  struct hk_svd_batch *b = malloc(sizeof *b);
  if (!b) {
    snprintf(error, size, "no memory");
    return -ENOMEM;
  }
  svd_batch_set_up(b, config);
  struct share device = { NULL, 0 }, pinned = { NULL, 0 };
  svd_batch_lay_out(b, &device, &pinned);
  cudaError_t failed = cudaMalloc((void **)&b->device, device.taken);
  if (!failed)
    failed = cudaMallocHost((void **)&b->pinned, pinned.taken);
  const uint64_t bytes = device.taken;
  device = (struct share){ b->device, 0 };
  pinned = (struct share){ b->pinned, 0 };
  if (!failed) {
    svd_batch_lay_out(b, &device, &pinned);
    for (uint32_t i = 0; i < config->batch; i++)
      b->host.start[i] = (struct hk_qr){ .end = b->form.columns };
    failed = (cudaError_t)hk_bidiagonal_plan(&b->form);
  }
  if (!failed)
    failed = cudaStreamCreateWithFlags(&b->side, cudaStreamNonBlocking);
  if (!failed)
    failed = cudaEventCreateWithFlags(&b->reduced, cudaEventDisableTiming);
  for (uint32_t i = 0; !failed && i < ROUNDS_AT_ONCE; i++) {
    failed = cudaEventCreateWithFlags(&b->produced[i], cudaEventDisableTiming);
    if (!failed)
      failed = cudaEventCreateWithFlags(&b->applied[i], cudaEventDisableTiming);
  }
  if (failed) {
    hk_svd_batch_close(b);
    return hk_cuda_error(error, size, (int)failed, "so many matrices at a time need", bytes);
  }
  *out = b;
  return 0;
}

void hk_svd_batch_close(struct hk_svd_batch *b)
{
  if (!b)
    return;
  for (uint32_t i = 0; i < ROUNDS_AT_ONCE; i++) {
    if (b->produced[i])
      (void)cudaEventDestroy(b->produced[i]);
    if (b->applied[i])
      (void)cudaEventDestroy(b->applied[i]);
  }
  if (b->reduced)
    (void)cudaEventDestroy(b->reduced);
  if (b->side)
    (void)cudaStreamDestroy(b->side);
  (void)cudaFreeHost(b->pinned);
  (void)cudaFree(b->device);
  free(b);
}

int hk_svd_batch_bidiagonalise(struct hk_svd_batch *b, const float *a, uint32_t count, float *d, float *e, uint32_t *status,
                               struct CUstream_st *stream)
{
  if (count < 1 || count > b->config.batch)
    return -EINVAL;
  b->count = count;
  if (hk_bidiagonal_reduce(&b->form, a, count, d, e, b->status, true, stream) ||
      cudaMemcpyAsync(status, b->status, count * sizeof *status, cudaMemcpyDeviceToDevice, stream))
    return -EIO;
  return 0;
}

int hk_svd_batch_basis(struct hk_svd_batch *b, float *u, float *v, struct CUstream_st *stream)
{
  float *left = b->turned ? v : u, *right = b->turned ? u : v;
  if (left && hk_bidiagonal_form(&b->form, false, left, b->form.rows, b->count, b->status, stream))
    return -EIO;
  if (right && hk_bidiagonal_form(&b->form, true, right, b->form.columns, b->count, b->status, stream))
    return -EIO;
  return 0;
}

/* A round of the iteration on CPU threads. */
struct work {
  struct hk_svd_batch *b;
  unsigned char *rotations; /* NULL: values only */
  uint32_t count;
  atomic_uint next, unsolved;
};

static void *work_run(void *arg)
{
  struct work *w = arg;
  struct hk_svd_batch *b = w->b;
  const uint32_t k = b->form.columns;
  for (uint32_t i; (i = atomic_fetch_add(&w->next, 1)) < w->count;) {
    struct hk_rotations *out = w->rotations ? (struct hk_rotations *)(w->rotations + i * hk_qr_bytes(k)) : NULL;
    struct hk_qr *qr = &b->host.qr[i];
    if (b->host.status[i] == HK_SVD_FINE && qr->end > 0)
      hk_qr_round(qr, b->host.d + (size_t)i * k, b->host.e + (size_t)i * (k - 1), k, out);
    else if (out)
      out->n_groups = 0;
    if (b->host.status[i] == HK_SVD_FINE && qr->end > 0)
      atomic_fetch_add(&w->unsolved, 1);
  }
  return NULL;
}

/* Does the round, with this thread as well. Returns the number of matrices that need another one, or a negative errno. */
static int work_round(struct hk_svd_batch *b, unsigned char *rotations)
{
  struct work w = { .b = b, .rotations = rotations, .count = b->count };
  pthread_t thread[THREADS_MAX];
  uint32_t started = 0;
  int failed = 0;
  while (!failed && started + 1 < b->config.host_threads) {
    failed = pthread_create(&thread[started], NULL, work_run, &w);
    started += !failed;
  }
  if (!failed)
    (void)work_run(&w);
  for (uint32_t i = 0; i < started; i++)
    (void)pthread_join(thread[i], NULL);
  return failed ? -ENOMEM : (int)atomic_load(&w.unsolved);
}

/* Launches or does round r of the iteration into buffer r % ROUNDS_AT_ONCE. On the device the number of unsolved matrices is in
 * host.unsolved once `produced` has happened. */
static int produce(struct hk_svd_batch *b, uint32_t r, bool vectors)
{
  const uint32_t i = r % ROUNDS_AT_ONCE, k = b->form.columns;
  if (b->config.host_threads) {
    if (r >= ROUNDS_AT_ONCE && cudaEventSynchronize(b->applied[i]))
      return -EIO;
    const int unsolved = work_round(b, vectors ? b->host.rotations[i] : NULL);
    if (unsolved < 0)
      return unsolved;
    b->host.unsolved[i] = (uint32_t)unsolved;
    if (vectors &&
        cudaMemcpyAsync(b->rotations[i], b->host.rotations[i], b->count * hk_qr_bytes(k), cudaMemcpyHostToDevice, b->side))
      return -EIO;
  } else if ((r >= ROUNDS_AT_ONCE && cudaStreamWaitEvent(b->side, b->applied[i], 0)) ||
             cudaMemsetAsync(&b->unsolved[i], 0, sizeof *b->unsolved, b->side) ||
             hk_bidiagonal_qr(b->qr, b->d, b->e, k, vectors ? b->rotations[i] : NULL, b->count, b->status, &b->unsolved[i],
                              b->side) ||
             cudaMemcpyAsync(&b->host.unsolved[i], &b->unsolved[i], sizeof *b->unsolved, cudaMemcpyDeviceToHost, b->side)) {
    return -EIO;
  }
  return cudaEventRecord(b->produced[i], b->side) ? -EIO : 0;
}

/* Does all rounds. On the device a round is launched before it is known whether it is needed: the last one has nothing to do. */
static int iterate(struct hk_svd_batch *b, bool vectors, cudaStream_t stream)
{
  for (uint32_t r = 0;; r++) {
    const uint32_t i = r % ROUNDS_AT_ONCE;
    const int failed = produce(b, r, vectors);
    if (failed)
      return failed;
    if (cudaStreamWaitEvent(stream, b->produced[i], 0))
      return -EIO;
    if (vectors && hk_bidiagonal_rotate(&b->form, b->rotations[i], b->basis_left, b->basis_right, b->count, stream))
      return -EIO;
    if (cudaEventRecord(b->applied[i], stream))
      return -EIO;
    const uint32_t known = b->config.host_threads ? r : r - 1;
    if (r == 0 && !b->config.host_threads)
      continue;
    if (!b->config.host_threads && cudaEventSynchronize(b->produced[known % ROUNDS_AT_ONCE]))
      return -EIO;
    if (b->host.unsolved[known % ROUNDS_AT_ONCE] == 0)
      return 0;
  }
}

static int decompose(struct hk_svd_batch *b, const float *a, float *s, float *u, float *v, uint32_t *status, cudaStream_t stream)
{
  const uint32_t k = b->form.columns, count = b->count;
  const size_t values = (size_t)count * k * sizeof(float), offs = (size_t)count * (k - 1) * sizeof(float);
  if (hk_bidiagonal_reduce(&b->form, a, count, b->d, b->e, b->status, false, stream) ||
      cudaMemcpyAsync(b->qr, b->host.start, count * sizeof *b->qr, cudaMemcpyHostToDevice, stream))
    return -EIO;
  if (b->config.host_threads) {
    memcpy(b->host.qr, b->host.start, count * sizeof *b->qr);
    if (cudaMemcpyAsync(b->host.d, b->d, values, cudaMemcpyDeviceToHost, stream) ||
        cudaMemcpyAsync(b->host.e, b->e, offs, cudaMemcpyDeviceToHost, stream) ||
        cudaMemcpyAsync(b->host.status, b->status, count * sizeof *status, cudaMemcpyDeviceToHost, stream))
      return -EIO;
  }
  if (cudaEventRecord(b->reduced, stream) || cudaStreamWaitEvent(b->side, b->reduced, 0))
    return -EIO;
  if (u && (hk_bidiagonal_form(&b->form, false, b->basis_left, b->form.ld_left, count, b->status, stream) ||
            hk_bidiagonal_form(&b->form, true, b->basis_right, b->form.ld_right, count, b->status, stream)))
    return -EIO;
  if (b->config.host_threads && cudaEventSynchronize(b->reduced))
    return -EIO;
  const int failed = iterate(b, u, stream);
  if (failed)
    return failed;
  if (b->config.host_threads && (cudaMemcpyAsync(b->d, b->host.d, values, cudaMemcpyHostToDevice, stream) ||
                                 cudaMemcpyAsync(b->qr, b->host.qr, count * sizeof *b->qr, cudaMemcpyHostToDevice, stream)))
    return -EIO;
  if (hk_bidiagonal_arrange(&b->form, b->qr, b->d, b->basis_left, b->basis_right, s, b->turned ? v : u, b->turned ? u : v,
                            b->place, count, b->status, stream) ||
      cudaMemcpyAsync(status, b->status, count * sizeof *status, cudaMemcpyDeviceToDevice, stream))
    return -EIO;
  return 0;
}

int hk_svd_batch_decompose(struct hk_svd_batch *b, const float *a, uint32_t count, float *s, float *u, float *v, uint32_t *status,
                           struct CUstream_st *stream)
{
  if (count < 1 || count > b->config.batch || !u != !v || (u && !b->config.vectors))
    return -EINVAL;
  b->count = count;
  const int failed = decompose(b, a, s, u, v, status, stream);
  const cudaError_t side = cudaStreamSynchronize(b->side), main = cudaStreamSynchronize(stream);
  return failed ? failed : side || main ? -EIO : 0;
}
