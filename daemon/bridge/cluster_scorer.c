/* Scorer: messages of partitions go to the daemon's own road, and none counts twice or is left out, whatever ends in between.
 *
 * Each partition is a named feed (durable/named_feeds.h), over an inner connection of the binary protocol. A point's number in
 * the feed is its message's offset times HK_LOG_POINTS_MAX, and its place in the message: numbers of a feed may leave some out.
 * So how far the feed is, which the daemon keeps as its durability says, is how far the partition was read, and nothing else is
 * kept: a connection to the broker begins with opening all feeds, and goes on where these are. With `durability = journal` that
 * is behind the last point that is on the disk; with `snapshot` behind what the last snapshot has, from where the log is read
 * again; with `none` at the oldest message after a start. What the daemon has already it leaves out.
 *
 *     broker -> message: names -> handles (REGISTER, where a name is new) -> POINTS -> acknowledged to the broker
 *
 * The daemon pushes back by not reading from the inner connection; then no more is taken from the broker. */
#include "daemon/bridge/cluster_internal.h"

#include "daemon/net/admission.h"
#include "daemon/net/inner.h"
#include "daemon/sensors/registry.h"
#include "proto/wire/log_message.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE 4096u        /* points of a frame to the daemon; and */
#define NAMES (64u << 10)  /* bytes of names: both fit into the least max_frame */
#define FRAME (96u << 10)  /* bytes of such a frame, at most */
#define ANSWER 30          /* s for the daemon to answer */
#define QUIET 1000000000ll /* ns between two signs of life: the daemon may close what is silent (idle) */
_Static_assert(HK_FRAME_HEADER + 32 + 16 + 20 * PIECE <= FRAME, "a piece fits");
_Static_assert(NAMES + HK_FRAME_HEADER + 4 + 2 <= FRAME && FRAME <= HK_FRAME_MAX_LEAST, "names fit, and the daemon takes them");

struct part {
  uint32_t partition;
  int fd; /* the inner connection; -1: none */
  struct hk_inbox inbox;
  uint64_t wanted; /* offset from which it was followed */
  bool followed;   /* a message has come since */
};

struct scorer {
  struct part *part;     /* of each partition; those that are not read have none */
  int64_t spoken;        /* ns: when all feeds last had a sign of life */
  uint64_t bad, refused; /* which are not in the look yet */
  struct hk_string name[HK_LOG_POINTS_MAX];
  uint32_t handle[HK_LOG_POINTS_MAX];  /* of these */
  uint32_t lacking[HK_LOG_POINTS_MAX]; /* numbers of those that have none yet */
  uint32_t handles[PIECE];
  int64_t times[PIECE];
  double values[PIECE];
  uint8_t frame[FRAME];
};

static int begin(struct hk_cluster *c)
{
  struct scorer *s = calloc(1, sizeof *s);
  c->state = s;
  if (!s || !(s->part = calloc(c->rule.partitions, sizeof *s->part)))
    return -ENOMEM;
  for (uint32_t i = 0; i < c->rule.partitions; i++) {
    s->part[i] = (struct part){ .partition = i, .fd = -1, .inbox = { .max_length = HK_FRAME_MAX } };
    c->look.partitions += hk_cluster_reads(&c->rule, i);
  }
  return 0;
}

static void lost(struct hk_cluster *c)
{
  struct scorer *s = c->state;
  for (uint32_t i = 0; i < c->rule.partitions; i++) {
    if (s->part[i].fd >= 0)
      close(s->part[i].fd);
    hk_inbox_free(&s->part[i].inbox);
    s->part[i].fd = -1;
    s->part[i].followed = false;
  }
}

static void finish(struct hk_cluster *c)
{
  struct scorer *s = c->state;
  if (s)
    free(s->part);
  free(s);
}

/* The daemon, not the broker, is why the connection is given up. */
static int fail(struct hk_cluster *c, const struct part *part, const char *why)
{
  snprintf(c->engine->why, sizeof c->engine->why, "partition %" PRIu32 ": %.200s", part->partition, why);
  return -EPIPE;
}

/* --- talking to the daemon ------------------------------------------------------------------------------------------------- */

/* Reads what has come. 0, or a negative errno. */
static int receive(struct hk_cluster *c, struct part *part)
{
  for (;;) {
    size_t room;
    uint8_t *space = hk_inbox_space(&part->inbox, &room);
    if (!space)
      return fail(c, part, "no memory");
    const ssize_t n = room > 0 ? recv(part->fd, space, room, MSG_DONTWAIT) : -1;
    if (n == 0)
      return fail(c, part, "the daemon has closed its feed");
    if (n < 0)
      return room == 0 || errno == EAGAIN || errno == EINTR ? 0 : fail(c, part, strerror(errno));
    hk_inbox_wrote(&part->inbox, (size_t)n);
  }
}

/* Waits until the connection can be read, or written to as well. */
static int wait_for(struct hk_cluster *c, struct part *part, short events, int64_t until)
{
  struct pollfd p[2] = { { .fd = part->fd, .events = events }, { .fd = c->wake, .events = POLLIN } };
  const int n = poll(p, 2, 1000);
  if (hk_cluster_stops(c))
    return fail(c, part, "the daemon ends");
  if (n == 0 && hk_now() > until)
    return fail(c, part, "the daemon does not answer");
  return 0;
}

/* The next frame that is no ACK, PONG or ERROR that closes nothing: what else is on its way is the answer. */
static int answer(struct hk_cluster *c, struct part *part, uint8_t type, struct hk_frame *f)
{
  const int64_t until = hk_now() + ANSWER * 1000000000ll;
  for (;;) {
    struct hk_error_message m;
    const int code = hk_inbox_next(&part->inbox, f);
    if (code == HK_FRAME_WHOLE && f->type == type)
      return 0;
    if (code == HK_FRAME_WHOLE && f->type == HK_ERROR && hk_error_read(f, &m) == 0 && m.closing) {
      char why[HK_ENGINE_WHY];
      snprintf(why, sizeof why, "%.*s", (int)(m.message.length < 200 ? m.message.length : 200), m.message.data);
      return fail(c, part, why);
    }
    if (code == HK_FRAME_WHOLE)
      continue;
    if (code != HK_FRAME_PART)
      return fail(c, part, "the daemon said what cannot be read");
    int status = wait_for(c, part, POLLIN, until);
    if (status == 0)
      status = receive(c, part);
    if (status != 0)
      return status;
  }
}

/* What was said and is no answer. */
static int hear(struct hk_cluster *c, struct part *part)
{
  struct hk_frame f;
  int code, status = receive(c, part);
  while (status == 0 && (code = hk_inbox_next(&part->inbox, &f)) != HK_FRAME_PART) {
    struct hk_error_message m;
    if (code != HK_FRAME_WHOLE)
      status = fail(c, part, "the daemon said what cannot be read");
    else if (f.type == HK_ERROR && hk_error_read(&f, &m) == 0 && m.closing)
      status = fail(c, part, "the daemon has closed its feed");
  }
  return status;
}

static int say(struct hk_cluster *c, struct part *part, const struct hk_writer *w)
{
  for (size_t at = 0; at < w->size;) {
    const ssize_t n = send(part->fd, w->data + at, w->size - at, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      at += (size_t)n;
      continue;
    }
    if (errno != EAGAIN && errno != EINTR)
      return fail(c, part, strerror(errno));
    int status = wait_for(c, part, POLLOUT | POLLIN, INT64_MAX); /* it pushes back for as long as it has to */
    if (status == 0)
      status = hear(c, part);
    if (status != 0)
      return status;
  }
  return 0;
}

/* --- feeds ----------------------------------------------------------------------------------------------------------------- */

/* Opens the feed of a partition: *at is how far it is. */
static int open_feed(struct hk_cluster *c, struct part *part, uint64_t *at)
{
  struct scorer *s = c->state;
  struct hk_token shown = { 0 };
  char peer[HK_ADDRESS_MAX], name[HK_FEED_NAME_MAX];
  struct hk_writer w = HK_WRITER(s->frame, sizeof s->frame);
  struct hk_frame f;
  struct hk_feed_at is;
  snprintf(shown.name, sizeof shown.name, "[cluster] %.40s", c->rule.name);
  snprintf(peer, sizeof peer, "[cluster] partition %" PRIu32, part->partition);
  snprintf(name, sizeof name, HK_OUR_FEEDS "%.100s %" PRIu32 "/%" PRIu32, c->rule.name, part->partition, c->rule.partitions);
  const struct hk_inner inner = { .protocol = HK_PROTOCOL_BINARY,
                                  .listener = &c->peers.listener,
                                  .gate = &c->peers.gate,
                                  .peer = peer,
                                  .scopes = HK_SCOPE_FEED,
                                  .shown = &shown,
                                  .unit = 1 };
  part->fd = hk_inner_open(c->net, &inner);
  if (part->fd < 0)
    return fail(c, part, strerror(-part->fd));
  int status = hk_hello_write(&w, 0, &(struct hk_hello){ .client = hk_string("cluster") });
  if (status == 0)
    status = hk_feed_write(&w, 0, hk_string(name));
  if (status == 0)
    status = say(c, part, &w);
  if (status == 0)
    status = answer(c, part, HK_FEED_AT, &f);
  if (status == 0 && hk_feed_at_read(&f, &is) == 0)
    *at = is.points;
  return status;
}

static int greeted(struct hk_cluster *c)
{
  struct scorer *s = c->state;
  int status = 0;
  for (uint32_t i = 0; i < c->rule.partitions && status == 0 && !hk_cluster_stops(c); i++)
    if (hk_cluster_reads(&c->rule, i))
      status = c->kind->log(c->engine, i);
  for (uint32_t i = 0; i < c->rule.partitions && status == 0; i++) {
    struct part *part = &s->part[i];
    uint64_t at = 0;
    if (!hk_cluster_reads(&c->rule, i))
      continue;
    status = open_feed(c, part, &at);
    part->wanted = at / HK_LOG_POINTS_MAX;
    if (status == 0)
      status = c->kind->follow(c->engine, i, at == 0 ? HK_ENGINE_FIRST : part->wanted);
  }
  return status;
}

/* --- messages -------------------------------------------------------------------------------------------------------------- */

/* Registers names from `from` on of those that lack a handle, as many as fit into a frame; returns how many, or a negative errno.
 */
static int64_t register_some(struct hk_cluster *c, struct part *part, uint32_t from, uint32_t n)
{
  struct scorer *s = c->state;
  struct hk_writer w = HK_WRITER(s->frame, sizeof s->frame);
  struct hk_string some[PIECE];
  struct hk_frame f;
  struct hk_list registered;
  uint32_t count = 0;
  size_t size = 0;
  for (; from + count < n && count < PIECE; count++) {
    const struct hk_string name = s->name[s->lacking[from + count]];
    if (size + 2 + name.length > NAMES)
      break;
    size += 2 + name.length;
    some[count] = name;
  }
  int status = count > 0 ? hk_register_write(&w, 0, count, some) : -EINVAL;
  if (status != 0)
    return fail(c, part, "a name is too long");
  status = say(c, part, &w);
  if (status == 0)
    status = answer(c, part, HK_REGISTERED, &f);
  if (status == 0 && (hk_registered_read(&f, &registered) != 0 || registered.n != count))
    status = fail(c, part, "the daemon said what cannot be read");
  for (uint32_t i = 0; i < count && status == 0; i++) {
    uint32_t handle, reason;
    hk_registered_next(&registered, &handle, &reason);
    s->handle[s->lacking[from + i]] = reason == 0 ? handle : HK_NO_HANDLE;
  }
  return status != 0 ? status : (int64_t)count;
}

/* Finds the handle of each name; HK_NO_HANDLE: it is refused. */
static int find_handles(struct hk_cluster *c, struct part *part, struct hk_list *names)
{
  struct scorer *s = c->state;
  struct hk_registry *registry = c->net->shards->registry;
  uint32_t n = 0;
  hk_registry_read(registry);
  for (uint32_t i = 0; i < names->n; i++) {
    uint32_t slot;
    s->name[i] = hk_name_next(names);
    s->handle[i] = HK_NO_HANDLE;
    if (hk_registry_find(registry, s->name[i].data, s->name[i].length, &slot) == 0)
      s->handle[i] = hk_registry_handle(registry, slot);
    else
      s->lacking[n++] = i;
  }
  hk_registry_read_end(registry);
  for (uint32_t at = 0; at < n;) {
    const int64_t took = register_some(c, part, at, n);
    if (took < 0)
      return (int)took;
    at += (uint32_t)took;
  }
  return 0;
}

/* Hands the points of a message on, of which the first is number `before` of the feed. Those of refused sensors go along, so that
 * the others have the numbers that they always have. */
static int feed(struct hk_cluster *c, struct part *part, const struct hk_points *p, uint64_t before)
{
  struct scorer *s = c->state;
  int status = 0;
  for (uint32_t first = 0; first < p->n && status == 0; first += PIECE) {
    const uint32_t n = p->n - first < PIECE ? p->n - first : PIECE;
    struct hk_writer w = HK_WRITER(s->frame, sizeof s->frame);
    hk_points_handles(p, first, n, s->handles);
    hk_points_times(p, first, n, 0, s->times);
    hk_points_values(p, first, n, s->values);
    for (uint32_t i = 0; i < n; i++) {
      s->handles[i] = s->handle[s->handles[i]];
      s->refused += s->handles[i] == HK_NO_HANDLE;
    }
    const struct hk_points piece = { .before = before + first,
                                     .n = n,
                                     .time_kind = HK_TIME_EACH,
                                     .value_kind = HK_VALUE_F64,
                                     .times = s->times,
                                     .values = s->values,
                                     .handles = s->handles };
    if (hk_points_write(&w, 0, &piece) != 0)
      return fail(c, part, "its points cannot be written");
    status = say(c, part, &w);
  }
  return status;
}

/* Messages come from where they were asked for on; what the broker did not keep until then is counted. */
static int look_at_offset(struct hk_cluster *c, struct part *part, uint64_t offset)
{
  uint64_t missing = 0;
  if (offset < part->wanted)
    return fail(c, part, "the broker sends messages from before the offset that was asked for");
  if (!part->followed && part->wanted > 0)
    missing = offset - part->wanted;
  part->followed = true;
  part->wanted = offset + 1;
  if (missing == 0)
    return 0;
  hk_log(c->net->log, HK_LOG_ERROR,
         "[cluster] partition %" PRIu32 ": %" PRIu64
         " messages were not kept until they were read (retention); their points are lost",
         part->partition, missing);
  pthread_mutex_lock(&c->lock);
  c->look.lost += missing;
  pthread_mutex_unlock(&c->lock);
  return 0;
}

static int came(struct hk_cluster *c, const struct hk_engine_event *e)
{
  struct scorer *s = c->state;
  struct hk_list names;
  struct hk_points points = { 0 };
  const char *why;
  if (e->what != HK_ENGINE_MESSAGE || e->partition >= c->rule.partitions || s->part[e->partition].fd < 0)
    return 0;
  struct part *part = &s->part[e->partition];
  int status = look_at_offset(c, part, e->offset);
  if (status == 0 && hk_log_message_read(e->data, e->size, &names, &points, &why) != 0) {
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster", "partition %" PRIu32 ": message %" PRIu64 " is left out: %s",
                e->partition, e->offset, why);
    s->bad++;
    points.n = 0;
  } else if (status == 0) {
    status = find_handles(c, part, &names);
    if (status == 0)
      status = feed(c, part, &points, e->offset * HK_LOG_POINTS_MAX);
  }
  if (status == 0)
    status = c->kind->took(c->engine);
  pthread_mutex_lock(&c->lock);
  c->look.messages += status == 0;
  c->look.points += status == 0 ? points.n : 0;
  c->look.bad += s->bad;
  c->look.refused += s->refused;
  pthread_mutex_unlock(&c->lock);
  s->bad = s->refused = 0;
  return status;
}

static int turn(struct hk_cluster *c)
{
  struct scorer *s = c->state;
  const int64_t now = hk_now();
  int status = 0;
  if (now - s->spoken < QUIET)
    return 0;
  s->spoken = now;
  for (uint32_t i = 0; i < c->rule.partitions && status == 0; i++) {
    struct hk_writer w = HK_WRITER(s->frame, sizeof s->frame);
    if (s->part[i].fd < 0)
      continue;
    status = hk_ping_write(&w, HK_PING, 0, 0);
    if (status == 0)
      status = say(c, &s->part[i], &w);
    if (status == 0)
      status = hear(c, &s->part[i]);
  }
  return status;
}

static int fd(const struct hk_cluster *c)
{
  (void)c;
  return -1;
}

const struct hk_cluster_work hk_cluster_scorer = {
  .thread = "scorer", .begin = begin, .finish = finish, .greeted = greeted, .lost = lost, .came = came, .turn = turn, .fd = fd
};
