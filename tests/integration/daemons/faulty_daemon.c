/* hankeld with a device that fails on order: for `cuda` stands the cpu backend, all its operations handed through, that does
 * what $HANKELD_FAULT says from the first batch on that has a point with the value FAULT_VALUE:
 *
 *   eio         that batch and all later ones come back with -EIO
 *   submit      submit says -EIO
 *   hang        that batch and all later ones never come back, and closing never ends
 *   hang N      the same, but the device gets over it after N seconds
 *   enomem      that batch comes back with -ENOMEM; enomem-always: and all later ones of points do
 *   einval      that batch comes back with -EINVAL
 *   block       submit does not return: what no backend may do
 *   rate N      it takes 1/N s for each point, whatever its values
 *   slow N      every batch comes back when it was asked for N times, whatever its values
 *
 * Or, with no batch having to come: `absent`: there is no device; `define`: it takes no other detectors than it began with;
 * `room N`: it has room for N sensors; `add N`: it fails at the sensor after N; `block-add`: adding a sensor does not return. The
 * memory limit of the configuration does not hold on the device. There are $HANKELD_DEVICES of it (1 when it is not set), of
 * which only that with the number $HANKELD_FAULTY (0) fails. With $HANKELD_NO_CPU set the CPU backend cannot be opened in its
 * place. */
#include "cpu/backend/engine.h"
#include "daemon/server/program.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAULT_VALUE (-666.5)
#define PLACES 4

enum fault {
  NONE,
  EIO_STATUS,
  EIO_SUBMIT,
  HANG,
  ENOMEM_ONCE,
  ENOMEM_ALWAYS,
  EINVAL_ONCE,
  BLOCK,
  RATE,
  SLOW,
  ABSENT,
  ROOM,
  ADD,
  BLOCK_ADD,
  DEFINE
};

struct faulty {
  struct hk_backend backend;
  struct hk_backend *inner;
  enum fault fault;
  unsigned number; /* N */
  bool broken;     /* the value has come */
  struct {
    struct hk_batch *batch;
    int status; /* not 0: the inner backend does not have it */
    unsigned asked;
    double due;     /* on the monotonic clock */
  } flight[PLACES]; /* ring, oldest first */
  unsigned first, in_flight, sensors;
  double over; /* when a hang is, on the monotonic clock; 0 = never */
  double idle; /* when it has done all it was given */
  void (*ready)(void *arg);
  void *arg;
  pthread_t ticker;  /* RATE: says ready every millisecond, */
  atomic_bool ended; /* until then */
};

static struct faulty *from(struct hk_backend *b)
{
  return (struct faulty *)b;
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool ordered(const struct hk_batch *batch)
{
  for (uint32_t i = 0; batch->kind == HK_BATCH_POINTS && i < batch->n; i++)
    if (batch->value[i] == FAULT_VALUE)
      return true;
  return false;
}

/* The status that a batch will have from us; 0: it is the inner backend's. */
static int status_of(struct faulty *f, const struct hk_batch *batch)
{
  const bool now_is_it = ordered(batch);
  if (now_is_it && !f->broken) {
    f->broken = true;
    f->over = f->number ? now() + f->number : 0;
  }
  switch (f->fault) {
  case EIO_STATUS:
  case HANG:
    return f->broken ? -EIO : 0;
  case ENOMEM_ONCE:
    return now_is_it ? -ENOMEM : 0;
  case ENOMEM_ALWAYS:
    return f->broken && batch->kind == HK_BATCH_POINTS ? -ENOMEM : 0;
  case EINVAL_ONCE:
    return now_is_it ? -EINVAL : 0;
  default:
    return 0;
  }
}

static int faulty_submit(struct hk_backend *b, struct hk_batch *batch)
{
  struct faulty *f = from(b);
  if (f->in_flight == PLACES)
    return HK_AGAIN;
  const int status = status_of(f, batch);
  if (f->broken && f->fault == EIO_SUBMIT)
    return -EIO;
  while (f->broken && f->fault == BLOCK)
    pause();
  const int taken = status ? 0 : f->inner->ops->submit(f->inner, batch);
  if (taken != 0)
    return taken;
  const unsigned place = (f->first + f->in_flight++) % PLACES;
  f->flight[place].batch = batch;
  f->flight[place].status = status;
  f->flight[place].asked = 0;
  if (f->fault == RATE && batch->kind == HK_BATCH_POINTS) {
    f->idle = (f->idle > now() ? f->idle : now()) + (double)batch->n / f->number;
    f->flight[place].due = f->idle;
  }
  if (status && f->fault != HANG)
    f->ready(f->arg);
  return 0;
}

static bool hangs(const struct faulty *f)
{
  return f->fault == HANG && f->broken && (f->over == 0 || now() < f->over);
}

static struct hk_batch *faulty_reap(struct hk_backend *b)
{
  struct faulty *f = from(b);
  if (f->in_flight == 0)
    return NULL;
  struct hk_batch *batch = f->flight[f->first].batch;
  if (f->fault == SLOW && ++f->flight[f->first].asked < f->number)
    return NULL;
  if (f->fault == RATE && f->flight[f->first].due > now())
    return NULL;
  if (f->flight[f->first].status) {
    if (hangs(f))
      return NULL;
    batch->status = f->flight[f->first].status;
  } else if (!f->inner->ops->reap(f->inner)) {
    return NULL;
  }
  f->first = (f->first + 1) % PLACES;
  f->in_flight--;
  return batch;
}

static void faulty_wait(struct hk_backend *b)
{
  struct faulty *f = from(b);
  if (f->in_flight > 0 && !f->flight[f->first].status) {
    f->inner->ops->wait(f->inner);
    return;
  }
  while (f->in_flight > 0 && hangs(f))
    sleep(1);
  f->ready(f->arg); /* as late as a device's own thread might call it */
}

static uint64_t faulty_need(const struct hk_backend *b, uint32_t detector, uint64_t sensors)
{
  const struct hk_backend *inner = ((const struct faulty *)b)->inner;
  return inner->ops->need(inner, detector, sensors);
}

static int faulty_add(struct hk_backend *b, uint32_t slot, uint32_t detector, uint64_t seed)
{
  struct faulty *f = from(b);
  while (f->fault == BLOCK_ADD)
    pause();
  if (f->fault == ROOM && f->sensors == f->number)
    return HK_FULL;
  if (f->fault == ADD && f->sensors == f->number) {
    f->broken = true;
    return -EIO;
  }
  f->sensors++;
  return f->inner->ops->add(f->inner, slot, detector, seed);
}

static int faulty_define(struct hk_backend *b, const struct hk_definition *definitions, uint32_t n, char *error, size_t size)
{
  if (from(b)->fault == DEFINE) {
    snprintf(error, size, "no memory for another detector, on order");
    return -ENOMEM;
  }
  return from(b)->inner->ops->define(from(b)->inner, definitions, n, error, size);
}

static void faulty_limit(struct hk_backend *b, uint64_t memory)
{
  from(b)->inner->ops->limit(from(b)->inner, memory);
}

static void faulty_remove(struct hk_backend *b, uint32_t slot)
{
  from(b)->sensors--;
  from(b)->inner->ops->remove(from(b)->inner, slot);
}

static int64_t faulty_export(struct hk_backend *b, uint32_t slot, void *state, size_t size)
{
  return from(b)->inner->ops->export_(from(b)->inner, slot, state, size);
}

static int faulty_import(struct hk_backend *b, uint32_t slot, const void *state, size_t size)
{
  return from(b)->inner->ops->import_(from(b)->inner, slot, state, size);
}

static void *faulty_alloc(struct hk_backend *b, size_t bytes)
{
  return from(b)->inner->ops->alloc(from(b)->inner, bytes);
}

static void faulty_free(struct hk_backend *b, void *memory)
{
  from(b)->inner->ops->free(from(b)->inner, memory);
}

static void *tick(void *arg)
{
  struct faulty *f = arg;
  for (; !f->ended; usleep(1000))
    f->ready(f->arg);
  return NULL;
}

static void faulty_close(struct hk_backend *b)
{
  from(b)->ended = true;
  if (from(b)->fault == RATE)
    pthread_join(from(b)->ticker, NULL);
  from(b)->inner->ops->close(from(b)->inner);
  free(b);
}

static const char *faulty_failure(struct hk_backend *b)
{
  return from(b)->fault == ROOM ? "4096 more bytes do not fit on the device" : from(b)->broken ? "fault on order" : "";
}

static enum fault read_order(unsigned *number)
{
  static const char *const words[] = { "",     "eio",  "submit", "hang", "enomem", "enomem-always", "einval", "block",
                                       "rate", "slow", "absent", "room", "add",    "block-add",     "define" };
  const char *order = getenv("HANKELD_FAULT");
  char word[16] = "";
  *number = 0;
  if (order && sscanf(order, "%15s %u", word, number) > 0)
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
      if (strcmp(words[i], word) == 0)
        return (enum fault)i;
  return NONE;
}

static uint32_t number_of(const char *variable, uint32_t standard)
{
  const char *text = getenv(variable);
  return text ? (uint32_t)atoi(text) : standard;
}

static uint32_t devices(void)
{
  return number_of("HANKELD_DEVICES", 1);
}

static int faulty_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size)
{
  static const struct hk_backend_ops ops = {
    .name = "cuda",
    .need = faulty_need,
    .add = faulty_add,
    .define = faulty_define,
    .limit = faulty_limit,
    .remove = faulty_remove,
    .submit = faulty_submit,
    .reap = faulty_reap,
    .wait = faulty_wait,
    .export_ = faulty_export,
    .import_ = faulty_import,
    .image_most = hk_engine_image_most,
    .state_of = hk_engine_state_of,
    .alloc = faulty_alloc,
    .free = faulty_free,
    .close = faulty_close,
  };
  struct faulty *f = calloc(1, sizeof *f);
  struct hk_backend_config inner = *config;
  if (!f)
    return -ENOMEM;
  f->backend.ops = &ops;
  f->fault = number_of("HANKELD_FAULTY", 0) == config->device ? read_order(&f->number) : NONE;
  f->ready = config->ready;
  f->arg = config->ready_arg;
  inner.memory = 0;
  int status = -ENODEV;
  if (f->fault == ABSENT)
    snprintf(error, size, "no device, on order");
  else
    status = hk_cpu_open(&f->inner, &inner, error, size);
  if (status != 0) {
    free(f);
    return status;
  }
  if (f->fault == RATE && pthread_create(&f->ticker, NULL, tick, f) != 0)
    abort();
  *out = &f->backend;
  return 0;
}

/* The CPU that is to go on has no memory. */
static int cpu_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size)
{
  if (!getenv("HANKELD_NO_CPU"))
    return hk_cpu_open(out, config, error, size);
  snprintf(error, size, "no memory, on order");
  return -ENOMEM;
}

int main(int argc, char **argv)
{
  const struct hk_backend_kind kinds[] = {
    [HK_BACKEND_CPU] = { .open = cpu_open, .batch = hk_backend_kinds[HK_BACKEND_CPU].batch },
    [HK_BACKEND_CUDA] = { .open = faulty_open, .failure = faulty_failure, .devices = devices, .batch = 4096, .device = true },
    [HK_BACKEND_REFERENCE] = hk_backend_kinds[HK_BACKEND_REFERENCE],
  };
  return hk_program(argc, argv, kinds);
}
