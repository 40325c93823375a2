/* The subscriber of the socket-to-socket benches: reads results and events of one or many subscriptions, counts them,
 * checks their order, and measures latencies.
 *
 *   load_tail --port P [--subscribers N] [--what 3] [--min-score Z] [--glob G | --one PREFIX] [--mark NS] [--ticks FILE]
 *
 * connect, subscribe -> `subscribed` on standard output -> read until standard input ends -> BYE -> FAREWELL -> one JSON object
 *
 * Every result past --mark must have a time after that of its sensor's last one (`disorder` counts those that have not), and with
 * --ticks, the file that load_feed writes, every sensor must have had as many results as points were sent for it (`incomplete`
 * counts sensors that have not); both of the first subscription only. Latency is the wall clock when a frame was read, less the
 * point's time, of points whose time is `--skip` ms or more after that of the first one past --mark: what load_feed sends at a
 * rate. The rate is that of results past --mark, from the first to the last. With --one, subscriber i wants the one sensor i.
 * --busy 1 looks for data without a pause, so that how fast this process wakes up is not part of the latency. Any fault ends it
 * with 1. */
#include "daemon/base/histogram.h"
#include "proto/wire/columns.h"
#include "proto/wire/event_message.h"
#include "proto/wire/scores.h"
#include "tests/bench/programs/load_peer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOTS (1u << 24) /* a handle's lower bits: see REGISTERED in PROTOCOL.md; here they are just taken to be small */
#define READ_MOST (512u << 10)
#define STATES 5
#define PART 512        /* ns; points of one sensor are twice that apart */
#define SLICE 100000000 /* ns */
#define SLICES 600
#define LONG_FRAME 1024 /* results */
#define SAMPLED 16

struct sensor {
  uint32_t last;  /* time of its last result past the mark, in parts of PART ns, + 1 */
  uint32_t count; /* results */
};

struct subscriber {
  struct peer peer;
  bool over;
};

struct tail {
  struct sensor *sensors;   /* by slot */
  uint32_t *number;         /* of the sensor, + 1; by slot */
  int64_t *time;            /* of one frame's results */
  int64_t mark, skip, from; /* ns; from: when latencies begin to count; 0 = not yet known */
  uint64_t results, states[STATES], scored, events[6], gap_results, gap_events, disorder;
  uint64_t frames, bytes;
  uint64_t marked;         /* results past the mark */
  int64_t first, last;     /* ns, wall clock: when the first and the last of them came */
  uint64_t slices[SLICES]; /* results past the mark by time of arrival */
  struct hk_histogram latency;
};

/* n results past the mark have come; `time` is that of the first of them. */
static void take_marked(struct tail *t, int64_t time, uint32_t n, int64_t now)
{
  if (t->marked == 0) {
    t->first = now;
    t->from = time + t->skip;
  }
  t->marked += n;
  t->last = now;
  const uint64_t slice = (uint64_t)(now - t->first) / SLICE;
  t->slices[slice < SLICES ? slice : SLICES - 1] += n;
}

static void take_latency(struct tail *t, int64_t time, uint32_t n, int64_t now)
{
  if (t->marked > 0 && time >= t->from)
    hk_histogram_add(&t->latency, now - time, n);
}

static uint32_t stamp_of(const struct tail *t, int64_t time)
{
  return time < t->mark ? 0 : (uint32_t)((time - t->mark) / PART) + 1;
}

/* Returns true if a result is not later than the sensor's last one. */
static inline bool count_result(struct tail *t, const uint8_t *handle, uint32_t stamp)
{
  uint32_t slot;
  memcpy(&slot, handle, sizeof slot);
  struct sensor *sensor = &t->sensors[slot % SLOTS];
  const bool disorder = stamp != 0 && stamp <= sensor->last;
  sensor->last = stamp;
  sensor->count++;
  return disorder;
}

/* Results with one time for all, which are most, and with a time for each. */
static void take_one_time(struct tail *t, const struct hk_scores *s, int64_t now, bool check)
{
  const uint8_t *handles = s->handles;
  const uint32_t stamp = stamp_of(t, s->base);
  uint64_t disorder = 0;
  if (s->base >= t->mark)
    take_marked(t, s->base, s->n, now);
  take_latency(t, s->base, s->n, now);
  for (uint32_t i = 0; check && i < s->n; i++)
    disorder += count_result(t, handles + 4 * (size_t)i, stamp);
  t->disorder += disorder;
}

/* In a long frame the latency of one of SAMPLED results is measured, and counts for all of them. */
static void take_times(struct tail *t, const struct hk_scores *s, int64_t now, bool check)
{
  const uint8_t *handles = s->handles;
  const uint32_t step = s->n >= LONG_FRAME ? SAMPLED : 1;
  uint32_t marked = 0, first = 0;
  uint64_t disorder = 0;
  hk_scores_times(s, t->time);
  for (uint32_t i = 0; i < s->n; i++)
    marked += t->time[i] >= t->mark;
  while (marked > 0 && t->time[first] < t->mark)
    first++;
  if (marked > 0)
    take_marked(t, t->time[first], marked, now);
  for (uint32_t i = 0; marked > 0 && i < s->n; i += step)
    take_latency(t, t->time[i], s->n - i < step ? s->n - i : step, now);
  for (uint32_t i = 0; check && i < s->n; i++)
    disorder += count_result(t, handles + 4 * (size_t)i, stamp_of(t, t->time[i]));
  t->disorder += disorder;
}

static void take_scores(struct tail *t, const struct hk_frame *f, int64_t now, bool check)
{
  struct hk_scores s;
  if (hk_scores_read(f, &s) != 0)
    die("SCORES cannot be read");
  const uint8_t *state = s.states, *score = s.scores;
  uint32_t states[STATES] = { 0 }, scored = 0;
  if (!state)
    states[HANKEL_OK] = s.n;
  for (uint32_t i = 0; state && i < s.n; i++) {
    if (state[i] >= STATES)
      die("a result has state %u", state[i]);
    states[state[i]]++;
  }
  for (uint32_t i = 0; i < s.n; i++) {
    float z;
    memcpy(&z, score + 4 * (size_t)i, sizeof z);
    scored += z == z;
  }
  for (unsigned i = 0; i < STATES; i++)
    t->states[i] += states[i];
  t->scored += scored;
  t->results += s.n;
  if (s.time_kind == HK_TIME_ONE)
    take_one_time(t, &s, now, check);
  else
    take_times(t, &s, now, check);
}

static void take_names(struct tail *t, const struct hk_frame *f)
{
  struct hk_list list;
  if (hk_names_read(f, &list) != 0)
    die("NAMES cannot be read");
  for (uint32_t i = 0; i < list.n; i++) {
    uint32_t handle;
    struct hk_string name;
    char text[32];
    hk_names_next(&list, &handle, &name);
    if (name.length < NAME_DIGITS || name.length >= sizeof text)
      continue;
    memcpy(text, name.data, name.length);
    text[name.length] = 0;
    t->number[handle % SLOTS] = (uint32_t)strtoul(text + name.length - NAME_DIGITS, NULL, 10) + 1;
  }
}

static void take_events(struct tail *t, const struct hk_frame *f)
{
  struct hk_list list;
  if (hk_events_read(f, &list) != 0)
    die("EVENTS cannot be read");
  for (uint32_t i = 0; i < list.n; i++) {
    struct hk_event_message e;
    hk_event_next(&list, &e);
    if (e.kind >= sizeof t->events / sizeof *t->events)
      die("an event is of kind %u", e.kind);
    t->events[e.kind]++;
  }
}

static void take(struct tail *t, struct subscriber *s, const struct hk_frame *f, int64_t now, bool first)
{
  uint64_t results, events;
  t->frames++;
  switch (f->type) {
  case HK_SCORES:
    take_scores(t, f, now, first);
    break;
  case HK_NAMES:
    if (first)
      take_names(t, f);
    break;
  case HK_EVENTS:
    take_events(t, f);
    break;
  case HK_GAP:
    if (hk_gap_read(f, &results, &events) != 0)
      die("GAP cannot be read");
    t->gap_results += results;
    t->gap_events += events;
    break;
  case HK_FAREWELL:
    s->over = true;
    break;
  case HK_ERROR:
    peer_error(f);
  default:
    die("the daemon sent a frame of type %02x", f->type);
  }
}

static void receive(struct tail *t, struct subscriber *s, bool first)
{
  struct hk_frame f;
  size_t room;
  uint8_t *space = need(hk_inbox_space(&s->peer.in, &room));
  const ssize_t n = recv(s->peer.fd, space, room < READ_MOST ? room : READ_MOST, MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN)
    return;
  if (n <= 0)
    die("the daemon closed a subscription%s%s", n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
  const int64_t now = now_wall();
  hk_inbox_wrote(&s->peer.in, (size_t)n);
  t->bytes += (uint64_t)n;
  int status;
  while ((status = hk_inbox_next(&s->peer.in, &f)) == HK_FRAME_WHOLE)
    take(t, s, &f, now, first);
  if (status != HK_FRAME_PART)
    die("what the daemon sent is no frame (%d)", status);
}

static void subscribe(struct peer *p, uint32_t what, double min_score, const char *glob)
{
  uint8_t bytes[256];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  struct hk_frame f;
  const struct hk_subscription m = { what, (float)min_score, hk_string(glob), HANKEL_NOW };
  if (hk_subscribe_write(&w, 1, &m) != 0)
    die("SUBSCRIBE does not fit");
  send_all(p->fd, w.data, w.size);
  peer_await(p, HK_DONE, &f);
}

static void say_bye(struct peer *p)
{
  uint8_t bytes[64];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  if (hk_bye_write(&w, 1, 0, 0) != 0)
    die("BYE does not fit");
  send_all(p->fd, w.data, w.size);
}

/* The number of sensors that have not had as many results as points were sent for them, or that are unknown. */
static uint64_t count_incomplete(const struct tail *t, const char *path, uint32_t warm)
{
  FILE *file = fopen(path, "r");
  uint32_t first, count, ticks, all = 0;
  if (!file)
    die("%s: %s", path, strerror(errno));
  while (fscanf(file, "%u %u %u", &first, &count, &ticks) == 3)
    all = first + count > all ? first + count : all;
  uint32_t *owed = need(calloc((size_t)all + 1, sizeof *owed));
  rewind(file);
  while (fscanf(file, "%u %u %u", &first, &count, &ticks) == 3)
    for (uint32_t i = first; i < first + count; i++)
      owed[i] = ticks - warm;
  (void)fclose(file);
  uint64_t wrong = 0;
  for (uint32_t slot = 0; slot < SLOTS; slot++) {
    const uint32_t number = t->number[slot], had = t->sensors[slot].count;
    if (number == 0 || number > all) {
      wrong += had > 0;
    } else {
      wrong += owed[number - 1] != had;
      owed[number - 1] = 0;
    }
  }
  for (uint32_t i = 0; i < all; i++)
    wrong += owed[i] > 0; /* without any result */
  free(owed);
  return wrong;
}

static void report(const struct tail *t, uint64_t incomplete)
{
  static const double shares[] = { 0.5, 0.9, 0.99, 0.999, 1 };
  static const char *const names[] = { "p50", "p90", "p99", "p999", "most" };
  struct rusage use;
  const double took = (double)(t->last - t->first) * 1e-9;
  if (getrusage(RUSAGE_SELF, &use) != 0)
    die("getrusage: %s", strerror(errno));
  printf("{\"event\":\"done\",\"results\":%" PRIu64 ",\"scored\":%" PRIu64, t->results, t->scored);
  printf(",\"warming\":%" PRIu64 ",\"ok\":%" PRIu64 ",\"gap\":%" PRIu64 ",\"late\":%" PRIu64 ",\"rejected\":%" PRIu64,
         t->states[0], t->states[1], t->states[2], t->states[3], t->states[4]);
  printf(",\"raised\":%" PRIu64 ",\"corrected\":%" PRIu64 ",\"cleared\":%" PRIu64 ",\"stale\":%" PRIu64 ",\"back\":%" PRIu64,
         t->events[1], t->events[2], t->events[3], t->events[4], t->events[5]);
  printf(",\"gap_results\":%" PRIu64 ",\"gap_events\":%" PRIu64 ",\"disorder\":%" PRIu64 ",\"incomplete\":%" PRIu64,
         t->gap_results, t->gap_events, t->disorder, incomplete);
  printf(",\"frames\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"marked\":%" PRIu64 ",\"first\":%" PRId64 ",\"last\":%" PRId64
         ",\"rate\":%.0f",
         t->frames, t->bytes, t->marked, t->first, t->last, took > 0 ? (double)t->marked / took : 0);
  printf(",\"timed\":%" PRIu64, hk_histogram_count(&t->latency));
  for (unsigned i = 0; i < sizeof shares / sizeof *shares; i++)
    printf(",\"%s_us\":%.1f", names[i], (double)hk_histogram_quantile(&t->latency, shares[i]) / 1e3);
  printf(",\"processor_s\":%.3f,\"slices\":[",
         (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec));
  for (unsigned i = 0; i < SLICES && (uint64_t)i * SLICE <= (uint64_t)(t->last - t->first); i++)
    printf("%s%" PRIu64, i ? "," : "", t->slices[i]);
  printf("]}\n");
}

/* Reads all subscriptions until each has had its FAREWELL. */
static void serve(struct tail *t, struct subscriber *subscribers, uint32_t n, bool busy)
{
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event ready[256], wanted = { .events = EPOLLIN };
  uint32_t over = 0;
  bool told = false;
  for (uint32_t i = 0; poll >= 0 && i < n; i++) {
    wanted.data.u32 = i;
    if (epoll_ctl(poll, EPOLL_CTL_ADD, subscribers[i].peer.fd, &wanted) != 0)
      die("epoll: %s", strerror(errno));
  }
  wanted.data.u32 = n;
  if (poll < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, STDIN_FILENO, &wanted) != 0)
    die("epoll: %s", strerror(errno));
  while (over < n) {
    const int count = epoll_wait(poll, ready, 256, busy ? 0 : -1);
    for (int k = 0; k < count; k++) {
      const uint32_t i = ready[k].data.u32;
      if (i < n) {
        receive(t, &subscribers[i], i == 0);
        if (subscribers[i].over) {
          over++;
          close(subscribers[i].peer.fd);
        }
      } else if (!told) {
        char rest[64];
        if (read(STDIN_FILENO, rest, sizeof rest) > 0)
          continue;
        told = true;
        (void)epoll_ctl(poll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
        for (uint32_t s = 0; s < n; s++)
          say_bye(&subscribers[s].peer);
      }
    }
  }
  close(poll);
}

int main(int argc, char **argv)
{
  int64_t port = 0, subscribers = 1, what = 3, mark = 0, skip = 500, busy = 0, warm = 0;
  double min_score = 0;
  const char *glob = "", *one = NULL, *ticks = NULL;
  const struct setting settings[] = {
    { "--port", SETTING_NUMBER, &port },
    { "--subscribers", SETTING_NUMBER, &subscribers },
    { "--what", SETTING_NUMBER, &what }, /* as in SUBSCRIBE */
    { "--min-score", SETTING_REAL, &min_score },
    { "--glob", SETTING_TEXT, &glob },
    { "--one", SETTING_TEXT, &one },
    { "--mark", SETTING_NUMBER, &mark },
    { "--skip", SETTING_NUMBER, &skip },
    { "--busy", SETTING_NUMBER, &busy },
    { "--ticks", SETTING_TEXT, &ticks },
    { "--warm", SETTING_NUMBER, &warm }, /* points of each sensor before the subscription */
    { 0 },
  };
  parse_settings(argc, argv, settings);
  if (subscribers < 1)
    die("--subscribers: at least one");
  raise_descriptors();
  struct tail *t = need(calloc(1, sizeof *t));
  struct subscriber *all = need(calloc((size_t)subscribers, sizeof *all));
  t->sensors = need(calloc(SLOTS, sizeof *t->sensors));
  t->number = need(calloc(SLOTS, sizeof *t->number));
  t->time = need(malloc(HK_FRAME_MAX / 8 * sizeof *t->time)); /* a result takes 8 bytes at least */
  t->mark = mark;
  t->skip = skip * 1000000;
  for (int64_t i = 0; i < subscribers; i++) {
    char name[32];
    if (one)
      name_of(one, (uint32_t)i, name);
    peer_open(&all[i].peer, (uint16_t)port);
    subscribe(&all[i].peer, (uint32_t)what, min_score, one ? name : glob);
  }
  printf("{\"event\":\"subscribed\",\"time\":%" PRId64 "}\n", now_wall());
  fflush(stdout);
  serve(t, all, (uint32_t)subscribers, busy != 0);
  report(t, ticks ? count_incomplete(t, ticks, (uint32_t)warm) : 0);
  return 0;
}
