/* States as bytes: nothing is lost, and a forged state (with a valid checksum, unlike a damaged one) is refused or harmless. */
#include "cpu/backend.h"
#include "cpu/rules/state.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <xxhash.h>

#include <cmocka.h>

#define BYTES 2000

static struct hk_detector detector(const char *text)
{
  struct hk_detector d;
  char error[256];
  if (hk_detector_parse(text, &d, error, sizeof error) != 0)
    fail_msg("%s", error);
  return d;
}

static uint64_t random_number(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 16;
}

/* Every byte of both structs is written and read back, except fields named unused: this finds a new field that is not in the
 * tables. */
static void every_field_goes_through(void **state)
{
  (void)state;
  const struct hk_detector d = detector("window=4,gap=1,rank=1,interval=1s");
  const uint32_t span = hk_detector_span(&d);
  struct hk_window window = { .reference = 1.25,
                              .mean = -3.5,
                              .variance = 2.75,
                              .last_time = 0x123456789abcdef,
                              .interval = 1234567890123,
                              .seen = 987654321,
                              .seed = 0xfedcba9876543210,
                              .count = span,
                              .head = 3,
                              .filled = 2,
                              .spacings = 11,
                              .age = 17,
                              .due = 5,
                              .rebase = 6,
                              .held = 7,
                              .started = 1,
                              .stale = 1,
                              .holes = 1,
                              .anew = 1,
                              .holed = 9 };
  struct hk_alert alert;
  struct hk_window window2;
  struct hk_alert alert2;
  float ring[8], feedback[4] = { 0.5f, -0.5f, 0.5f, -0.5f }, ring2[8], feedback2[4];
  uint8_t bytes[BYTES];
  for (uint32_t i = 0; i < span; i++)
    ring[i] = hk_sample_tag((float)i * 1.5f - 4, i == 1 || i == 6);
  /* doubles and floats of the alert in range, whatever its fields are: 0x3d in every byte, then the small ones */
  memset(&alert, 0x3d, sizeof alert);
  alert.from = 5;
  alert.instant = 6;
  alert.blocks = 3;
  alert.raised = alert.settled = 1;
  alert.unused = 0;
  hk_state_write(bytes, &d, &window, &alert, ring, feedback);
  memset(&window2, 0, sizeof window2);
  memset(&alert2, 0, sizeof alert2);
  assert_int_equal(hk_state_read(bytes, hk_state_size(&d, span), &d, &window2, &alert2, ring2, feedback2), 0);
  assert_int_equal(window2.head, 0);
  window2.head = window.head;
  assert_memory_equal(&window, &window2, sizeof window);
  assert_memory_equal(&alert, &alert2, sizeof alert);
  assert_memory_equal(feedback, feedback2, sizeof feedback);
  for (uint32_t i = 0; i < span; i++)
    assert_memory_equal(&ring2[i], &ring[(3 + i) % span], sizeof *ring);
}

/* A state of version 2 lacks the last fields of the window, and is otherwise the same as now. */
static void a_state_of_before_is_read(void **state)
{
  (void)state;
  const struct hk_detector d = detector("window=4,gap=1,rank=1,interval=1s");
  const uint32_t span = hk_detector_span(&d);
  const size_t size = hk_state_size(&d, span), at = 106, lacks = 6;
  const struct hk_window window = { .mean = 2, .last_time = 9, .seed = 3, .count = span, .age = 4, .started = 1, .holed = 5 };
  const struct hk_alert alert = { .number = 77, .from = 5 };
  struct hk_window window2;
  struct hk_alert alert2;
  struct hk_state_about about;
  float ring[8], feedback[4] = { 1, 0, 0, 0 }, ring2[8], feedback2[4];
  uint8_t bytes[BYTES];
  for (uint32_t i = 0; i < span; i++)
    ring[i] = hk_sample_tag((float)i, false);
  hk_state_write(bytes, &d, &window, &alert, ring, feedback);
  for (uint8_t version = 1; version <= 4; version++) {
    uint8_t old[BYTES];
    const size_t less = version == 2 ? lacks : 0;
    memcpy(old, bytes, at);
    memcpy(old + at, bytes + at + less, size - at - less);
    old[4] = version;
    const uint64_t checksum = htole64(XXH64(old, size - less - 8, 0));
    memcpy(old + size - less - 8, &checksum, sizeof checksum);
    const bool good = version == 2 || version == 3;
    assert_int_equal(hk_state_look(old, size - less, &about), good ? 0 : -EINVAL);
    assert_int_equal(hk_state_read(old, size - less, &d, &window2, &alert2, ring2, feedback2), good ? 0 : -EINVAL);
    if (!good)
      continue;
    assert_true(about.count == span && about.last_time == 9);
    assert_true(window2.mean == 2 && window2.seed == 3 && window2.count == span && window2.started == 1);
    assert_int_equal(window2.holed, version == 2 ? 0 : 5);
    assert_true(alert2.number == 77 && alert2.from == 5);
    assert_memory_equal(ring2, ring, span * sizeof *ring);
    assert_memory_equal(feedback2, feedback, sizeof feedback);
    assert_int_equal(hk_state_renumber(old, size - less, 99), 0);
    assert_int_equal(hk_state_read(old, size - less, &d, &window2, &alert2, ring2, feedback2), 0);
    assert_int_equal(alert2.number, 99);
  }
}

/* Overwrites a few bytes with garbage, and corrects the checksum. */
static void make_up(uint8_t *bytes, size_t size, uint64_t *random)
{
  static const uint8_t telling[] = { 0x00, 0x01, 0x7f, 0x80, 0xff, 0x3f, 0x7e };
  for (uint64_t n = random_number(random) % 4 + 1; n > 0; n--) {
    /* mostly in the structs at the front */
    const size_t at = 16 + random_number(random) % (random_number(random) % 8 ? 200 : size - 24);
    const size_t length = random_number(random) % 8 + 1;
    const uint8_t value =
        random_number(random) % 2 ? (uint8_t)random_number(random) : telling[random_number(random) % sizeof telling];
    for (size_t i = at; i < at + length && i < size - 8; i++)
      bytes[i] = value;
  }
  const uint64_t checksum = htole64(XXH64(bytes, size - 8, 0));
  memcpy(bytes + size - 8, &checksum, sizeof checksum);
}

static void run(struct hk_backend *b, struct hk_batch *batch)
{
  assert_int_equal(b->ops->submit(b, batch), 0);
  b->ops->wait(b);
  assert_ptr_equal(b->ops->reap(b), batch);
  assert_int_equal(batch->status, 0);
}

static void fill(struct hk_batch *batch, uint32_t slot, int64_t second)
{
  batch->kind = HK_BATCH_POINTS;
  batch->n = 64;
  for (uint32_t i = 0; i < batch->n; i++) {
    batch->slot[i] = i % 2 ? slot : 0;
    batch->time[i] = (second + i / 2) * 1000000000;
    batch->value[i] = (double)((second + i / 2) * 7919 % 101) * 0.1;
  }
}

/* Sensor 1 gets forged states and continues; sensor 0 beside it has the same results as without it. */
static void made_up_states_harm_nobody(void **state)
{
  (void)state;
  const struct hk_detector d = detector("window=8,gap=9,rank=2,silent=30s,false_alarms=100000");
  const struct hk_backend_config config = { .detectors = &d, .n_detectors = 1, .max_sensors = 4, .threads = 1 };
  struct hk_backend *b;
  char error[256];
  uint8_t good[BYTES], bytes[BYTES];
  uint64_t random = 1;
  uint32_t taken = 0, refused = 0;
  assert_int_equal(hk_cpu_open(&b, &config, error, sizeof error), 0);
  struct hk_batch *batch = hk_batch_new(b, 64);
  assert_int_equal(b->ops->add(b, 0, 0, 1), 0);
  assert_int_equal(b->ops->add(b, 1, 0, 2), 0);
  assert_int_equal(b->ops->add(b, 2, 0, 1), 0);
  for (int64_t second = 1; second < 3000; second += 32) { /* the third is the first's twin, and has no neighbour */
    fill(batch, 1, second);
    run(b, batch);
    for (uint32_t i = 0; i < 64; i++)
      batch->slot[i] = i % 2 ? 3 : 2;
    if (second == 1)
      assert_int_equal(b->ops->add(b, 3, 0, 5), 0);
    run(b, batch);
  }
  const int64_t size = b->ops->export_(b, 1, good, sizeof good);
  assert_true(size > 0 && size <= BYTES);
  for (int round = 0; round < 3000; round++) {
    memcpy(bytes, good, (size_t)size);
    make_up(bytes, (size_t)size, &random);
    const int status = b->ops->import_(b, 1, bytes, (size_t)size);
    assert_true(status == 0 || status == -EINVAL);
    refused += status != 0;
    taken += status == 0;
    const int64_t second = 4000 + 40 * (int64_t)round;
    fill(batch, 1, second);
    run(b, batch);
    float beside[32];
    for (uint32_t i = 0; i < 32; i++)
      beside[i] = batch->score[2 * i];
    for (uint32_t i = 0; i < 64; i++)
      batch->slot[i] = i % 2 ? 3 : 2;
    run(b, batch);
    for (uint32_t i = 0; i < 32; i++)
      assert_memory_equal(&beside[i], &batch->score[2 * i], sizeof(float));
    batch->kind = HK_BATCH_SWEEP;
    batch->arrival = round * 1000000000ll;
    run(b, batch);
  }
  assert_true(taken > 300 && refused > 300);
  hk_batch_free(batch);
  b->ops->close(b);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(every_field_goes_through), cmocka_unit_test(a_state_of_before_is_read),
                                      cmocka_unit_test(made_up_states_harm_nobody) };
  return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
