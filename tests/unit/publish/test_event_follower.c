/* Events from the log to subscribers over real sockets. Wherever a subscriber begins, however fast it reads and whatever it
 * selects, it gets all selected events, in order and once; one that falls out of the log gets the exact number of lost events. */
#include "daemon/publish/publisher.h"
#include "proto/wire/event_message.h"
#include "proto/wire/message.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { SENSORS = 12, QUEUE = 32 << 10, PEERS = 6, EVENTS = 30000 };

struct peer {
  struct hk_subscriber subscriber;
  uv_pipe_t pipe;
  int fd;
  struct hk_inbox in;
  struct hk_wanted wanted;
  bool reads;
  char name[256][32];      /* by number of the handle */
  uint64_t last, due, gap; /* position of the last received event; number of due events that have not come yet */
  uint64_t holes;
};

struct fixture {
  char path[64];
  int folder;
  struct hk_disk disk;
  struct hk_log log;
  struct hk_config config;
  struct hk_registry *registry;
  struct hk_counters counters;
  struct hk_eventlog *events;
  struct hk_publisher *publisher;
  uv_loop_t loop;
  struct peer peer[PEERS];
  uint32_t random;
};

static uint32_t number(struct fixture *f, uint32_t below)
{
  f->random = f->random * 1664525 + 1013904223;
  return (uint32_t)((uint64_t)f->random * below >> 32);
}

/* Event number i is sensor i * 7 % SENSORS's. */
static uint32_t sensor_of(uint64_t i)
{
  return (uint32_t)(i * 7 % SENSORS);
}

static void append(struct fixture *f, uint64_t i)
{
  char name[32];
  const struct hk_event e = { .number = (uint32_t)i, .kind = (uint8_t)(1 + i % 3), .time = (int64_t)i * 10, .after = (double)i };
  snprintf(name, sizeof name, "sensor %u", sensor_of(i));
  assert_int_equal(hk_eventlog_append(f->events, sensor_of(i), hk_string(name), i / SENSORS + 1, &e, hk_string(""), 0), i);
}

static void commit(struct fixture *f)
{
  (void)hk_journal_take(hk_eventlog_journal(f->events));
  assert_int_equal(hk_eventlog_commit(f->events), 0);
}

static struct fixture *the;

static void on_wrote(struct hk_subscriber *s, int status)
{
  assert_int_equal(status, 0);
  hk_send_gap(s, QUEUE / 2);
  (void)hk_publish_events_to(the->publisher, s);
}

static int setup(void **state)
{
  static struct hk_config_detector detectors[1] = { { .name = "all", .match = "*" } };
  char error[256];
  struct fixture *f = the = calloc(1, sizeof *f);
  if (!f)
    return -1;
  *f = (struct fixture){ .path = "/dev/shm/hankel-follow-XXXXXX", .random = 5 };
  *state = f;
  f->config = (struct hk_config){
    .detectors = detectors, .n_detectors = 1, .max_sensors = SENSORS, .max_subscriptions = 100, .queue = QUEUE
  };
  hk_log_init(&f->log, HK_LOG_ERROR);
  if (!mkdtemp(f->path) || hk_disk_folder(&f->disk, AT_FDCWD, f->path, &f->folder) != 0 ||
      hk_eventlog_open(&f->events, &f->disk, f->folder, HK_EVENTLOG_LEAST, NULL, &f->log, error, sizeof error) != 0 ||
      hk_registry_new(&f->registry, &f->config, 1) != 0 || uv_loop_init(&f->loop) != 0 ||
      hk_publisher_new(&f->publisher, &f->config, f->registry, f->events, &f->counters) != 0)
    return -1;
  hk_eventlog_replayed(f->events);
  for (int i = 0; i < PEERS; i++) {
    struct peer *p = &f->peer[i];
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0 || uv_pipe_init(&f->loop, &p->pipe, 0) != 0 ||
        uv_pipe_open(&p->pipe, pair[0]) != 0)
      return -1;
    p->fd = pair[1];
    p->in.max_length = HK_FRAME_MAX;
    p->reads = true;
    p->subscriber = (struct hk_subscriber){ .stream = (uv_stream_t *)&p->pipe, .wrote = on_wrote };
  }
  return 0;
}

static int teardown(void **state)
{
  struct fixture *f = *state;
  char command[128];
  for (int i = 0; i < PEERS; i++) {
    hk_unsubscribe(f->publisher, &f->peer[i].subscriber);
    close(f->peer[i].fd);
  }
  for (int i = 0; i < PEERS; i++) {
    f->peer[i].subscriber.wrote = NULL;
    uv_close((uv_handle_t *)&f->peer[i].pipe, NULL);
    hk_inbox_free(&f->peer[i].in);
  }
  uv_run(&f->loop, UV_RUN_DEFAULT);
  hk_publisher_free(f->publisher);
  hk_registry_free(f->registry);
  hk_eventlog_free(f->events);
  uv_loop_close(&f->loop);
  close(f->folder);
  snprintf(command, sizeof command, "rm -r %s", f->path);
  free(f);
  return system(command);
}

static void subscribe(struct fixture *f, struct peer *p, const char *glob, uint64_t since)
{
  p->wanted = (struct hk_wanted){ HK_PROTOCOL_BINARY, HANKEL_EVENTS | HANKEL_POSITIONS, 0, hk_string(glob), since };
  assert_int_equal(hk_subscribe(f->publisher, &p->subscriber, &p->wanted), 0);
  p->last = hk_subscribed_since(f->publisher, &p->subscriber);
}

static bool matches(const struct peer *p, uint64_t i)
{
  char name[32];
  snprintf(name, sizeof name, "sensor %u", sensor_of(i));
  const struct hk_string glob = p->wanted.glob;
  if (glob.data[glob.length - 1] == '*')
    return memcmp(name, glob.data, glob.length - 1) == 0;
  return strlen(name) == glob.length && memcmp(name, glob.data, glob.length) == 0;
}

static void take_events(struct peer *p, const struct hk_frame *frame)
{
  struct hk_list list;
  assert_int_equal(hk_events_read(frame, &list), 0);
  for (uint32_t k = 0; k < list.n; k++) {
    struct hk_event_message e;
    char name[32];
    hk_event_next(&list, &e);
    const uint64_t i = e.position;
    snprintf(name, sizeof name, "sensor %u", sensor_of(i));
    assert_int_equal(e.handle & 0xffffff, 0xffffff);
    assert_string_equal(p->name[e.handle >> 24], name);
    assert_true(i > p->last && matches(p, i));
    for (uint64_t missing = p->last + 1; missing < i; missing++) /* a gap has counted the missing ones */
      p->holes += matches(p, missing);
    assert_true(e.number == i && e.time == (int64_t)i * 10 && e.after == (double)i && e.kind == 1 + i % 3 &&
                e.sequence == i / SENSORS + 1);
    p->last = i;
    p->due++;
  }
}

static void take(struct peer *p, const struct hk_frame *frame)
{
  struct hk_list list;
  uint64_t results, events;
  switch (frame->type) {
  case HK_NAMES:
    assert_int_equal(hk_names_read(frame, &list), 0);
    for (uint32_t i = 0; i < list.n; i++) {
      uint32_t handle;
      struct hk_string name;
      hk_names_next(&list, &handle, &name);
      snprintf(p->name[handle >> 24], sizeof p->name[0], "%.*s", (int)name.length, name.data);
    }
    break;
  case HK_EVENTS:
    take_events(p, frame);
    break;
  case HK_GAP:
    assert_int_equal(hk_gap_read(frame, &results, &events), 0);
    assert_int_equal(results, 0);
    p->gap += events;
    break;
  default:
    fail_msg("a frame of type %u", frame->type);
  }
}

/* Reads the bytes that are there; true if there were any. */
static bool read_some(struct peer *p)
{
  size_t room;
  struct hk_frame frame;
  uint8_t *space = hk_inbox_space(&p->in, &room);
  const ssize_t n = recv(p->fd, space, room < 20000 ? room : 20000, 0);
  if (n <= 0)
    return false;
  hk_inbox_wrote(&p->in, (size_t)n);
  while (hk_inbox_next(&p->in, &frame) == HK_FRAME_WHOLE)
    take(p, &frame);
  return true;
}

static void settle(struct fixture *f)
{
  for (bool any = true; any;) {
    any = hk_publish_events(f->publisher);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    for (int i = 0; i < PEERS; i++)
      any |= f->peer[i].reads && read_some(&f->peer[i]);
  }
}

static uint64_t due(const struct peer *p, uint64_t from, uint64_t to)
{
  uint64_t n = 0;
  for (uint64_t i = from; i <= to; i++)
    n += matches(p, i);
  return n;
}

static void test_everybody(void **state)
{
  struct fixture *f = *state;
  struct peer *all = &f->peer[0], *one = &f->peer[1], *some = &f->peer[2], *slow = &f->peer[3], *late = &f->peer[4],
              *ahead = &f->peer[5];
  uint64_t i = 0;
  while (i < 1000)
    append(f, ++i);
  commit(f);
  subscribe(f, all, "*", 0);
  subscribe(f, one, "sensor 7", HANKEL_NOW);
  subscribe(f, some, "sensor 1*", 990);
  subscribe(f, slow, "*", 0);
  assert_int_equal(one->last, 1000);
  slow->reads = false;
  while (i < EVENTS) {
    for (uint32_t n = number(f, 200); n > 0 && i < EVENTS; n--)
      append(f, ++i);
    if (number(f, 3) > 0)
      commit(f);
    if (i > 5000 && late->wanted.glob.length == 0)
      subscribe(f, late, "sensor 3", 4000);
    (void)hk_publish_events(f->publisher);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    for (int k = 0; k < PEERS; k++)
      for (uint32_t n = number(f, 4); n > 0 && f->peer[k].reads; n--)
        (void)read_some(&f->peer[k]);
    if (number(f, 4) == 0)
      settle(f);
  }
  commit(f);
  settle(f);
  assert_int_equal(all->due, EVENTS);
  assert_int_equal(one->due, due(one, 1001, EVENTS));
  assert_int_equal(some->due, due(some, 991, EVENTS));
  assert_int_equal(late->due, due(late, 4001, EVENTS));
  assert_int_equal(all->gap + one->gap + some->gap + late->gap, 0);
  assert_int_equal(all->holes + one->holes + some->holes + late->holes, 0);
  slow->reads = true;
  settle(f);
  assert_true(slow->gap > 5000);
  assert_int_equal(slow->holes, slow->gap);
  assert_int_equal(slow->due + slow->gap, EVENTS);
  subscribe(f, ahead, "*", EVENTS + 5); /* of another log */
  hk_send_gap(&ahead->subscriber, SIZE_MAX);
  append(f, ++i);
  commit(f);
  settle(f);
  assert_int_equal(ahead->gap, INT64_MAX);
  assert_int_equal(ahead->due, 1);
  assert_int_equal(ahead->holes, 0);
}

/* A subscriber that comes back with its position, to a log that has continued. */
static void test_comes_back(void **state)
{
  struct fixture *f = *state;
  struct peer *p = &f->peer[0];
  uint64_t i = 0, have = 0, got = 0;
  for (int turn = 0; turn < 200; turn++) {
    subscribe(f, p, "sensor 1*", have);
    for (uint32_t n = number(f, 60); n > 0; n--)
      append(f, ++i);
    commit(f);
    if (number(f, 2) > 0)
      settle(f);
    have = p->last; /* events on their way were not received, and come again */
    got = p->due;
    hk_unsubscribe(f->publisher, &p->subscriber);
    settle(f);
    p->due = got;
    p->last = have;
    assert_int_equal(p->gap, 0);
    assert_int_equal(got, due(p, 1, have));
  }
  assert_true(got > 500);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_everybody, setup, teardown),
    cmocka_unit_test_setup_teardown(test_comes_back, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
