/* A backend under load, as benchmarks make it: many sensors, each with a noisy signal of its own, and ticks of new points for
 * them through submit and reap like the daemon's, cut into batches, several in flight.
 *
 * What is measured is the backend and the road to it, not the making of points: the points of a round are made before its
 * clock starts, by all cores, in columns of the backend's own memory, where the daemon's stage would have put them. Nothing
 * else is spared: every tick brings every ready sensor the next point of its signal, with fresh noise and a later time, and
 * all 20 bytes of it are in columns that have not been up before.
 *
 *   hk_load_open -> hk_load_fill -> hk_load_round, hk_load_latency... -> hk_load_close
 *
 * Thread: one (but for the threads that make points, which end before a call does). */
#ifndef HK_LOAD_H
#define HK_LOAD_H

#include "cpu/backend.h"

#include <pthread.h>

#define HK_LOAD_IN_FLIGHT 4
#define HK_LOAD_STEP 1000000 /* ns between two ticks, in the data */

struct hk_load_config {
  int choice;                          /* index into hk_choices: the backend */
  const struct hk_detector *detectors; /* sensor i has number i % n_detectors; must stay */
  uint32_t n_detectors;
  uint32_t sensors;            /* 0 = 262144 with cuda, 4096 with cpu, 64 with reference; a sixteenth of that for svd */
  uint32_t batch;              /* most points of a batch; 0 = 2^20 */
  uint32_t points;             /* points of each sensor in a batch, if they find room; 0 = 1 */
  uint32_t threads;            /* of the CPU backend; 0 = one for each core */
  uint32_t device;             /* of the CUDA backend */
  uint32_t alike;              /* so many sensors in a row have the same signal, as those of one name do; 0 = 1 */
  pthread_barrier_t *together; /* NULL, or several loads, a thread each, begin their rounds together */
};

/* Columns of points, ready to be handed over. */
struct hk_load_columns {
  uint32_t *slot;
  int64_t *time;
  double *value;
};

/* Owner: the caller, who must not copy it (batches are pointed at); the fields are for reading. */
struct hk_load {
  struct hk_backend *backend;
  const struct hk_detector *detectors;
  uint32_t n_detectors;
  pthread_barrier_t *together;
  uint32_t sensors, alike, each; /* each: points of a sensor in a batch, as far as it has room */
  uint64_t need;                 /* bytes that the backend says they take */
  uint32_t room;                 /* points that can be made ahead: at least one tick of all sensors */
  struct hk_load_columns made;   /* room for `room` points */
  float *wave, *noise;           /* tables that signals are made of */
  struct hk_batch *memory[HK_LOAD_IN_FLIGHT];
  struct hk_batch batch[HK_LOAD_IN_FLIGHT]; /* with the results of memory[i], and made points for input */
  struct hk_batch *free[HK_LOAD_IN_FLIGHT];
  uint32_t n_free, in_flight;
  uint32_t capacity;               /* of a batch */
  uint32_t makers;                 /* threads that make points */
  uint32_t tick;                   /* so far */
  uint64_t points, scores, events; /* taken back so far */
};

/* What a round of whole ticks took, from the first submit to the last reap. */
struct hk_load_round {
  uint64_t scores, points;
  int64_t wall, processor; /* ns: of the clock, and of all threads of the process */
};

/* Opens the backend and adds the sensors. 0, or a negative errno with a message: when the memory does not suffice it has the
 * figures. hk_load_close is due either way. */
int hk_load_open(struct hk_load *load, const struct hk_load_config *config, char *error, size_t size);
void hk_load_close(struct hk_load *load);

/* Gives every sensor points until its memory is full and a few scores are made, up to HK_BATCH_PER_SENSOR in a batch: the first
 * thing to do. 0 or a negative errno with a message. */
int hk_load_fill(struct hk_load *load, char *error, size_t size);

/* `ticks` ticks of one new point for every sensor, 1 <= ticks <= room / sensors. As hk_load_fill. */
int hk_load_round(struct hk_load *load, uint32_t ticks, struct hk_load_round *round, char *error, size_t size);

/* Rounds of as many ticks as can be made ahead, for about `seconds`: the sums of what they took. As hk_load_fill. */
int hk_load_run(struct hk_load *load, double seconds, struct hk_load_round *sum, char *error, size_t size);

/* One tick of `ready` sensors at a time, `times` times, on sensors that lie far from each other and change from tick to
 * tick (their detector needs an interval of its own, or the time between two points of one looks like a hole): took[i] is
 * the time from the first submit to the last reap, us. As hk_load_fill. */
int hk_load_latency(struct hk_load *load, uint32_t ready, uint32_t times, double *took, char *error, size_t size);

/* Sorts n numbers and returns the one that a share of them is below; share 0.5: the middle. */
double hk_load_quantile(double *numbers, uint32_t n, double share);

/* Hankel products of a score, w^2 multiply-adds each; 0 where their number is not fixed. */
uint32_t hk_load_products(const struct hk_detector *d);

#endif
