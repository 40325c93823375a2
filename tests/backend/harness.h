/* Feeds backends and collects their results. All functions end the program (with a message) if something fails that
 * is not under test: no memory, a batch out of order. */
#ifndef HK_TEST_HARNESS_H
#define HK_TEST_HARNESS_H

#include "cpu/backend.h"
#include "tests/backend/signals.h"

#include <stdbool.h>

/* A way to open a backend. */
struct backend_kind {
  const char *name;
  int (*open)(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size);
  uint32_t threads, blocks; /* as in struct hk_backend_config */
};

/* Points of several sensors in the order in which they are fed. */
struct points {
  uint32_t n, slots; /* slots 0..slots-1 */
  uint32_t *slot;
  int64_t *time;
  double *value;
};

/* The results, aligned with the points. Events have the index of their point in `points`. */
struct results {
  float *score;
  uint8_t *state;
  struct hk_event *event;
  uint32_t n_events;
};

/* The backend of that name, or NULL. cpu has two threads. */
const struct backend_kind *backend_kind(const char *name);

/* Whether the backend runs on this machine: there may be no GPU, and HANKELD_KERNELS may ask for instructions that are missing.
 * If not, the function prints a skipped test in TAP, and the program may end with 0. */
bool backend_present(const struct backend_kind *kind);

/* How much of a test: BRIEF has less, for slow machines and sanitizers; SANITIZE is least, for those that slow every launch down.
 */
enum form { WHOLE, BRIEF, SANITIZE };

/* For main: the backend that the arguments name, `NAME BACKEND`, with `form` not NULL also `NAME BACKEND brief|sanitize`. NULL,
 * after a message: the program ends with *code, 0 where the backend is not present, 2 where the arguments are wrong. */
const struct backend_kind *backend_asked(int argc, char **argv, enum form *form, int *code);

/* The series of n sensors, sensor i being slot i, interleaved by chance; the order within a sensor is kept. */
struct points points_mix(const struct series *series, uint32_t n, uint64_t seed);
/* The same; the series are freed. */
struct points points_of(struct series *series, uint32_t n, uint64_t seed);
void points_free(struct points *p);

/* A detector from the argument of --detector; fails the test if it is invalid. */
struct hk_detector detector_parsed(const char *text);

struct results results_new(uint32_t n);
void results_free(struct results *r);

/* Opens with detectors and room for `sensors`; fails the test when that fails. */
struct hk_backend *backend_open(const struct backend_kind *kind, const struct hk_detector *detectors, uint32_t n,
                                uint32_t sensors);

/* Adds a sensor named "s<seed>"; fails the test when that is refused. */
void sensor_add(struct hk_backend *b, uint32_t slot, uint32_t detector, uint64_t seed);
uint64_t sensor_seed(uint64_t seed);

/* A CPU backend whose sensors, one a series and number i under detector i % n, have taken all points of the series but the last
 * `rest` of each; the series have only these from now on. Where every score takes long: states to go on with. */
struct hk_backend *backend_filled(const struct hk_detector *detectors, uint32_t n, struct series *series, uint32_t sensors,
                                  uint32_t rest);

/* Copies the state of sensor `slot` of one backend to sensor `to_slot` of another, which is bound to a detector of the same kind.
 */
void sensor_copy(struct hk_backend *from, uint32_t slot, struct hk_backend *to, uint32_t to_slot);

/* Feeds points from..to-1 in batches of at most `cut` points, several in flight. random != 0: batches of random sizes up to
 * cut. No batch has over HK_BATCH_PER_SENSOR points of a sensor. Results land at the points' places. */
void feed(struct hk_backend *b, const struct points *p, uint32_t from, uint32_t to, uint32_t cut, uint64_t random,
          struct results *out);

/* Whether two events are equal bit for bit, except for the indices of their points and their slots. */
bool event_same(const struct hk_event *a, const struct hk_event *b);

/* Fails the test unless the results of points from..to-1 and all events are the same bit for bit. */
void results_same(const struct results *a, const struct results *b, const struct points *p, const char *what);

/* What the tests of conformance compare: sensors of several detectors, number i under detector i % detectors, their points, and
 * the results. */
struct conformance {
  const struct hk_detector *detector;
  uint32_t detectors, sensors;
  struct points points;
  struct hk_backend *filled; /* has the states of the sensors before their points; NULL: they are new */
  struct results expected;   /* of large batches and the kind's own number of threads */
};

/* Opens a backend with all sensors; sensor i has slot `last - i`, or i if last is 0. */
struct hk_backend *conformance_open(const struct conformance *c, const struct backend_kind *kind, uint32_t last);

/* The results of all sensors for the points p, in batches as of feed. */
struct results conformance_run(const struct conformance *c, const struct backend_kind *kind, const struct points *p, uint32_t cut,
                               uint64_t random);

/* Fails the test unless the results of c's points, in other batches or by another kind, are the expected ones bit for bit. */
void conformance_same(const struct conformance *c, const struct backend_kind *kind, uint32_t cut, uint64_t random,
                      const char *what);

/* Frees points, states and results. */
void conformance_free(struct conformance *c);

#endif
