/* Measures the daemon's cost of receiving points, compared with a loop that only reads, in one run:
 *
 *   binary over TCP: reading into one buffer and copying it into another; reading, decoding, filling chunks; the whole daemon;
 *   binary over UDP: recvmmsg and nothing else; the whole daemon. With 1 and with 59 points in a datagram.
 *
 * The daemon runs on a thread of this process, with a backend that returns every batch at once; its figure is the processor
 * time of the thread that reads the sockets. A separate process sends. It fills the socket with datagrams before the daemon
 * reads them, so that the figure does not depend on how the two processes are scheduled. Rounds of all kinds alternate, and
 * the median of each counts. At the end datagrams arrive as fast as they can be sent, and every point that was ever sent must
 * be accounted for: received, or in a datagram that the kernel counts as dropped. */
#include "daemon/config/config_reader.h"
#include "daemon/intake/chunk_fill.h"
#include "daemon/server/lifecycle.h"
#include "daemon/server/server.h"
#include "proto/wire/columns.h"
#include "tests/bench/programs/bench.h"
#include "tests/bench/programs/intake_sender.h"
#include "tests/bench/programs/load_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  ROUND = 1920, /* frames of a round */
  READ = HK_LOOP_BUFFER,
  BURST_ONE = 4096,
  BURST_MANY = 2048, /* datagrams */
  FLOOD = 400000,
  ROUNDS = 15,
};

/* --- a backend that returns every batch at once --------------------------------------------------------------------- */

struct idle_backend {
  struct hk_backend backend;
  struct hk_batch *done[HK_IN_FLIGHT + 1];
  uint32_t first, n;
  void (*ready)(void *arg);
  void *arg;
};

static uint64_t idle_need(const struct hk_backend *b, uint32_t detector, uint64_t sensors)
{
  (void)b;
  (void)detector;
  (void)sensors;
  return 0;
}
static int idle_add(struct hk_backend *b, uint32_t slot, uint32_t detector, uint64_t seed)
{
  (void)b;
  (void)slot;
  (void)detector;
  (void)seed;
  return 0;
}
static void idle_remove(struct hk_backend *b, uint32_t slot)
{
  (void)b;
  (void)slot;
}
static int idle_submit(struct hk_backend *backend, struct hk_batch *batch)
{
  struct idle_backend *b = (struct idle_backend *)backend;
  if (b->n == HK_IN_FLIGHT + 1)
    return HK_AGAIN;
  for (uint32_t i = 0; i < batch->n; i++)
    batch->score[i] = NAN;
  memset(batch->state, HK_STATE_WARMING, batch->n);
  batch->n_events = 0;
  batch->status = 0;
  b->done[(b->first + b->n++) % (HK_IN_FLIGHT + 1)] = batch;
  b->ready(b->arg);
  return 0;
}
static struct hk_batch *idle_reap(struct hk_backend *backend)
{
  struct idle_backend *b = (struct idle_backend *)backend;
  if (b->n == 0)
    return NULL;
  struct hk_batch *batch = b->done[b->first];
  b->first = (b->first + 1) % (HK_IN_FLIGHT + 1);
  b->n--;
  return batch;
}
static void idle_wait(struct hk_backend *b)
{
  (void)b;
}
static void *idle_alloc(struct hk_backend *b, size_t bytes)
{
  (void)b;
  return malloc(bytes);
}
static void idle_free(struct hk_backend *b, void *memory)
{
  (void)b;
  free(memory);
}
static void idle_close(struct hk_backend *b)
{
  free(b);
}

static int idle_open(struct hk_backend **out, const struct hk_backend_config *config, char *error, size_t size)
{
  static const struct hk_backend_ops ops = {
    .name = "idle",
    .need = idle_need,
    .add = idle_add,
    .remove = idle_remove,
    .submit = idle_submit,
    .reap = idle_reap,
    .wait = idle_wait,
    .alloc = idle_alloc,
    .free = idle_free,
    .close = idle_close,
  };
  struct idle_backend *b = need(calloc(1, sizeof *b));
  (void)error;
  (void)size;
  b->backend.ops = &ops;
  b->ready = config->ready;
  b->arg = config->ready_arg;
  *out = &b->backend;
  return 0;
}

/* --- the daemon, on a thread ----------------------------------------------------------------------------------------- */

static const struct hk_backend_kind kinds[] = { [HK_BACKEND_CPU] = { .open = idle_open, .batch = 1 << 17 } };

struct daemon {
  struct hk_server server;
  struct hk_config config;
  pthread_t thread;
  clockid_t clock; /* its processor time */
  uv_async_t hold; /* holds its loop until `release` */
  sem_t held, release;
};

static void on_hold(uv_async_t *hold)
{
  struct daemon *d = hold->data;
  sem_post(&d->held);
  sem_wait(&d->release);
}

static void on_config_fault(void *arg, const char *message)
{
  (void)arg;
  die("%s", message);
}

static uint16_t port_of(const struct hk_listener *l)
{
  return (uint16_t)atoi(strrchr(l->address, ':') + 1);
}

static void *serve(void *arg)
{
  struct daemon *d = arg;
  (void)hk_server_run(&d->server);
  return NULL;
}

static void daemon_open(struct daemon *d)
{
  static char text[] =
      "[daemon]\nbackend = cpu\nloops = 1\nmax_sensors = 100000\nbacklog = 4000000\nmax_pending = 4000000\nlog_level = warning\n"
      "[listen tcp]\nprotocol = binary\ntransport = tcp\naddress = 127.0.0.1:0\n"
      "[listen udp]\nprotocol = binary\ntransport = udp\naddress = 127.0.0.1:0\n"
      "[detector all]\nmatch = *\n";
  char error[256];
  FILE *file = need(fmemopen(text, sizeof text - 1, "r"));
  if (hk_config_read(&d->config, file, "bench", on_config_fault, NULL) != 0)
    exit(1);
  fclose(file);
  if (hk_server_open(&d->server, &d->config, kinds, error, sizeof error) != 0)
    die("%s", error);
  sem_init(&d->held, 0, 0);
  sem_init(&d->release, 0, 0);
  d->hold.data = d;
  if (uv_async_init(&d->server.net.loops[0].uv, &d->hold, on_hold) != 0 || pthread_create(&d->thread, NULL, serve, d) != 0 ||
      pthread_getcpuclockid(d->thread, &d->clock) != 0)
    die("cannot serve");
}

static void hold(struct daemon *d)
{
  uv_async_send(&d->hold);
  sem_wait(&d->held);
}

/* --- the loops beside it --------------------------------------------------------------------------------------------- */

static int listen_on(int type, uint16_t *port)
{
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t length = sizeof address;
  const int fd = socket(AF_INET, type, 0), buffer = 8 << 20; /* as the daemon's */
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 || (type == SOCK_STREAM && listen(fd, 1) != 0) ||
      (type == SOCK_DGRAM && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer) != 0) ||
      getsockname(fd, (struct sockaddr *)&address, &length) != 0)
    die("cannot listen: %s", strerror(errno));
  *port = ntohs(address.sin_port);
  return fd;
}

/* Seconds of processor time to read the stream and copy it. */
static double read_and_copy(int listener, struct desk *desk)
{
  static uint8_t from[READ], to[READ];
  sender_order(desk, ORDER_STREAM, ROUND, 0);
  const int fd = accept(listener, NULL, NULL);
  volatile uint8_t sink = 0;
  const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
  for (ssize_t n; (n = read(fd, from, sizeof from)) > 0;) {
    memcpy(to, from, (size_t)n);
    sink = (uint8_t)(sink + to[n - 1]);
  }
  const double took = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
  close(fd);
  sem_wait(&desk->done);
  return took;
}

/* Chunks return as from a shard that keeps up. */
struct round {
  struct hk_filling filling;
  struct hk_chunk *chunks[4];
  uint32_t next;
  uint64_t points;
};

static struct hk_chunk *next_chunk(void *arg, uint32_t shard)
{
  struct round *r = arg;
  struct hk_chunk *full = r->filling.chunk[shard], *c = r->chunks[r->next++ % 4];
  for (uint32_t i = 0; i < full->n_runs; i++)
    hk_source_done(full->runs[i].source, full->runs[i].n);
  r->points += full->n;
  hk_chunk_clear(c);
  return c;
}

/* Seconds to read, check and decode it into chunks. */
static double read_and_decode(int listener, struct desk *desk, const struct hk_registry *registry)
{
  static uint8_t buffer[READ];
  struct hk_inbox in = { .max_length = HK_FRAME_MAX };
  struct hk_source *source = need(hk_source_new());
  struct round r = { .filling = { .shards = 1, .full = next_chunk, .arg = &r } };
  const struct hk_decoder decoder = { hk_registry_lookup(registry), now_wall(), now_wall() + 60000000000 };
  for (int i = 0; i < 4; i++)
    r.chunks[i] = need(hk_chunk_new(0));
  r.filling.chunk[0] = next_chunk(&(struct round){ .filling = { .chunk = { r.chunks[3] } }, .chunks = { r.chunks[0] } }, 0);
  r.next = 1;
  sender_order(desk, ORDER_STREAM, ROUND, 0);
  const int fd = accept(listener, NULL, NULL);
  const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
  for (ssize_t n = 1; n > 0;) {
    struct hk_frame f;
    struct hk_points p;
    size_t room;
    int status;
    hk_inbox_lend(&in, buffer, sizeof buffer);
    uint8_t *space = hk_inbox_space(&in, &room);
    n = read(fd, space, room);
    hk_inbox_wrote(&in, n > 0 ? (size_t)n : 0);
    while ((status = hk_inbox_next(&in, &f)) == HK_FRAME_WHOLE)
      if (hk_points_read(&f, &p) != 0 || hk_fill_points(&r.filling, source, &decoder, &p, 0).n != p.n)
        die("points were lost");
    if (status != HK_FRAME_PART || hk_inbox_settle(&in) != 0)
      die("the stream is broken");
  }
  const double took = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
  (void)next_chunk(&r, 0);
  if (r.points != (uint64_t)ROUND * FRAME)
    die("%llu points of %llu came", (unsigned long long)r.points, (unsigned long long)ROUND * FRAME);
  close(fd);
  hk_inbox_free(&in);
  hk_source_close(source);
  for (int i = 0; i < 4; i++)
    hk_chunk_free(r.chunks[i]);
  sem_wait(&desk->done);
  return took;
}

/* Seconds of the daemon's thread for the same work in a whole daemon. */
static double serve_stream(struct daemon *d, struct desk *desk)
{
  const double start = seconds(d->clock);
  sender_order(desk, ORDER_DAEMON, ROUND, 0);
  sem_wait(&desk->done);
  return seconds(d->clock) - start;
}

static double receive_only(int fd, struct desk *desk, uint32_t count, uint32_t points)
{
  static uint8_t bytes[BATCH][2048];
  static struct mmsghdr messages[BATCH];
  static struct iovec parts[BATCH];
  for (int i = 0; i < BATCH; i++) {
    parts[i] = (struct iovec){ bytes[i], sizeof bytes[i] };
    messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
  }
  sender_order(desk, ORDER_BURST, count, points);
  sem_wait(&desk->done);
  const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
  uint32_t came = 0;
  for (int n; (n = recvmmsg(fd, messages, BATCH, MSG_DONTWAIT, NULL)) > 0;)
    came += (uint32_t)n;
  const double took = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
  if (came != count)
    die("the socket holds %u datagrams of %u", came, count);
  return took;
}

static double serve_datagrams(struct daemon *d, struct desk *desk, uint32_t count, uint32_t points)
{
  struct hk_counters before, after;
  hk_server_sum(&d->server, &before);
  hold(d);
  sender_order(desk, ORDER_FEED, count, points);
  sem_wait(&desk->done);
  const double start = seconds(d->clock);
  sem_post(&d->release);
  for (int ms = 0; ms < 5000; ms++) {
    usleep(1000);
    hk_server_sum(&d->server, &after);
    if (after.datagrams - before.datagrams == count)
      return seconds(d->clock) - start;
  }
  die("the daemon's socket held %llu datagrams of %u", (unsigned long long)(after.datagrams - before.datagrams), count);
}

/* --- figures --------------------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

enum { COPY, DECODE, DAEMON, RECEIVE_ONE, DAEMON_ONE, RECEIVE_MANY, DAEMON_MANY, KINDS };

/* The first round warms up. */
static void show(double took[KINDS][ROUNDS + 1])
{
  static const struct {
    const char *name;
    uint32_t beside;
    double points, target; /* M points/s a core, of the daemon and of the loop beside it */
    double share;
  } kind[KINDS] = {
    { "TCP, read and copy", COPY, (double)ROUND * FRAME, 0, 0 },
    { "TCP, read, decode, fill chunks", COPY, (double)ROUND * FRAME, 50, 0.15 },
    { "TCP, the daemon's loop", COPY, (double)ROUND * FRAME, 50, 0.15 },
    { "UDP, 1 point: recvmmsg", RECEIVE_ONE, BURST_ONE, 0, 0 },
    { "UDP, 1 point: the daemon's loop", RECEIVE_ONE, BURST_ONE, 0, 0.8 },
    { "UDP, 59 points: recvmmsg", RECEIVE_MANY, (double)BURST_MANY * MANY, 0, 0 },
    { "UDP, 59 points: the daemon's loop", RECEIVE_MANY, (double)BURST_MANY * MANY, 20, 0 },
  };
  for (int k = 0; k < KINDS; k++)
    qsort(took[k] + 1, ROUNDS, sizeof(double), ascending);
  printf("%-36s %16s %18s %18s\n", "", "M points/s/core", "of that beside it", "the best of each");
  for (int k = 0; k < KINDS; k++) {
    const double middle = took[k][1 + ROUNDS / 2], beside = took[kind[k].beside][1 + ROUNDS / 2];
    printf("%-36s %16.1f %17.0f%% %17.0f%%", kind[k].name, 1e-6 * kind[k].points / middle, 100 * beside / middle,
           100 * took[kind[k].beside][1] / took[k][1]);
    if (kind[k].target > 0 && kind[k].share > 0)
      printf("  (asked: %.0f M or %.0f%%)", kind[k].target, 100 * kind[k].share);
    else if (kind[k].target > 0)
      printf("  (asked: %.0f M)", kind[k].target);
    else if (kind[k].share > 0)
      printf("  (asked: %.0f%%)", 100 * kind[k].share);
    putchar('\n');
  }
}

/* Receives datagrams as fast as they arrive; then accounts for everything that was sent. */
static void reconcile(struct daemon *d, struct desk *desk)
{
  struct hk_counters before, c;
  hk_server_sum(&d->server, &before);
  const uint64_t sent_before = desk->sent_datagrams;
  const double start = seconds(d->clock), wall = seconds(CLOCK_MONOTONIC);
  sender_order(desk, ORDER_FEED, FLOOD, MANY);
  sem_wait(&desk->done);
  sender_order(desk, ORDER_FENCE, 0, 0);
  sem_wait(&desk->done);
  const double took = seconds(d->clock) - start, passed = seconds(CLOCK_MONOTONIC) - wall;
  sleep(2); /* the daemon reads the kernel's count every second */
  hk_server_sum(&d->server, &c);
  const uint64_t sent = desk->sent_datagrams - sent_before, came = c.datagrams - before.datagrams;
  printf("\nflood of %llu datagrams of %d points: %.1f%% came, %.0f%% of a core was busy with them\n", (unsigned long long)sent,
         MANY, 100.0 * (double)came / (double)sent, 100 * took / passed);
  const uint64_t over_tcp = desk->sent_frames * FRAME, lost = desk->sent_datagrams - c.datagrams;
  printf("datagrams sent %llu = taken %llu + thrown away by the kernel %llu\n", (unsigned long long)desk->sent_datagrams,
         (unsigned long long)c.datagrams, (unsigned long long)c.kernel_lost);
  printf("points sent %llu = in %llu + in lost datagrams %llu\n", (unsigned long long)(over_tcp + desk->datagram_points),
         (unsigned long long)c.in, (unsigned long long)(over_tcp + desk->datagram_points - c.in));
  printf("points in %llu = without a score yet %llu + pending %llu\n", (unsigned long long)c.in, (unsigned long long)c.unscored,
         (unsigned long long)hk_counters_pending(&c));
  if (lost != c.kernel_lost || over_tcp + desk->datagram_points - c.in != lost * MANY || c.bad_datagrams + c.strangers > 0 ||
      c.unscored != c.in)
    die("the counts do not agree");
}

int main(void)
{
  static struct daemon d;
  static double took[KINDS][ROUNDS + 1];
  struct desk *desk = mmap(NULL, sizeof *desk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (desk == MAP_FAILED || sem_init(&desk->go, 1, 0) != 0 || sem_init(&desk->done, 1, 0) != 0)
    die("no memory to share");
  const pid_t child = fork();
  if (child == 0)
    sender_run(desk);
  const int stream = listen_on(SOCK_STREAM, &desk->tcp), datagrams = listen_on(SOCK_DGRAM, &desk->udp);
  daemon_open(&d);
  desk->daemon_tcp = port_of(&d.server.net.sockets.listeners[0]);
  desk->daemon_udp = port_of(&d.server.net.loops[0].datagrams[0]);
  sem_post(&desk->go);
  sem_wait(&desk->done);
  for (int round = 0; round <= ROUNDS; round++) {
    took[COPY][round] = read_and_copy(stream, desk);
    took[DECODE][round] = read_and_decode(stream, desk, d.server.shards.registry);
    took[DAEMON][round] = serve_stream(&d, desk);
    took[RECEIVE_ONE][round] = receive_only(datagrams, desk, BURST_ONE, 1);
    took[DAEMON_ONE][round] = serve_datagrams(&d, desk, BURST_ONE, 1);
    took[RECEIVE_MANY][round] = receive_only(datagrams, desk, BURST_MANY, MANY);
    took[DAEMON_MANY][round] = serve_datagrams(&d, desk, BURST_MANY, MANY);
  }
  show(took);
  reconcile(&d, desk);
  sender_order(desk, ORDER_END, 0, 0);
  waitpid(child, NULL, 0);
  return 0;
}
