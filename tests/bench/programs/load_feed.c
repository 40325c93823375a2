/* The load generator of the socket-to-socket benches: K connections on T threads feed S sensors, tick after tick.
 *
 *   load_feed --port P --sensors 1000000 --connections 16 --threads 4 --warm 288 --seconds 3 [--rate POINTS/S] ...
 *
 *   connect and register -> `warm` ticks as fast as they go, over TCP, with times before --mark -> a line on standard input
 *   -> points with times after --mark for --seconds, whole ticks of each connection -> BYE, FAREWELL
 *
 * Without --rate it sends as fast as the daemon reads, over all connections by turns, as much as each has room for; the
 * points' times count up from --mark. With --rate, each frame has a due time; these are spread evenly over the tick. The due
 * time is the time of its points, also if it is sent late, so a subscriber sees the delay from then on. The lateness of frames is
 * measured (`late`).
 *
 * Prints one JSON object a line: its progress (`event`), and at the end what was sent. --ticks FILE gets a line `first count
 * ticks` for each connection: the number of points sent for each of its sensors. Exits with 1 after any error. */
#include "daemon/base/histogram.h"
#include "tests/bench/programs/load_points.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DATAGRAMS 64u
#define STEP 1024  /* ns between ticks without a rate */
#define SPIN 60000 /* the clock is polled without a pause from so many ns before a frame is due */
#define HOUR 3600000000000

struct settings {
  int64_t port, udp, line, line_udp; /* of the daemon's listeners; those that are not used may be 0 */
  const char *protocol;              /* binary, binary-udp, line, line-udp */
  const char *prefix, *layout, *ticks;
  int64_t sensors, connections, threads, frame, burst, warm, warm_frame, warm_step, buffer, mark;
  double seconds, rate;
};

struct connection {
  struct peer peer; /* fd: of the line connection, where lines are sent */
  int udp;
  struct group group;
  uint64_t points, datagrams, datagram_points;
  uint8_t *out; /* bytes start..size wait for the socket */
  size_t start, size;
};

/* Shared by all threads; made before they start. */
struct load {
  struct settings settings;
  struct maker warm_maker, maker;
  uint32_t *handles;
  bool over_udp;
  uint64_t frames_a_tick; /* of all threads, as many of each as of the one that has the most */
  pthread_barrier_t barrier;
  int64_t begin_at; /* ns, wall clock; set before the last barrier */
};

struct feeder {
  struct load *load;
  pthread_t thread;
  uint32_t number;
  struct connection *connections;
  uint32_t n;
  uint64_t frames_a_tick; /* of its connections */
  uint64_t warmed, sent;  /* points */
  int64_t begun, ended;   /* ns, wall clock: of the measured part */
  struct hk_histogram late;
};

static void open_connection(const struct load *l, struct connection *c)
{
  const struct settings *s = &l->settings;
  const int buffer = (int)s->buffer;
  c->udp = -1;
  if (l->maker.lines)
    c->peer.fd = dial((uint16_t)s->line, SOCK_STREAM);
  else
    peer_open(&c->peer, (uint16_t)s->port);
  if (buffer > 0 && setsockopt(c->peer.fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer) != 0)
    die("SO_SNDBUF: %s", strerror(errno));
  if (l->over_udp)
    c->udp = dial((uint16_t)(l->maker.lines ? s->line_udp : s->udp), SOCK_DGRAM);
  if (!l->maker.lines)
    peer_register(&c->peer, s->prefix, c->group.first, c->group.count, l->handles + c->group.first);
}

/* Fills the connection's buffer with frames up to `burst` bytes, at least one, and none beyond `ticks`. */
static void fill(struct connection *c, const struct maker *m, struct scratch *scratch, size_t burst, int64_t base, int64_t step,
                 uint32_t ticks)
{
  c->start = c->size = 0;
  do {
    size_t size;
    c->points += make_points(m, scratch, &c->group, base + step * c->group.tick, (struct place){ 0 }, c->out + c->size, &size);
    c->size += size;
  } while (c->size + make_room(m) <= burst && c->group.tick < ticks);
}

/* Whether any of it went out. */
static bool push(struct connection *c)
{
  const ssize_t n = send(c->peer.fd, c->out + c->start, c->size - c->start, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN)
    die("cannot send: %s", strerror(errno));
  c->start += n > 0 ? (size_t)n : 0;
  return n > 0;
}

static void wait_for_room(const struct feeder *f, struct pollfd *waits)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->n; i++)
    if (f->connections[i].start < f->connections[i].size)
      waits[n++] = (struct pollfd){ f->connections[i].peer.fd, POLLOUT, 0 };
  (void)poll(waits, n, 100);
}

/* Sends as fast as possible: gives each connection by turns as many points as it has room for, until each has sent
 * `ticks` ticks or, from `until` on, has ended a tick. */
static void flood(struct feeder *f, const struct maker *m, struct scratch *scratch, size_t burst, int64_t base, int64_t step,
                  uint32_t ticks, int64_t until)
{
  struct pollfd *waits = need(malloc(f->n * sizeof *waits));
  for (;;) {
    bool progress = false, open = false;
    const bool late = now_wall() >= until;
    for (uint32_t i = 0; i < f->n; i++) {
      struct connection *c = &f->connections[i];
      if (c->start == c->size && c->group.tick < ticks && !(late && c->group.next == 0))
        fill(c, m, scratch, burst, base, step, late ? c->group.tick + 1 : ticks);
      if (c->start < c->size) {
        progress |= push(c);
        open |= c->start < c->size || c->group.tick < ticks;
      }
    }
    if (!open)
      break;
    if (!progress)
      wait_for_room(f, waits);
  }
  free(waits);
}

/* Adds one datagram to the bundle; returns its points. */
static uint32_t add_datagram(const struct maker *m, struct connection *c, struct scratch *scratch, int64_t time, uint8_t *out,
                             struct iovec *part)
{
  const struct place place = { c->peer.feed, c->datagrams + 1, c->datagram_points };
  size_t size;
  const uint32_t n = make_points(m, scratch, &c->group, time, place, out, &size);
  *part = (struct iovec){ out, size };
  c->datagrams++;
  c->datagram_points += n;
  c->points += n;
  return n;
}

static void send_datagrams(struct connection *c, struct mmsghdr *messages, uint32_t n)
{
  for (uint32_t at = 0; at < n;) {
    const int sent = sendmmsg(c->udp, messages + at, n - at, 0);
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS)
      die("cannot send datagrams: %s", strerror(errno));
    at += sent > 0 ? (uint32_t)sent : 0;
  }
}

static void flood_datagrams(struct feeder *f, struct scratch *scratch, int64_t base, int64_t until)
{
  const struct maker *m = &f->load->maker;
  const size_t room = make_room(m);
  uint8_t *bytes = need(malloc(DATAGRAMS * room));
  struct iovec parts[DATAGRAMS];
  struct mmsghdr messages[DATAGRAMS];
  for (bool late = false; !late;) {
    late = now_wall() >= until;
    for (uint32_t i = 0; i < f->n; i++) {
      struct connection *c = &f->connections[i];
      do {
        uint32_t n = 0;
        while (n < DATAGRAMS && !(late && c->group.next == 0)) {
          add_datagram(m, c, scratch, base + STEP * (int64_t)c->group.tick, bytes + n * room, &parts[n]);
          messages[n] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &parts[n], .msg_iovlen = 1 } };
          n++;
        }
        send_datagrams(c, messages, n);
      } while (late && c->group.next != 0);
    }
  }
  free(bytes);
}

static void wait_until(int64_t due)
{
  int64_t now = now_wall();
  if (due - now > SPIN) {
    const struct timespec rest = { (due - now - SPIN) / 1000000000, (due - now - SPIN) % 1000000000 };
    nanosleep(&rest, NULL);
  }
  while (now_wall() < due)
    ;
}

/* Sends every frame at its due time. */
static void pace(struct feeder *f, struct scratch *scratch, int64_t begin, int64_t until)
{
  const struct load *l = f->load;
  const struct settings *s = &l->settings;
  const struct maker *m = &l->maker;
  const double frame_time = (double)s->sensors / s->rate * 1e9 / (double)l->frames_a_tick;
  uint8_t *bytes = need(malloc(make_room(m)));
  for (uint64_t tick = 0;; tick++) {
    uint64_t frame = tick * l->frames_a_tick + f->number;
    if (begin + (int64_t)((double)frame * frame_time) >= until)
      break;
    for (uint32_t i = 0; i < f->n; i++) {
      struct connection *c = &f->connections[i];
      do {
        const int64_t due = begin + (int64_t)((double)frame * frame_time);
        frame += s->threads;
        struct iovec part;
        wait_until(due);
        hk_histogram_add(&f->late, now_wall() - due, 1);
        if (l->over_udp) {
          add_datagram(m, c, scratch, due, bytes, &part);
          struct mmsghdr message = { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } };
          send_datagrams(c, &message, 1);
        } else {
          c->points += make_points(m, scratch, &c->group, due, (struct place){ 0 }, bytes, &part.iov_len);
          send_all(c->peer.fd, bytes, part.iov_len);
        }
      } while (c->group.next != 0);
    }
  }
  free(bytes);
}

static uint64_t points_of(const struct feeder *f)
{
  uint64_t points = 0;
  for (uint32_t i = 0; i < f->n; i++)
    points += f->connections[i].points;
  return points;
}

static void finish(struct feeder *f)
{
  struct hk_frame frame;
  uint8_t bytes[64];
  for (uint32_t i = 0; i < f->n; i++) {
    struct connection *c = &f->connections[i];
    struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
    if (f->load->maker.lines ? shutdown(c->peer.fd, SHUT_WR) != 0 : hk_bye_write(&w, 1, c->datagrams, c->datagram_points) != 0)
      die("cannot end a connection");
    send_all(c->peer.fd, w.data, w.size);
  }
  for (uint32_t i = 0; i < f->n; i++) {
    struct connection *c = &f->connections[i];
    if (f->load->maker.lines) {
      if (recv(c->peer.fd, bytes, sizeof bytes, 0) != 0)
        die("the daemon said something on a line connection");
    } else {
      peer_await(&c->peer, HK_FAREWELL, &frame);
    }
    close(c->peer.fd);
  }
}

static void *run(void *argument)
{
  struct feeder *f = argument;
  struct load *l = f->load;
  const struct settings *s = &l->settings;
  struct scratch scratch;
  char name[16];
  snprintf(name, sizeof name, "feeder %u", f->number);
  (void)pthread_setname_np(pthread_self(), name);
  (void)prctl(PR_SET_TIMERSLACK, 1);
  scratch_open(&scratch, l->warm_maker.frame > l->maker.frame ? l->warm_maker.frame : l->maker.frame);
  const size_t one = make_room(&l->maker), warm_one = make_room(&l->warm_maker), burst = (size_t)s->burst;
  for (uint32_t i = 0; i < f->n; i++) {
    open_connection(l, &f->connections[i]);
    f->connections[i].out = need(malloc(one > warm_one ? one + burst : warm_one + burst));
  }
  pthread_barrier_wait(&l->barrier); /* registered */
  flood(f, &l->warm_maker, &scratch, burst, s->mark - s->warm * s->warm_step - HOUR, s->warm_step, (uint32_t)s->warm, INT64_MAX);
  f->warmed = points_of(f);
  pthread_barrier_wait(&l->barrier); /* warm */
  pthread_barrier_wait(&l->barrier); /* the order to begin */
  const int64_t until = l->begin_at + (int64_t)(s->seconds * 1e9);
  f->begun = l->begin_at;
  if (s->rate > 0)
    pace(f, &scratch, l->begin_at, until);
  else if (l->over_udp)
    flood_datagrams(f, &scratch, s->mark, until);
  else
    flood(f, &l->maker, &scratch, burst, s->mark, STEP, UINT32_MAX, until);
  f->ended = now_wall();
  f->sent = points_of(f) - f->warmed;
  finish(f);
  return NULL;
}

static void say(const char *event)
{
  printf("{\"event\":\"%s\",\"time\":%" PRId64 "}\n", event, now_wall());
  fflush(stdout);
}

static void write_ticks(const struct connection *connections, const struct settings *s)
{
  FILE *file = fopen(s->ticks, "w");
  if (!file)
    die("%s: %s", s->ticks, strerror(errno));
  for (int64_t i = 0; i < s->connections; i++)
    fprintf(file, "%u %u %u\n", connections[i].group.first, connections[i].group.count, connections[i].group.tick);
  if (fclose(file) != 0)
    die("%s: %s", s->ticks, strerror(errno));
}

static void report(const struct feeder *feeders, const struct settings *s)
{
  struct hk_histogram *late = need(calloc(1, sizeof *late));
  uint64_t warmed = 0, sent = 0, datagrams = 0, frames = 0;
  int64_t begun = INT64_MAX, ended = 0;
  for (int64_t i = 0; i < s->threads; i++) {
    const struct feeder *f = &feeders[i];
    warmed += f->warmed;
    sent += f->sent;
    begun = f->begun < begun ? f->begun : begun;
    ended = f->ended > ended ? f->ended : ended;
    hk_histogram_sum(late, &f->late);
    for (uint32_t k = 0; k < f->n; k++)
      datagrams += f->connections[k].datagrams;
  }
  frames = hk_histogram_count(late);
  printf("{\"event\":\"done\",\"warmed\":%" PRIu64 ",\"sent\":%" PRIu64 ",\"datagrams\":%" PRIu64 ",\"begun\":%" PRId64
         ",\"ended\":%" PRId64 ",\"frames\":%" PRIu64 ",\"late_p50_us\":%.1f,\"late_p99_us\":%.1f,\"late_most_us\":%.1f}\n",
         warmed, sent, datagrams, begun, ended, frames, (double)hk_histogram_quantile(late, 0.5) / 1e3,
         (double)hk_histogram_quantile(late, 0.99) / 1e3, (double)hk_histogram_quantile(late, 1) / 1e3);
  free(late);
}

/* Names for lines, side by side. */
static char *make_names(const struct settings *s)
{
  const size_t length = strlen(s->prefix) + NAME_DIGITS;
  char *names = need(malloc((size_t)s->sensors * length + 1));
  for (int64_t i = 0; i < s->sensors; i++)
    name_of(s->prefix, (uint32_t)i, names + (size_t)i * length);
  return names;
}

static void set_makers(struct load *l)
{
  const struct settings *s = &l->settings;
  struct maker *m = &l->maker;
  m->lines = strncmp(s->protocol, "line", 4) == 0;
  l->over_udp = strlen(s->protocol) > 4 && strcmp(s->protocol + strlen(s->protocol) - 4, "-udp") == 0;
  if (!m->lines && strncmp(s->protocol, "binary", 6) != 0)
    die("--protocol %s: binary, binary-udp, line or line-udp", s->protocol);
  l->handles = need(calloc((size_t)s->sensors, sizeof *l->handles));
  m->each = strcmp(s->layout, "each") == 0;
  m->frame = (uint32_t)s->frame;
  m->handle = l->handles;
  m->name = m->lines ? make_names(s) : NULL;
  m->name_length = (uint32_t)strlen(s->prefix) + NAME_DIGITS;
  maker_tables(m);
  l->warm_maker = *m;
  l->warm_maker.each = false;
  l->warm_maker.frame = (uint32_t)s->warm_frame;
}

/* Divides sensors and connections into parts as equal as possible. */
static void divide(struct load *l, struct feeder *feeders, struct connection *connections)
{
  const struct settings *s = &l->settings;
  uint64_t frames = 0;
  for (int64_t i = 0; i < s->connections; i++) {
    const int64_t first = i * s->sensors / s->connections, end = (i + 1) * s->sensors / s->connections;
    connections[i].group = (struct group){ .first = (uint32_t)first, .count = (uint32_t)(end - first) };
    if (first == end)
      die("more connections than sensors");
  }
  for (int64_t i = 0; i < s->threads; i++) {
    const int64_t first = i * s->connections / s->threads, end = (i + 1) * s->connections / s->threads;
    feeders[i].load = l;
    feeders[i].number = (uint32_t)i;
    feeders[i].connections = connections + first;
    feeders[i].n = (uint32_t)(end - first);
    for (int64_t k = first; k < end; k++)
      feeders[i].frames_a_tick += (connections[k].group.count + l->maker.frame - 1) / l->maker.frame;
    frames = feeders[i].frames_a_tick > frames ? feeders[i].frames_a_tick : frames;
  }
  l->frames_a_tick = frames * (uint64_t)s->threads;
}

static void read_settings(int argc, char **argv, struct settings *s)
{
  const struct setting settings[] = {
    { "--port", SETTING_NUMBER, &s->port },
    { "--udp", SETTING_NUMBER, &s->udp },
    { "--line", SETTING_NUMBER, &s->line },
    { "--line-udp", SETTING_NUMBER, &s->line_udp },
    { "--protocol", SETTING_TEXT, &s->protocol },
    { "--prefix", SETTING_TEXT, &s->prefix },
    { "--layout", SETTING_TEXT, &s->layout }, /* tick or each, see load_points.h */
    { "--sensors", SETTING_NUMBER, &s->sensors },
    { "--connections", SETTING_NUMBER, &s->connections },
    { "--threads", SETTING_NUMBER, &s->threads },
    { "--frame", SETTING_NUMBER, &s->frame },   /* points of a frame or datagram */
    { "--burst", SETTING_NUMBER, &s->burst },   /* bytes handed to a socket at once, as far as frames go */
    { "--buffer", SETTING_NUMBER, &s->buffer }, /* SO_SNDBUF; 0: the system's */
    { "--warm", SETTING_NUMBER, &s->warm },     /* ticks */
    { "--warm-frame", SETTING_NUMBER, &s->warm_frame },
    { "--warm-step", SETTING_NUMBER, &s->warm_step }, /* ns between them */
    { "--seconds", SETTING_REAL, &s->seconds },
    { "--rate", SETTING_REAL, &s->rate },   /* points a second of all connections; 0: as fast as it goes */
    { "--mark", SETTING_NUMBER, &s->mark }, /* ns: the measured points' times are after it; default: now */
    { "--ticks", SETTING_TEXT, &s->ticks },
    { 0 },
  };
  s->mark = now_wall();
  parse_settings(argc, argv, settings);
  if (s->sensors < 1 || s->connections < 1 || s->threads < 1 || s->threads > s->connections || s->frame < 1 ||
      s->warm_frame < 1 || s->warm < 0 || s->burst < 0)
    die("a number is out of range");
}

int main(int argc, char **argv)
{
  struct load *l = need(calloc(1, sizeof *l));
  struct settings s = { .protocol = "binary",
                        .prefix = "s",
                        .layout = "tick",
                        .sensors = 1000,
                        .connections = 1,
                        .threads = 1,
                        .frame = 4096,
                        .burst = 65536,
                        .warm = 0,
                        .warm_frame = 8192,
                        .warm_step = 1000000,
                        .seconds = 1 };
  read_settings(argc, argv, &s);
  raise_descriptors();
  l->settings = s;
  set_makers(l);
  struct feeder *feeders = need(calloc((size_t)s.threads, sizeof *feeders));
  struct connection *connections = need(calloc((size_t)s.connections, sizeof *connections));
  divide(l, feeders, connections);
  if (pthread_barrier_init(&l->barrier, NULL, (unsigned)s.threads + 1) != 0)
    die("no barrier");
  for (int64_t i = 0; i < s.threads; i++)
    if (pthread_create(&feeders[i].thread, NULL, run, &feeders[i]) != 0)
      die("no thread");
  pthread_barrier_wait(&l->barrier);
  say("registered");
  pthread_barrier_wait(&l->barrier);
  say("warm");
  if (getchar() == EOF)
    die("standard input ended before a line came");
  l->begin_at = now_wall();
  pthread_barrier_wait(&l->barrier);
  for (int64_t i = 0; i < s.threads; i++)
    pthread_join(feeders[i].thread, NULL);
  if (s.ticks)
    write_ticks(connections, &s);
  report(feeders, &s);
  return 0;
}
