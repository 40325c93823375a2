/* The publisher over real sockets: every subscriber gets all selected results in order, with a name before its first use,
 * while sensors are evicted and others take their slots, and while it does not read. */
#include "daemon/base/glob.h"
#include "daemon/base/log.h"
#include "daemon/publish/publisher.h"
#include "daemon/scoring/device.h"
#include "daemon/sensors/register.h"
#include "daemon/sensors/slots.h"
#include "proto/wire/event_message.h"
#include "proto/wire/message.h"
#include "proto/wire/scores.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { SENSORS = 4000, POINTS = 70000, SUBSCRIBERS = 6, QUEUE = 4 << 20 };
#ifdef HK_SANITIZED
enum { ROUNDS = 40, ROUNDS_SLOW = 15 };
#else
enum { ROUNDS = 60, ROUNDS_SLOW = 50 };
#endif

/* Nanoseconds after which the test gives up waiting: even a starved program takes less. */
static const int64_t PATIENCE = 600000000000;

/* One end is the publisher's; the test reads the other, and compares the received results with the due ones. */
struct peer {
  struct hk_subscriber subscriber;
  uv_tcp_t tcp;
  int fd; /* our end */
  struct hk_wanted wanted;
  struct hk_glob *glob;
  struct hk_inbox in;
  char name[256 * SENSORS][8]; /* by handle, cut down to slot and eight generations */
  uint64_t got, sum, due, due_sum, gap, events, due_events, gap_events;
};

struct fixture {
  struct hk_config config;
  struct hk_device *device;
  struct hk_registry *registry;
  struct hk_counters counters;
  struct hk_publisher *publisher;
  uv_loop_t loop;
  struct peer *peer[SUBSCRIBERS];
  uint32_t random;
  struct hk_batch *batch;
};

static uint32_t number(struct fixture *f, uint32_t below)
{
  f->random = f->random * 1664525 + 1013904223;
  return (uint32_t)((uint64_t)f->random * below >> 32);
}

static void on_wrote(struct hk_subscriber *s, int status)
{
  assert_int_equal(status, 0);
  hk_send_gap(s, QUEUE / 2);
}

static struct peer *connected(struct fixture *f)
{
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
  socklen_t size = sizeof at;
  struct peer *p = calloc(1, sizeof *p);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  assert_true(p && bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0);
  assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
  p->fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(connect(p->fd, (struct sockaddr *)&at, sizeof at), 0);
  const int other = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
  assert_true(other >= 0 && uv_tcp_init(&f->loop, &p->tcp) == 0 && uv_tcp_open(&p->tcp, other) == 0);
  close(listener);
  p->subscriber = (struct hk_subscriber){ .stream = (uv_stream_t *)&p->tcp, .wrote = on_wrote };
  p->in.max_length = HK_FRAME_MAX;
  return p;
}

static void subscribe(struct fixture *f, struct peer *p, const char *glob, uint32_t what, float least)
{
  hk_glob_free(p->glob);
  assert_int_equal(hk_glob_new(&p->glob, glob, strlen(glob)), 0);
  p->wanted = (struct hk_wanted){ HK_PROTOCOL_BINARY, what, least, hk_string(glob), 0 };
  assert_int_equal(hk_subscribe(f->publisher, &p->subscriber, &p->wanted), 0);
}

static int setup(void **state)
{
  static struct hk_config_detector detectors[1] = { { .name = "all", .match = "*" } };
  struct fixture *f = calloc(1, sizeof *f);
  char error[256];
  struct hk_detector parsed;
  if (!f || hk_detector_parse("window=4,rank=1", &parsed, error, sizeof error) != 0)
    return -1;
  detectors[0].detector = parsed;
  f->random = 7;
  f->config = (struct hk_config){
    .detectors = detectors, .n_detectors = 1, .max_sensors = SENSORS, .threads = 1, .max_subscriptions = 100, .queue = QUEUE
  };
  *state = f;
  const struct hk_device_place place = { .of = 1 };
  if (hk_device_open(&f->device, &hk_backend_kinds[HK_BACKEND_REFERENCE], &f->config, 0, &place, error, sizeof error) != 0 ||
      hk_registry_new(&f->registry, &f->config, 1) != 0 || uv_loop_init(&f->loop) != 0 ||
      hk_publisher_new(&f->publisher, &f->config, f->registry, NULL, &f->counters) != 0)
    return -1;
  hk_registry_move(f->registry, 0, &f->device->binding, NULL, NULL);
  f->batch = hk_batch_new(f->device->backend, POINTS);
  for (int i = 0; i < SUBSCRIBERS; i++)
    f->peer[i] = connected(f);
  return f->batch ? 0 : -1;
}

static int teardown(void **state)
{
  struct fixture *f = *state;
  for (int i = 0; i < SUBSCRIBERS; i++) {
    struct peer *p = f->peer[i];
    hk_unsubscribe(f->publisher, &p->subscriber);
    uv_close((uv_handle_t *)&p->tcp, NULL);
  }
  uv_run(&f->loop, UV_RUN_DEFAULT);
  for (int i = 0; i < SUBSCRIBERS; i++) {
    close(f->peer[i]->fd);
    hk_inbox_free(&f->peer[i]->in);
    hk_glob_free(f->peer[i]->glob);
    free(f->peer[i]);
  }
  hk_batch_free(f->batch);
  hk_publisher_free(f->publisher);
  hk_registry_free(f->registry);
  hk_device_close(f->device);
  uv_loop_close(&f->loop);
  free(f);
  return 0;
}

/* --- our end --- */

static char *name_of(struct peer *p, uint32_t handle)
{
  const uint32_t slot = handle & 0xffffff, generation = handle >> 24;
  assert_true(slot < SENSORS);
  return p->name[slot * 256 + generation];
}

/* A hash of a result's sensor, time, score and state, so that a wrong result changes the sum. */
static uint64_t print_of(const char *name, int64_t time, float score, uint8_t state, double value)
{
  uint64_t h = (uint64_t)time * 0x9e3779b97f4a7c15u;
  uint32_t bits;
  memcpy(&bits, &score, sizeof bits);
  for (const char *c = name; *c; c++)
    h = (h ^ (uint8_t)*c) * 0x100000001b3u;
  h = (h ^ bits) * 0x100000001b3u;
  return (h ^ state ^ (uint64_t)(int64_t)value) * 0x9e3779b97f4a7c15u;
}

static void take_scores(struct peer *p, const struct hk_frame *frame)
{
  struct hk_scores s;
  assert_int_equal(hk_scores_read(frame, &s), 0);
  int64_t *time = malloc(s.n * sizeof *time);
  hk_scores_times(&s, time);
  assert_true((s.values != NULL) == ((p->wanted.what & HANKEL_VALUES) != 0));
  for (uint32_t i = 0; i < s.n; i++) {
    uint32_t handle;
    float score;
    double value = 0;
    memcpy(&handle, (const uint8_t *)s.handles + 4 * (size_t)i, 4);
    memcpy(&score, (const uint8_t *)s.scores + 4 * (size_t)i, 4);
    if (s.values)
      memcpy(&value, (const uint8_t *)s.values + 8 * (size_t)i, 8);
    const char *name = name_of(p, handle);
    assert_true(name[0]); /* it was sent before */
    p->sum += print_of(name, time[i], score, s.states ? ((const uint8_t *)s.states)[i] : HANKEL_OK, value);
  }
  p->got += s.n;
  free(time);
}

/* Reads the bytes that have come. most: bytes. Returns the number of bytes. */
static size_t take(struct peer *p, size_t most)
{
  size_t size, all = 0;
  struct hk_frame frame;
  struct hk_list list;
  struct hk_event_message event;
  struct hk_string name;
  uint32_t handle;
  uint64_t results, events;
  for (;;) {
    uint8_t *space = hk_inbox_space(&p->in, &size);
    const ssize_t n = recv(p->fd, space, size < most ? size : most, MSG_DONTWAIT);
    if (n <= 0)
      return all;
    all += (size_t)n;
    most -= (size_t)n;
    hk_inbox_wrote(&p->in, (size_t)n);
    while (hk_inbox_next(&p->in, &frame) == HK_FRAME_WHOLE)
      switch (frame.type) {
      case HK_NAMES:
        assert_int_equal(hk_names_read(&frame, &list), 0);
        for (uint32_t i = 0; i < list.n; i++) {
          hk_names_next(&list, &handle, &name);
          snprintf(name_of(p, handle), 8, "%.*s", (int)name.length, name.data);
        }
        break;
      case HK_SCORES:
        take_scores(p, &frame);
        break;
      case HK_EVENTS:
        assert_int_equal(hk_events_read(&frame, &list), 0);
        p->events += list.n;
        for (uint32_t i = 0; i < list.n; i++) {
          hk_event_next(&list, &event);
          assert_true(name_of(p, event.handle)[0]);
        }
        break;
      case HK_GAP:
        assert_int_equal(hk_gap_read(&frame, &results, &events), 0);
        p->gap += results;
        p->gap_events += events;
        break;
      default:
        fail();
      }
    if (most == 0)
      return all;
  }
}

/* Runs until all due results have come or a gap has counted them, for a limited time, and no more come. */
static void settle(struct fixture *f)
{
  const int64_t deadline = hk_now() + PATIENCE;
  for (int quiet = 0; quiet < 3 && hk_now() < deadline;) {
    bool all = true;
    size_t came = 0;
    uv_run(&f->loop, UV_RUN_NOWAIT);
    for (int i = 0; i < SUBSCRIBERS; i++) {
      const struct peer *p = f->peer[i];
      came += take(f->peer[i], SIZE_MAX);
      all &= p->got + p->gap >= p->due && p->events + p->gap_events >= p->due_events;
    }
    quiet = came > 0 || !all ? 0 : quiet + 1;
  }
}

/* --- due results --- */

static void make_batch(struct fixture *f, uint32_t n)
{
  struct hk_batch *b = f->batch;
  const uint32_t slots = hk_registry_slots(f->registry), times = number(f, 4), bad = number(f, 3);
  b->kind = HK_BATCH_POINTS;
  b->n = n;
  b->n_events = number(f, 20);
  uint32_t slot = number(f, slots);
  for (uint32_t i = 0; i < b->n; i++) {
    do
      slot = (slot + 1) % slots;
    while (!hk_registry_holds(f->registry, slot));
    b->slot[i] = slot;
    b->time[i] = times == 0   ? 5
                 : times == 1 ? 1000 * (int64_t)i
                 : times == 2 ? number(f, 1u << 31)
                              : (int64_t)number(f, 1u << 31) << 30;
    b->value[i] = number(f, 1000);
    b->state[i] = bad && number(f, 50) < bad ? HANKEL_LATE : HANKEL_OK;
    b->score[i] = b->state[i] == HANKEL_OK && number(f, 60) >= bad ? (float)number(f, 1000) / 1000 : NAN;
  }
  for (uint32_t i = 0; i < b->n_events; i++)
    b->event[i] = (struct hk_event){ .slot = b->slot[number(f, b->n)], .kind = (uint8_t)(1 + number(f, 5)) };
}

static void note_due(struct fixture *f, struct peer *p)
{
  static uint8_t match[SENSORS];
  const struct hk_batch *b = f->batch;
  const uint32_t what = p->wanted.what;
  for (uint32_t slot = 0; slot < hk_registry_slots(f->registry); slot++)
    if (hk_registry_holds(f->registry, slot)) {
      const struct hk_string name = hk_registry_name(f->registry, slot);
      match[slot] = p->glob && hk_glob_match(p->glob, name.data, name.length);
    }
  for (uint32_t i = 0; i < b->n; i++) {
    const float z = b->score[i];
    if (!match[b->slot[i]] || !(isnan(z) ? what & HANKEL_UNSCORED : what & HANKEL_SCORES && z >= p->wanted.min_score))
      continue;
    p->due++;
    p->due_sum += print_of(hk_registry_name(f->registry, b->slot[i]).data, b->time[i], z, b->state[i],
                           what & HANKEL_VALUES ? b->value[i] : 0);
  }
  for (uint32_t i = 0; i < b->n_events; i++)
    p->due_events += match[b->event[i].slot] && what & (b->event[i].kind >= HK_EVENT_STALE ? HANKEL_NOTICES : HANKEL_EVENTS);
}

static void add(struct fixture *f, uint32_t i)
{
  char name[8];
  uint32_t slot;
  const int length = snprintf(name, sizeof name, "m%u", i);
  assert_int_equal(hk_registry_take(f->registry, name, (size_t)length, &slot), 0);
}

static void everyone_gets_what_is_due(void **state)
{
  struct fixture *f = *state;
  const uint32_t all = HANKEL_SCORES | HANKEL_UNSCORED | HANKEL_EVENTS | HANKEL_NOTICES;
  static const struct {
    const char *glob;
    uint32_t what;
    float least;
  } wanted[] = {
    { "", all, 0 },
    { "*", all | HANKEL_VALUES, 0 },
    { "", HANKEL_SCORES, 0.9f },
    { "m7", all, 0 },
    { "m*1", all, 0 },
    { "m1*", HANKEL_SCORES, 0 },
    { "m12", HANKEL_SCORES, 0.5f },
    { "", HANKEL_UNSCORED, 0 },
    { "m2??", all, 0.999f },
    { "*", HANKEL_EVENTS, 0 },
    { "m*", HANKEL_UNSCORED | HANKEL_VALUES, 0 },
    { "m100", HANKEL_NOTICES, 0 },
  };
  static const uint32_t sizes[] = { 1, 2, 63, 64, 1000, 32768, 32769, POINTS };
  uint32_t sensors = 0;
  for (; sensors < 200; sensors++)
    add(f, sensors);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < SUBSCRIBERS; i++)
      if (round == i || number(f, 15) == 0) {
        const uint32_t k = number(f, sizeof wanted / sizeof *wanted);
        settle(f);
        subscribe(f, f->peer[i], wanted[k].glob, wanted[k].what, wanted[k].least);
      }
    for (uint32_t more = number(f, 3) ? 0 : number(f, 60); more > 0 && hk_registry_count(f->registry) < SENSORS - 100; more--)
      add(f, sensors++);
    /* Sensors are evicted; others take their slots, some under an earlier name. */
    for (uint32_t less = number(f, 4) ? 0 : number(f, 40); less > 0; less--) {
      const uint32_t slot = number(f, hk_registry_slots(f->registry));
      if (!hk_registry_holds(f->registry, slot) || hk_registry_count(f->registry) < 50)
        continue;
      hk_registry_retire(f->registry, slot);
      hk_publisher_forget(f->publisher, slot);
      hk_registry_release(f->registry, slot);
      if (number(f, 2))
        add(f, number(f, 2) ? number(f, 20) : sensors++);
    }
    make_batch(f, sizes[number(f, 8)]);
    for (int i = 0; i < SUBSCRIBERS; i++)
      note_due(f, f->peer[i]);
    hk_publish(f->publisher, f->batch, NULL, hk_string(""));
    settle(f);
    for (int i = 0; i < SUBSCRIBERS; i++) {
      const struct peer *p = f->peer[i];
      assert_int_equal(p->got, p->due);
      assert_true(p->sum == p->due_sum);
      assert_int_equal(p->events, p->due_events);
      assert_int_equal(p->gap, 0);
    }
  }
}

static void who_reads_slowly_is_told_what_it_missed(void **state)
{
  struct fixture *f = *state;
  const uint32_t all = HANKEL_SCORES | HANKEL_UNSCORED | HANKEL_EVENTS | HANKEL_NOTICES;
  for (uint32_t i = 0; i < 1000; i++)
    add(f, i);
  for (int i = 0; i < SUBSCRIBERS; i++)
    subscribe(f, f->peer[i], i % 2 ? "m*" : "", all, 0);
  for (int round = 0; round < ROUNDS_SLOW; round++) {
    make_batch(f, POINTS);
    for (int i = 0; i < SUBSCRIBERS; i++)
      note_due(f, f->peer[i]);
    hk_publish(f->publisher, f->batch, NULL, hk_string(""));
    uv_run(&f->loop, UV_RUN_NOWAIT);
    /* The first two subscribers read everything, the next two now and then a piece, the last one nothing. */
    for (int i = 0; i < 2; i++)
      for (const int64_t deadline = hk_now() + PATIENCE; f->peer[i]->got < f->peer[i]->due && hk_now() < deadline;) {
        take(f->peer[i], SIZE_MAX);
        uv_run(&f->loop, UV_RUN_NOWAIT);
      }
    for (int i = 2; i < 4 && round % 3 == 0; i++)
      take(f->peer[i], 700000);
  }
  settle(f);
  for (int i = 0; i < SUBSCRIBERS; i++) {
    struct peer *p = f->peer[i];
    /* whether one that reads pieces misses any depends on how much the kernel buffers */
    assert_true(p->gap == 0 ? i < 4 && p->sum == p->due_sum : i >= 2);
    assert_int_equal(p->got + p->gap, p->due);
    assert_int_equal(p->events + p->gap_events, p->due_events);
    assert_int_equal(p->subscriber.gap_results, 0);
    assert_int_equal(uv_stream_get_write_queue_size((uv_stream_t *)&p->tcp), 0);
  }
  assert_true(f->peer[SUBSCRIBERS - 1]->gap > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(everyone_gets_what_is_due, setup, teardown),
    cmocka_unit_test_setup_teardown(who_reads_slowly_is_told_what_it_missed, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
