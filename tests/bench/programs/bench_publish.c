/* What it costs to publish: a publisher over real loopback sockets, and a process that drains them. Time is the publishing
 * thread's processor time for a result, with its writes into the sockets, beside copying the same bytes and beside bare writes of
 * them in the same run; instructions are those of user space. usage: bench_publish [SENSORS [SUBSCRIBERS...]]; a number of
 * subscribers under 0: nothing is sent. */
#include "daemon/publish/encode_results.h"
#include "daemon/publish/publisher.h"
#include "daemon/publish/view_select.h"
#include "daemon/scoring/device.h"
#include "daemon/sensors/register.h"
#include "daemon/sensors/slots.h"
#include "tests/bench/programs/bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POINTS = 65536, BATCHES = 16, ROUNDS = 5, QUEUE = 4 << 20 };

struct bench {
  struct hk_config config;
  struct hk_device *device;
  struct hk_registry *registry;
  struct hk_counters counters;
  uint32_t sensors;
  struct hk_batch *batch[BATCHES];
  uv_loop_t loop;
  int perf;       /* descriptor; -1: not to be had */
  bool no_writes; /* nothing is sent, so that the rest is the same under a tool that counts instructions */
  double copied;  /* ns a byte */
};

static uint64_t instructions(const struct bench *x)
{
  uint64_t n = 0;
  return x->perf >= 0 && read(x->perf, &n, sizeof n) == (ssize_t)sizeof n ? n : 0;
}

/* --- the process that drains --- */

static int drained[2];          /* pipe: a byte when all its sockets are connected */
static uint64_t *drained_bytes; /* shared: that it has read */

/* Connects n sockets to the port and reads from them until all are closed. */
static void drain(uint16_t port, uint32_t n)
{
  const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = { htonl(INADDR_LOOPBACK) } };
  const int poll = epoll_create1(0);
  static char bytes[1 << 20];
  for (uint32_t i = 0; i < n; i++) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct epoll_event e = { .events = EPOLLIN, .data = { .fd = fd } };
    require(fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0, "cannot connect");
    require(epoll_ctl(poll, EPOLL_CTL_ADD, fd, &e) == 0, "cannot poll");
  }
  require(write(drained[1], "", 1) == 1, "cannot say so");
  for (uint32_t open = n; open > 0;) {
    struct epoll_event ready[256];
    const int k = epoll_wait(poll, ready, 256, -1);
    for (int i = 0; i < k; i++) {
      const ssize_t got = recv(ready[i].data.fd, bytes, sizeof bytes, 0);
      __atomic_fetch_add(drained_bytes, got > 0 ? (uint64_t)got : 0, __ATOMIC_RELAXED);
      if (got <= 0) {
        close(ready[i].data.fd);
        open--;
      }
    }
  }
  _exit(0);
}

/* --- subscribers --- */

struct subscribers {
  struct hk_subscriber *subscriber;
  uv_tcp_t *tcp;
  uint32_t n;
  pid_t child;
};

static void on_wrote(struct hk_subscriber *s, int status)
{
  (void)s;
  require(status == 0, "a write failed");
}

/* n connections, of which a child of this process has the other ends. */
static struct subscribers connect_all(struct bench *x, uint32_t n)
{
  struct subscribers all = { calloc(n, sizeof *all.subscriber), calloc(n, sizeof *all.tcp), n, 0 };
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
  socklen_t size = sizeof at;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(all.subscriber && all.tcp && listener >= 0, "no memory or socket");
  require(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 4096) == 0, "cannot listen");
  require(getsockname(listener, (struct sockaddr *)&at, &size) == 0 && pipe(drained) == 0, "cannot listen");
  fflush(NULL);
  all.child = fork();
  require(all.child >= 0, "cannot fork");
  if (all.child == 0) {
    close(listener);
    drain(ntohs(at.sin_port), n);
  }
  for (uint32_t i = 0; i < n; i++) {
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
    require(fd >= 0 && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "cannot accept");
    require(uv_tcp_init(&x->loop, &all.tcp[i]) == 0 && uv_tcp_open(&all.tcp[i], fd) == 0, "cannot use a socket");
    all.subscriber[i] = (struct hk_subscriber){ .stream = (uv_stream_t *)&all.tcp[i], .wrote = on_wrote };
  }
  char c;
  require(read(drained[0], &c, 1) == 1, "the drain does not run");
  close(drained[0]);
  close(drained[1]);
  close(listener);
  return all;
}

static void disconnect_all(struct bench *x, struct subscribers *all)
{
  for (uint32_t i = 0; i < all->n; i++)
    uv_close((uv_handle_t *)&all->tcp[i], NULL);
  uv_run(&x->loop, UV_RUN_DEFAULT);
  waitpid(all->child, NULL, 0);
  free(all->subscriber);
  free(all->tcp);
}

/* --- measurements --- */

/* Times of the batches: all one, or all different within a second. */
static void set_times(struct bench *x, bool one)
{
  for (uint32_t k = 0; k < BATCHES; k++)
    for (uint32_t i = 0; i < POINTS; i++)
      x->batch[k]->time[i] = 1700000000000000000 + 1000000000 * (int64_t)k + (one ? 0 : (int64_t)(i * 2654435761u % 1000000000));
}

struct cost {
  double time, wall, instructions; /* of one batch: ns, ns, number */
  double results, bytes;           /* of one batch */
};

static void print(const struct bench *x, const char *name, const struct cost *c, double of, const char *unit)
{
  printf("%-46s %7.2f ns %7.2f wall", name, c->time / of, c->wall / of);
  if (c->instructions > 0)
    printf(" %7.1f instructions", c->instructions / of);
  printf(" a %s; %5.1f bytes, %.2f of copying them\n", unit, c->bytes / of, x->copied * c->bytes / c->time);
}

/* Waits until little is queued. */
static void settle(struct bench *x, const struct subscribers *all, size_t most)
{
  for (uint32_t i = 0; i < all->n; i++)
    while (uv_stream_get_write_queue_size(all->subscriber[i].stream) > most)
      uv_run(&x->loop, UV_RUN_ONCE);
}

static uint32_t n_hits;
static void count(void *arg, struct hk_view *v, const struct hk_choice *results, const struct hk_choice *events)
{
  (void)arg;
  (void)v;
  (void)events;
  n_hits += results->n;
}

/* Bytes that have come to the other end, once no more come. */
static uint64_t bytes_read(void)
{
  uint64_t before, n = __atomic_load_n(drained_bytes, __ATOMIC_RELAXED);
  do {
    const struct timespec pause = { 0, 50000000 };
    before = n;
    nanosleep(&pause, NULL);
    n = __atomic_load_n(drained_bytes, __ATOMIC_RELAXED);
  } while (n != before);
  return n;
}

/* Choosing alone, as the publisher does it. */
static __attribute__((noinline)) void bench_choose(struct bench *x, const char *name, const struct hk_wanted *wanted,
                                                   const char *format, uint32_t n)
{
  struct hk_views *views;
  struct hk_view **open = calloc(n, sizeof(struct hk_view *));
  struct cost best = { .time = 1e18 };
  char glob[64];
  require(open && hk_views_new(&views, x->registry, 65535) == 0, "no memory");
  for (uint32_t i = 0; i < n; i++) {
    struct hk_wanted w = *wanted;
    if (format) {
      snprintf(glob, sizeof glob, format, (uint32_t)((uint64_t)i * x->sensors / n));
      w.glob = hk_string(glob);
    }
    require(hk_view_open(views, &w, &open[i]) == 0, "cannot open a view");
  }
  for (uint32_t i = 0; i < 2 * x->sensors / POINTS + 4 * BATCHES; i++) { /* until views are settled for all names */
    hk_views_choose(views, x->batch[i % BATCHES], false, count, NULL);
    hk_views_tend(views);
  }
  for (uint32_t i = 0; i < x->sensors / 1024 + 1; i++)
    hk_views_tend(views);
  for (int round = 0; round < 5 * ROUNDS; round++) {
    n_hits = 0;
    const uint64_t i0 = instructions(x);
    const double start = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID);
    for (uint32_t k = 0; k < BATCHES; k++)
      hk_views_choose(views, x->batch[k], false, count, NULL);
    const double took = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    if (took < best.time)
      best = (struct cost){ took, took, (double)(instructions(x) - i0), n_hits, 4.0 * POINTS * BATCHES };
  }
  printf("%-46s %7.2f ns", name, best.time / POINTS / BATCHES);
  if (best.instructions > 0)
    printf(" %7.1f instructions", best.instructions / POINTS / BATCHES);
  printf(" a result of the batch; %.1f %% chosen\n", 100 * best.results / POINTS / BATCHES);
  for (uint32_t i = 0; i < n; i++)
    hk_view_close(views, open[i]);
  hk_views_free(views);
  free(open);
}

/* Encoding alone: the frames of all batches into one buffer, as the publisher does it. Leaves the frames of one batch in out. */
static __attribute__((noinline)) void bench_encode(struct bench *x, const char *name, bool values, struct hk_buffer *out)
{
  struct cost best = { .time = 1e18 };
  for (int round = 0; round < 5 * ROUNDS; round++) {
    size_t bytes = 0;
    const uint64_t i0 = instructions(x);
    const double start = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID);
    for (uint32_t k = 0; k < BATCHES; k++)
      for (uint32_t at = 0; at < POINTS; at += HK_RESULTS_FRAME) {
        const struct hk_choice all = { NULL, POINTS };
        out->size = 0;
        hk_encode_results(out, HK_PROTOCOL_BINARY, x->registry, x->batch[k], &all, at, HK_RESULTS_FRAME, values, NULL);
        bytes += out->size;
      }
    const double took = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    if (took < best.time)
      best = (struct cost){ took, took, (double)(instructions(x) - i0), POINTS * BATCHES, (double)bytes };
  }
  print(x, name, &best, POINTS * BATCHES, "result");
}

/* Copying, from and to pieces of the size of a frame. */
static void bench_copy(struct bench *x, size_t piece)
{
  char *from = malloc(piece), *to = malloc(piece);
  require(from && to, "no memory");
  memset(from, 1, piece);
  memset(to, 2, piece);
  double best = 1e18;
  for (int round = 0; round < 5 * ROUNDS; round++) {
    const double start = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < 500; i++) {
      memcpy(to, from, piece);
      __asm__ volatile("" : : "r"(to) : "memory");
    }
    const double took = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    best = took < best ? took : best;
  }
  x->copied = best / 500 / (double)piece;
  printf("copying %zu bytes: %.3f ns a byte\n", piece, x->copied);
  free(from);
  free(to);
}

/* Bare writes of that many bytes: the least that a socket costs. */
static void bench_write(struct bench *x, const char *name, size_t piece)
{
  if (x->no_writes)
    return;
  struct subscribers all = connect_all(x, 1);
  char *bytes = calloc(1, piece);
  int fd;
  require(bytes && uv_fileno((const uv_handle_t *)&all.tcp[0], &fd) == 0, "no memory");
  struct cost best = { .time = 1e18 };
  const int writes = piece > 1000 ? 2000 : 20000;
  for (int round = 0; round < ROUNDS; round++) {
    const double start = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID), wall = 1e9 * seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < writes; i++)
      for (size_t at = 0; at < piece;) {
        const ssize_t n = send(fd, bytes + at, piece - at, MSG_NOSIGNAL);
        at += n > 0 ? (size_t)n : 0;
        if (n < 0) {
          struct pollfd p = { .fd = fd, .events = POLLOUT };
          require(errno == EAGAIN && poll(&p, 1, -1) == 1, "cannot write");
        }
      }
    const double took = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID) - start, whole = 1e9 * seconds(CLOCK_MONOTONIC) - wall;
    if (took < best.time)
      best = (struct cost){ took, whole, 0, 0, (double)piece * writes };
  }
  print(x, name, &best, (double)piece * writes, "byte");
  free(bytes);
  disconnect_all(x, &all);
}

/* The whole: n subscribers, each with its own selection; format: that of its glob, with the number of a sensor. */
static void bench_publish(struct bench *x, const char *name, const struct hk_wanted *wanted, const char *format, uint32_t n)
{
  if (x->no_writes)
    return;
  struct hk_publisher *publisher;
  struct subscribers all = connect_all(x, n);
  char glob[64];
  memset(&x->counters, 0, sizeof x->counters);
  require(hk_publisher_new(&publisher, &x->config, x->registry, NULL, &x->counters) == 0, "no memory");
  for (uint32_t i = 0; i < n; i++) {
    struct hk_wanted w = *wanted;
    if (format) {
      snprintf(glob, sizeof glob, format, (uint32_t)((uint64_t)i * x->sensors / n));
      w.glob = hk_string(glob);
    }
    require(hk_subscribe(publisher, &all.subscriber[i], &w) == 0, "cannot subscribe");
  }
  /* Names are sent once. */
  for (uint32_t i = 0; i < 2 * x->sensors / POINTS + 4 * BATCHES; i++) {
    hk_publish(publisher, x->batch[i % BATCHES], NULL, hk_string(""));
    settle(x, &all, 0);
  }
  struct cost best = { .time = 1e18 };
  const uint32_t turns = n > 1 ? 1 : 8;
  const uint64_t before = bytes_read();
  for (uint32_t k = 0; k < BATCHES; k++) {
    hk_publish(publisher, x->batch[k], NULL, hk_string(""));
    settle(x, &all, 0);
  }
  const double bytes = turns * (double)(bytes_read() - before);
  for (int round = 0; round < ROUNDS; round++) {
    const uint64_t i0 = instructions(x);
    const double start = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID), wall = 1e9 * seconds(CLOCK_MONOTONIC);
    for (uint32_t k = 0; k < turns * BATCHES; k++) {
      hk_publish(publisher, x->batch[k % BATCHES], NULL, hk_string(""));
      uv_run(&x->loop, UV_RUN_NOWAIT);
      settle(x, &all, QUEUE / 4);
    }
    settle(x, &all, 0);
    const double took = 1e9 * seconds(CLOCK_THREAD_CPUTIME_ID) - start, whole = 1e9 * seconds(CLOCK_MONOTONIC) - wall;
    const uint64_t i1 = instructions(x);
    (void)bytes_read();
    if (took < best.time)
      best = (struct cost){ took, whole, (double)(i1 - i0), 0, bytes };
  }
  require(x->counters.gap_results == 0, "results were left out");
  print(x, name, &best, (double)turns * POINTS * BATCHES, "result of the batch");
  if (n > 1)
    printf("%-46s %7.0f ns a subscriber and batch that it has a result in\n", "",
           best.time / (double)turns / BATCHES / n * fmax(1, (double)x->sensors / POINTS));
  for (uint32_t i = 0; i < n; i++)
    hk_unsubscribe(publisher, &all.subscriber[i]);
  disconnect_all(x, &all);
  hk_publisher_free(publisher);
}

static void open_all(struct bench *x, uint32_t sensors)
{
  static struct hk_config_detector detectors[1] = { { .name = "all", .match = "*" } };
  char error[256], name[64];
  struct hk_detector parsed;
  require(hk_detector_parse("window=4,rank=1", &parsed, error, sizeof error) == 0, "detector");
  detectors[0].detector = parsed;
  x->sensors = sensors;
  x->config = (struct hk_config){
    .detectors = detectors, .n_detectors = 1, .max_sensors = sensors, .threads = 1, .max_subscriptions = 20000, .queue = QUEUE
  };
  const struct hk_device_place place = { .of = 1 };
  require(hk_device_open(&x->device, &hk_backend_kinds[HK_BACKEND_CPU], &x->config, 0, &place, error, sizeof error) == 0, error);
  require(hk_registry_new(&x->registry, &x->config, 1) == 0, "registry");
  hk_registry_move(x->registry, 0, &x->device->binding, NULL, NULL);
  for (uint32_t i = 0; i < sensors; i++) {
    uint32_t slot;
    const int length = snprintf(name, sizeof name, "machine%u", i);
    require(hk_registry_take(x->registry, name, (size_t)length, &slot) == 0, "a sensor");
  }
  uint32_t next = 0, random = 1;
  for (uint32_t k = 0; k < BATCHES; k++) {
    struct hk_batch *b = x->batch[k] = hk_batch_new(x->device->backend, POINTS);
    require(b, "no memory");
    b->n = POINTS;
    b->n_events = 0;
    b->kind = HK_BATCH_POINTS;
    for (uint32_t i = 0; i < POINTS; i++) {
      b->slot[i] = next;
      next = (next + 1) % sensors;
      random = random * 1664525 + 1013904223;
      b->value[i] = random * 1e-9;
      b->score[i] = (float)(random >> 8) / (1 << 24);
      b->state[i] = HANKEL_OK;
    }
  }
  struct perf_event_attr attr = {
    .type = PERF_TYPE_HARDWARE, .size = sizeof attr, .config = PERF_COUNT_HW_INSTRUCTIONS, .exclude_kernel = 1, .exclude_hv = 1
  };
  x->perf = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
  require(uv_loop_init(&x->loop) == 0, "event loop");
}

int main(int argc, char **argv)
{
  static struct bench x;
  static const struct hk_wanted everything = {
    HK_PROTOCOL_BINARY, HANKEL_SCORES | HANKEL_UNSCORED | HANKEL_EVENTS, 0, { "", 0 }, 0
  };
  struct hk_wanted wanted = everything;
  struct hk_buffer out = { 0 };
  struct rlimit files;
  signal(SIGPIPE, SIG_IGN);
  drained_bytes = mmap(NULL, sizeof *drained_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(drained_bytes != MAP_FAILED, "no memory");
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  open_all(&x, argc > 1 ? (uint32_t)atoi(argv[1]) : 100000);
  x.no_writes = argc > 2 && atoi(argv[2]) < 0;
  printf("%u sensors, batches of %d points of all sensors in turn, frames of %u results\n", x.sensors, POINTS, HK_RESULTS_FRAME);

  bench_copy(&x, 8 * HK_RESULTS_FRAME);
  bench_write(&x, "bare writes of 8-byte results", 8 * HK_RESULTS_FRAME);
  bench_write(&x, "bare writes of 12-byte results", 12 * HK_RESULTS_FRAME);
  bench_write(&x, "bare writes of a frame of one result", 40);
  for (int one = 1; one >= 0; one--) {
    set_times(&x, one);
    bench_encode(&x, one ? "encode, one time" : "encode, times within a second", false, &out);
    bench_encode(&x, one ? "encode, one time, values" : "encode, times within a second, values", true, &out);
    bench_publish(&x, one ? "everything, one time" : "everything, times within a second", &everything, NULL, 1);
  }
  wanted.what = HANKEL_SCORES;
  bench_choose(&x, "choose: scores, no minimum", &wanted, NULL, 1);
  static const float least[] = { 0.5f, 0.9f, 0.99f, 0.999f };
  for (size_t i = 0; i < sizeof least / sizeof *least; i++) {
    char name[64];
    wanted.min_score = least[i];
    snprintf(name, sizeof name, "choose: scores of %g or more", (double)least[i]);
    bench_choose(&x, name, &wanted, NULL, 1);
    bench_publish(&x, name + 8, &wanted, NULL, 1);
  }
  wanted = everything;
  wanted.glob = hk_string("machine*5");
  bench_choose(&x, "choose: a tenth of the sensors, by glob", &wanted, NULL, 1);
  bench_publish(&x, "a tenth of the sensors, by glob", &wanted, NULL, 1);
  for (int i = 2; i < (argc > 2 ? argc : 4); i++) {
    const uint32_t n = argc > 2 ? (uint32_t)abs(atoi(argv[i])) : i == 2 ? 1000 : 10000;
    char name[64];
    wanted = everything;
    snprintf(name, sizeof name, "choose: %u to one sensor each", n);
    bench_choose(&x, name, &wanted, "machine%u", n);
    bench_publish(&x, name + 8, &wanted, "machine%u", n);
  }
  for (uint32_t k = 0; k < BATCHES; k++)
    hk_batch_free(x.batch[k]);
  hk_registry_free(x.registry);
  hk_device_close(x.device);
  hk_buffer_free(&out);
  uv_loop_close(&x.loop);
  return 0;
}
