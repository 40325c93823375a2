/* Measures the speed of pictures on the GPU: through the bus, resident, compared with NPP if it is found, and as the daemon
 * computes them; and on one thread of the host, with its vector code and with naive loops.
 *
 * bench_pictures [SIDE [host|resident]]: by default pictures of 512 x 512 with tiles of 32. `host`, `resident`: only
 * these. Times are medians of some runs, with the least and the greatest. Without a GPU the program reports that and
 * exits with 77. The program looks for NPP at run time, by its names in CUDA 13, 12 and 11. NPP gets all pictures of a batch
 * as one tall picture, which is fastest for it, and computes the greatest value, mean and deviation of that picture only
 * instead of those of each tile. */
#include "gpu/picture/pictures_gpu.h"
#include "proto/wire/picture.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SKIPPED 77
#define RUNS 7u
#define TILE 32u
#define BATCH 64u
#define PLACES 4u

static uint64_t seed = 1;
static uint32_t side = 512;
static double host_us[3]; /* by median / 2: a picture, one thread */
static const uint32_t pixel_bytes[] = { 1, 2, 2, 4 };
static const char *const kinds[] = { "u8", "u16", "f16", "f32" }, *const subtracts[] = { "box", "laplacian", "nothing" };

static void check(const char *what, int code)
{
  if (code == 0)
    return;
  fprintf(stderr, "bench_pictures: %s: %d\n", what, code);
  exit(1);
}

static double now_us(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static uint32_t any(void)
{
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed >> 32);
}

static int by_value(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double middle(double t[RUNS])
{
  qsort(t, RUNS, sizeof *t, by_value);
  return t[RUNS / 2];
}

/* Writes a thermal scene in counts, with noise. */
static void fill(void *to, uint32_t kind, uint32_t height)
{
  for (uint32_t r = 0; r < height; r++)
    for (uint32_t i = 0; i < side; i++) {
      const size_t at = (size_t)r * side + i;
      const double scene = 30000 + 800 * sin(r / 19.0) * cos(i / 27.0) + any() % 200;
      if (kind == HK_PICTURE_U8)
        ((uint8_t *)to)[at] = (uint8_t)(scene / 256);
      else if (kind == HK_PICTURE_F32)
        ((float *)to)[at] = (float)(scene * 0.01);
      else
        ((uint16_t *)to)[at] = kind == HK_PICTURE_F16 ? (uint16_t)(0x5c00 + any() % 200) : (uint16_t)scene;
    }
}

/* --- the host ------------------------------------------------------------------------------------------------------------ */

/* A picture by loops: the values around a pixel sorted by insertion, 225 adds for its mean, and sums of tiles. */
static double naive(const uint16_t *x, uint32_t median, float *y, struct hk_picture_tile *out)
{
  const double begin = now_us();
  const int32_t reach = (int32_t)median / 2, n = (int32_t)side;
  for (int32_t r = 0; r < n; r++)
    for (int32_t i = 0; i < n; i++) {
      float sorted[25];
      int32_t k = 0;
      for (int32_t dr = -reach; dr <= reach; dr++)
        for (int32_t di = -reach; di <= reach; di++, k++) {
          const int32_t a = r + dr < 0 ? 0 : r + dr >= n ? n - 1 : r + dr, b = i + di < 0 ? 0 : i + di >= n ? n - 1 : i + di;
          const float v = x[a * n + b];
          int32_t at = k;
          for (; at > 0 && sorted[at - 1] > v; at--)
            sorted[at] = sorted[at - 1];
          sorted[at] = v;
        }
      y[r * n + i] = sorted[k / 2];
    }
  memset(out, 0, (size_t)(side / TILE) * (side / TILE) * sizeof *out);
  for (int32_t r = 0; r < n; r++)
    for (int32_t i = 0; i < n; i++) {
      struct hk_picture_tile *t = &out[r / (int32_t)TILE * (n / (int32_t)TILE) + i / (int32_t)TILE];
      float sum = 0;
      for (int32_t dr = -7; dr <= 7; dr++)
        for (int32_t di = -7; di <= 7; di++) {
          const int32_t a = r + dr < 0 ? 0 : r + dr >= n ? n - 1 : r + dr, b = i + di < 0 ? 0 : i + di >= n ? n - 1 : i + di;
          sum += y[a * n + b];
        }
      const double h = (double)(y[r * n + i] - sum / 225);
      t->most = t->n++ == 0 || h > t->most ? h : t->most;
      t->mean += h;
      t->spread += h * h;
    }
  return now_us() - begin;
}

static void time_host(uint32_t median)
{
  const struct hk_picture_rule rule = { median, HK_PICTURE_BOX, TILE };
  struct hk_picture *p;
  uint16_t *x = malloc((size_t)side * side * sizeof *x);
  float *y = malloc((size_t)side * side * sizeof *y);
  struct hk_picture_tile *out = malloc((size_t)(side / TILE) * (side / TILE) * sizeof *out);
  double t[RUNS], slow[RUNS];
  check("memory", x && y && out ? hk_picture_new(&p, &rule, side, side) : -1);
  fill(x, HK_PICTURE_U16, side);
  for (uint32_t run = 0; run < RUNS; run++) {
    const double begin = now_us();
    for (uint32_t k = 0; k < 16; k++) {
      for (uint32_t r = 0; r < side; r++) {
        float *row = hk_picture_row(p, r);
        for (uint32_t i = 0; i < side; i++)
          row[i] = x[(size_t)r * side + i];
      }
      hk_picture_tiles(p, out);
    }
    t[run] = (now_us() - begin) / 16;
    slow[run] = naive(x, median, y, out);
  }
  host_us[median / 2] = middle(t);
  (void)middle(slow);
  printf(
      "  one thread of the host, median %u x %u: vectors %.0f us a picture (%.0f to %.0f); naive loops %.0f us (%.0f to %.0f)\n",
      median, median, t[RUNS / 2], t[0], t[RUNS - 1], slow[RUNS / 2], slow[0], slow[RUNS - 1]);
  fflush(stdout);
  hk_picture_free(p);
  free(x);
  free(y);
  free(out);
}

/* --- the device ---------------------------------------------------------------------------------------------------------- */

static struct hk_pictures_gpu *open_pictures(uint32_t median, uint32_t subtract, uint32_t places, uint32_t at_once,
                                             uint32_t pixel)
{
  const struct hk_pictures_size size = { { median, subtract, TILE }, side, side, places, at_once, pixel };
  struct hk_pictures_gpu *g;
  char error[256];
  const int status = hk_pictures_gpu_open(&g, &size, 0, error, sizeof error);
  if (status != 0) {
    printf("skipped: %s\n", error);
    exit(status == -19 ? SKIPPED : 1);
  }
  return g;
}

static void fill_places(struct hk_pictures_gpu *g, uint32_t places, uint32_t kind, uint32_t n)
{
  for (uint32_t place = 0; place < places; place++) {
    for (uint32_t k = 0; k < n; k++) {
      void *to = hk_pictures_gpu_pixels(g, place, kind, k), *first = hk_pictures_gpu_pixels(g, 0, kind, 0);
      if (to == first)
        fill(to, kind, side);
      else
        memcpy(to, first, (size_t)side * side * pixel_bytes[kind]);
    }
    check("begin", hk_pictures_gpu_begin(g, place, kind, n));
    check("wait", hk_pictures_gpu_wait(g, place));
  }
}

/* Pictures that are there already; batches of several places in turn, so that the cache does not have them all. */
static double time_resident(uint32_t median, uint32_t subtract, uint32_t kind, uint32_t n)
{
  const uint32_t places = n < BATCH ? 1 : PLACES, again = n < BATCH ? 200 : 40;
  struct hk_pictures_gpu *g = open_pictures(median, subtract, places, n,
                                            kind == HK_PICTURE_U8    ? 1
                                            : kind == HK_PICTURE_F32 ? 4
                                                                     : 2);
  double t[RUNS];
  fill_places(g, places, kind, n);
  for (uint32_t run = 0; run < RUNS; run++) {
    const double begin = now_us();
    for (uint32_t k = 0; k < again; k++) { /* one after the other, as on one stream */
      check("again", hk_pictures_gpu_again(g, k % places, kind, n));
      if (k % places == places - 1)
        for (uint32_t place = 0; place < places; place++)
          check("wait", hk_pictures_gpu_wait(g, place));
    }
    t[run] = (now_us() - begin) / again / n;
  }
  const double us = middle(t), pixels = (double)side * side;
  printf("  resident, %s, median %u, %s, %3u at once: %.3f us a picture (%.3f to %.3f), %.0f G pixels/s, %.0f times one thread\n",
         kinds[kind], median, subtracts[subtract], n, us, t[0], t[RUNS - 1], pixels / us * 1e-3,
         median > 0 && subtract == HK_PICTURE_BOX ? host_us[median / 2] / us : 0.0);
  fflush(stdout);
  hk_pictures_gpu_close(g);
  return us;
}

/* GB/s of the bus, from page-locked memory. */
static double copy_rate(void)
{
  const size_t bytes = (size_t)64 << 20;
  void *here, *there;
  double t[RUNS];
  check("cudaMallocHost", (int)cudaMallocHost(&here, bytes));
  check("cudaMalloc", (int)cudaMalloc(&there, bytes));
  memset(here, 1, bytes);
  for (uint32_t run = 0; run < RUNS; run++) {
    const double begin = now_us();
    for (uint32_t k = 0; k < 8; k++)
      check("copy", (int)cudaMemcpyAsync(there, here, bytes, cudaMemcpyHostToDevice, NULL));
    check("copy", (int)cudaStreamSynchronize(NULL));
    t[run] = (now_us() - begin) / 8;
  }
  const double rate = (double)bytes / middle(t) * 1e-3;
  printf("  the bus alone: %.1f GB/s; so at most %.0f pictures/s of u8, %.0f of u16 and f16, %.0f of f32\n", rate,
         rate * 1e9 / (side * (double)side), rate * 1e9 / (2.0 * side * side), rate * 1e9 / (4.0 * side * side));
  check("cudaFree", (int)cudaFree(there));
  check("cudaFreeHost", (int)cudaFreeHost(here));
  return rate;
}

/* Pixels from the host, tiles back, batches of several places at once. */
static void time_bus(uint32_t median, uint32_t kind, uint32_t places, uint32_t n, double rate)
{
  const uint32_t rounds = 1 + 3000 / n / places, pixel = pixel_bytes[kind];
  struct hk_pictures_gpu *g = open_pictures(median, HK_PICTURE_BOX, places, n, pixel);
  double t[RUNS], sum = 0;
  fill_places(g, places, kind, n);
  for (uint32_t run = 0; run < RUNS; run++) {
    const double begin = now_us();
    for (uint32_t k = 0; k < rounds * places; k++) {
      check("wait", hk_pictures_gpu_wait(g, k % places));
      sum += hk_pictures_gpu_tiles(g, k % places, n - 1)->most;
      check("begin", hk_pictures_gpu_begin(g, k % places, kind, n));
    }
    for (uint32_t place = 0; place < places; place++)
      check("wait", hk_pictures_gpu_wait(g, place));
    t[run] = (now_us() - begin) / rounds / places / n;
  }
  const double us = middle(t), bytes = (double)pixel * side * side;
  printf("  through the bus, %s, median %u, %u places of %2u: %.0f pictures/s (%.0f to %.0f), %.1f GB/s, %.0f %% of the bus; "
         "%.0f times "
         "one thread%s\n",
         kinds[kind], median, places, n, 1e6 / us, 1e6 / t[RUNS - 1], 1e6 / t[0], bytes / us * 1e-3,
         100 * bytes / us * 1e-3 / rate, host_us[median / 2] / us, sum == 0 ? " (nothing came back)" : "");
  fflush(stdout);
  hk_pictures_gpu_close(g);
}

/* One picture at a time: pixels copied from a message, and waited for; and the host's time for the same. */
static void time_daemon(uint32_t of)
{
  const uint32_t whole = side;
  const struct hk_picture_rule rule = { 3, HK_PICTURE_BOX, TILE };
  double t[RUNS], host[RUNS];
  struct hk_picture *p;
  side = of;
  struct hk_pictures_gpu *g = open_pictures(3, HK_PICTURE_BOX, 1, 1, 2);
  uint16_t *x = malloc((size_t)of * of * sizeof *x);
  struct hk_picture_tile *out = malloc((size_t)hk_picture_tiles_over(of, TILE) * hk_picture_tiles_over(of, TILE) * sizeof *out);
  check("memory", x && out ? hk_picture_new(&p, &rule, of, of) : -1);
  fill(x, HK_PICTURE_U16, of);
  for (uint32_t run = 0; run < RUNS; run++) {
    const uint32_t again = of > 256 ? 20 : 200;
    double begin = now_us();
    for (uint32_t k = 0; k < again; k++) {
      memcpy(hk_pictures_gpu_pixels(g, 0, HK_PICTURE_U16, 0), x, (size_t)of * of * sizeof *x);
      check("begin", hk_pictures_gpu_begin(g, 0, HK_PICTURE_U16, 1));
      check("wait", hk_pictures_gpu_wait(g, 0));
    }
    t[run] = (now_us() - begin) / again;
    begin = now_us();
    for (uint32_t k = 0; k < again; k++) {
      for (uint32_t r = 0; r < of; r++)
        for (uint32_t i = 0; i < of; i++)
          hk_picture_row(p, r)[i] = x[(size_t)r * of + i];
      hk_picture_tiles(p, out);
    }
    host[run] = (now_us() - begin) / again;
  }
  const double us = middle(t), host_takes = middle(host);
  printf("  one at a time, %4u x %4u: %.1f us (%.1f to %.1f); one thread %.1f us: %.1f times\n", of, of, us, t[0], t[RUNS - 1],
         host_takes, host_takes / us);
  hk_picture_free(p);
  hk_pictures_gpu_close(g);
  free(x);
  free(out);
  side = whole;
}

/* --- NPP ----------------------------------------------------------------------------------------------------------------- */

struct npp_size {
  int width, height;
};
struct npp_point {
  int x, y;
};
static void *npp_function(const char *library, const char *name)
{
  static const char *const versions[] = { "13", "12", "11" };
  char path[64];
  for (size_t k = 0; k < sizeof versions / sizeof *versions; k++) {
    snprintf(path, sizeof path, "libnpp%s.so.%s", library, versions[k]);
    void *lib = dlopen(path, RTLD_NOW);
    if (lib && dlsym(lib, name))
      return dlsym(lib, name);
  }
  printf("  NPP: %s of libnpp%s is not here\n", name, library);
  return NULL;
}

#define NPP(type, library, name) ((type)(uintptr_t)npp_function(library, name))

struct npp {
  int (*median)(const uint16_t *, int, uint16_t *, int, struct npp_size, struct npp_size, struct npp_point, uint8_t *);
  int (*median_buffer)(struct npp_size, struct npp_size, uint32_t *);
  int (*widen)(const uint16_t *, int, float *, int, struct npp_size);
  int (*box)(const float *, int, float *, int, struct npp_size, struct npp_size, struct npp_point);
  int (*less)(const float *, int, const float *, int, float *, int, struct npp_size);
  int (*most)(const float *, int, struct npp_size, uint8_t *, float *);
  int (*most_buffer)(struct npp_size, int *);
  int (*mean)(const float *, int, struct npp_size, uint8_t *, double *, double *);
  int (*mean_buffer)(struct npp_size, int *);
};

static bool find_npp(struct npp *n)
{
  n->median = NPP(__typeof__(n->median), "if", "nppiFilterMedian_16u_C1R");
  n->median_buffer = NPP(__typeof__(n->median_buffer), "if", "nppiFilterMedianGetBufferSize_16u_C1R");
  n->widen = NPP(__typeof__(n->widen), "idei", "nppiConvert_16u32f_C1R");
  n->box = NPP(__typeof__(n->box), "if", "nppiFilterBox_32f_C1R");
  n->less = NPP(__typeof__(n->less), "ial", "nppiSub_32f_C1R");
  n->most = NPP(__typeof__(n->most), "ist", "nppiMax_32f_C1R");
  n->most_buffer = NPP(__typeof__(n->most_buffer), "ist", "nppiMaxGetBufferHostSize_32f_C1R");
  n->mean = NPP(__typeof__(n->mean), "ist", "nppiMean_StdDev_32f_C1R");
  n->mean_buffer = NPP(__typeof__(n->mean_buffer), "ist", "nppiMeanStdDevGetBufferHostSize_32f_C1R");
  return n->median && n->median_buffer && n->widen && n->box && n->less;
}

#define MARGIN 64 /* around a plane: NPP reads beyond the edges; rows are aligned */
#define STEPS 6u

struct npp_planes {
  uint16_t *x, *y;
  float *f, *g, *h;
  uint8_t *buffer;
  double *result;
  bool sums; /* the greatest and the mean can be had */
};

static void *on_device(size_t bytes)
{
  void *memory;
  check("cudaMalloc", (int)cudaMalloc(&memory, bytes));
  return memory;
}

static struct npp_planes npp_planes(const struct npp *n, struct npp_size roi, struct npp_size mask)
{
  const size_t pixels = (size_t)(roi.width + MARGIN) * (size_t)(roi.height + MARGIN);
  uint32_t work = 0;
  int most = 0, mean = 0;
  struct npp_planes p = { .sums = n->most && n->mean && n->most_buffer && n->mean_buffer };
  check("buffer", n->median_buffer(roi, mask, &work));
  if (p.sums)
    check("buffer", n->most_buffer(roi, &most) + n->mean_buffer(roi, &mean));
  p.x = on_device(2 * pixels);
  p.y = on_device(2 * pixels);
  p.f = on_device(4 * pixels);
  p.g = on_device(4 * pixels);
  p.h = on_device(4 * pixels);
  p.buffer = on_device(work + (size_t)most + (size_t)mean + 4096);
  p.result = on_device(64);
  uint16_t *host = malloc(2 * pixels);
  check("memory", host ? 0 : -1);
  for (size_t k = 0; k < pixels; k++)
    host[k] = (uint16_t)(30000 + any() % 1800);
  check("copy", (int)cudaMemcpy(p.x, host, 2 * pixels, cudaMemcpyHostToDevice));
  check("copy", (int)cudaMemset(p.y, 1, 2 * pixels));
  free(host);
  return p;
}

static int npp_step(const struct npp *n, const struct npp_planes *p, uint32_t step, struct npp_size roi, uint32_t median)
{
  const struct npp_size mask = { (int)median, (int)median }, box = { 15, 15 };
  const struct npp_point at = { (int)median / 2, (int)median / 2 }, at_box = { 7, 7 };
  const int wide = roi.width + MARGIN;
  const size_t first = (size_t)wide * (MARGIN / 2) + MARGIN / 2;
  switch (step) {
  case 0:
    return n->median(p->x + first, 2 * wide, p->y + first, 2 * wide, roi, mask, at, p->buffer);
  case 1:
    return n->widen(p->y + first, 2 * wide, p->f + first, 4 * wide, roi);
  case 2:
    return n->box(p->f + first, 4 * wide, p->g + first, 4 * wide, roi, box, at_box);
  case 3:
    return n->less(p->g + first, 4 * wide, p->f + first, 4 * wide, p->h + first, 4 * wide, roi);
  case 4:
    return p->sums ? n->most(p->h + first, 4 * wide, roi, p->buffer, (float *)(void *)p->result) : 0;
  default:
    return p->sums ? n->mean(p->h + first, 4 * wide, roi, p->buffer, p->result + 1, p->result + 2) : 0;
  }
}

static void time_npp(const struct npp *n, uint32_t median, double ours)
{
  static const char *const steps[STEPS] = { "median", "to float", "box", "difference", "greatest", "mean and deviation" };
  const struct npp_size roi = { (int)side, (int)(side * BATCH) }, mask = { (int)median, (int)median };
  struct npp_planes p = npp_planes(n, roi, mask);
  double t[STEPS][RUNS], all[RUNS] = { 0 };
  for (uint32_t run = 0; run < RUNS + 1; run++)
    for (uint32_t step = 0; step < STEPS; step++) {
      const double begin = now_us();
      for (uint32_t k = 0; k < 10; k++)
        check(steps[step], npp_step(n, &p, step, roi, median));
      check("NPP", (int)cudaDeviceSynchronize());
      if (run == 0) /* its modules are loaded */
        continue;
      t[step][run - 1] = (now_us() - begin) / 10 / BATCH;
      all[run - 1] += t[step][run - 1];
    }
  const double us = middle(all);
  printf("  NPP, u16, median %u, %u pictures as one:", median, BATCH);
  for (uint32_t step = 0; step < STEPS; step++)
    printf(" %s %.3f us,", steps[step], middle(t[step]));
  printf(" all %.3f us a picture (%.3f to %.3f): %.1f times ours\n", us, all[0], all[RUNS - 1], us / ours);
  fflush(stdout);
  void *const memory[] = { p.x, p.y, p.f, p.g, p.h, p.buffer, p.result };
  for (size_t k = 0; k < sizeof memory / sizeof *memory; k++)
    check("cudaFree", (int)cudaFree(memory[k]));
}

static void time_device(bool only_resident)
{
  static const uint32_t sides[] = { 16, 32, 64, 96, 128, 256, 512, 1024 };
  double ours[3] = { 0 };
  struct npp npp;
  hk_pictures_gpu_close(open_pictures(3, HK_PICTURE_BOX, 1, 1, 2));
  const double rate = copy_rate();
  for (uint32_t n = 1; n <= BATCH; n *= 8)
    for (uint32_t median = 3; median <= 5; median += 2)
      ours[median / 2] = time_resident(median, HK_PICTURE_BOX, HK_PICTURE_U16, n);
  if (only_resident)
    return;
  for (uint32_t kind = 0; kind < 4; kind++)
    for (uint32_t median = 0; median <= 5; median += median ? 2 : 3)
      for (uint32_t subtract = HK_PICTURE_BOX; subtract <= HK_PICTURE_NOTHING; subtract++)
        (void)time_resident(median, subtract, kind, BATCH);
  if (find_npp(&npp))
    for (uint32_t median = 3; median <= 5; median += 2)
      time_npp(&npp, median, ours[median / 2]);
  for (uint32_t kind = 0; kind < 4; kind++)
    for (uint32_t median = 3; median <= 5; median += 2)
      time_bus(median, kind, PLACES, BATCH, rate);
  for (uint32_t n = 1; n <= BATCH; n *= 8)
    for (uint32_t places = 1; places <= PLACES; places *= 2)
      time_bus(3, HK_PICTURE_U16, places, n, rate);
  for (size_t k = 0; k < sizeof sides / sizeof *sides; k++)
    time_daemon(sides[k]);
}

int main(int n_args, char **args)
{
  side = n_args > 1 ? (uint32_t)strtoul(args[1], NULL, 10) : side;
  const bool only_host = n_args > 2 && strcmp(args[2], "host") == 0,
             only_resident = n_args > 2 && strcmp(args[2], "resident") == 0;
  if (side < TILE || side % TILE != 0 || side > HK_PICTURE_PIXELS_MAX || n_args > 3 ||
      (n_args == 3 && !only_host && !only_resident)) {
    fprintf(stderr, "usage: bench_pictures [SIDE [host|resident]], a multiple of %u\n", TILE);
    return 2;
  }
  printf("pictures of %u x %u, tiles of %u x %u; a picture is %u bytes of u8, %u of u16 and f16, %u of f32\n", side, side, TILE,
         TILE, side * side, 2 * side * side, 4 * side * side);
  for (uint32_t median = 3; median <= 5 && !only_resident; median += 2)
    time_host(median);
  if (!only_host)
    time_device(only_resident);
  return 0;
}
