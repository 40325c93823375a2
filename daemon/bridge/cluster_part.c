#include "daemon/bridge/cluster_part.h"

#include "daemon/bridge/cluster_progress.h"
#include "daemon/net/admission.h"
#include "daemon/net/inner.h"
#include "daemon/sensors/registry.h"
#include "proto/wire/columns.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAMES (64u << 10) /* bytes of names in a frame: these and PIECE points both fit into the least max_frame */
#define EVENTS 65536u     /* of ours that wait for the broker, from which on it is to send no more points */
#define ANSWER 30         /* s for the daemon to answer */
#define PIECE HK_PART_PIECE
#define FRAME HK_PART_FRAME
_Static_assert(HK_FRAME_HEADER + 32 + 16 + 20 * PIECE <= FRAME, "a piece fits");
_Static_assert(NAMES + HK_FRAME_HEADER + 4 + 2 <= FRAME && FRAME <= HK_FRAME_MAX_LEAST, "names fit, and the daemon takes them");

int hk_part_room_init(struct hk_part_room *room, const struct hk_cluster *c)
{
  room->after = calloc(hk_registry_lookup(c->net->shards->registry).max_sensors, sizeof *room->after);
  return room->after ? 0 : -ENOMEM;
}

void hk_part_room_free(struct hk_part_room *room)
{
  free(room->after);
  room->after = NULL;
}

void hk_part_init(struct hk_part *part, uint32_t partition, struct hk_part_room *room)
{
  *part = (struct hk_part){ .partition = partition, .room = room, .fd = -1, .inbox = { .max_length = HK_FRAME_MAX } };
}

void hk_part_close(struct hk_part *part)
{
  if (part->fd >= 0)
    close(part->fd);
  hk_inbox_free(&part->inbox);
  part->fd = -1;
  part->followed = part->owed = false;
}

int hk_part_fail(const struct hk_part *part, const char *why)
{
  snprintf(part->engine->why, sizeof part->engine->why, "partition %" PRIu32 ": %.200s", part->partition, why);
  return -EPIPE;
}

static int cluster_part_unreadable(const struct hk_part *part)
{
  return hk_part_fail(part, "the daemon sent a frame that cannot be read");
}

/* --- talking to the daemon ------------------------------------------------------------------------------------------------- */

/* Reads received bytes. Returns 0, or a negative errno. */
static int receive(struct hk_part *part)
{
  for (;;) {
    size_t room;
    uint8_t *space = hk_inbox_space(&part->inbox, &room);
    if (!space)
      return hk_part_fail(part, "no memory");
    const ssize_t n = room > 0 ? recv(part->fd, space, room, MSG_DONTWAIT) : -1;
    if (n == 0)
      return hk_part_fail(part, "the daemon has closed its feed");
    if (n < 0)
      return room == 0 || errno == EAGAIN || errno == EINTR ? 0 : hk_part_fail(part, strerror(errno));
    hk_inbox_wrote(&part->inbox, (size_t)n);
  }
}

/* Waits until the connection is readable, or for other events. */
static int wait_for(struct hk_cluster *c, struct hk_part *part, short events, int64_t until)
{
  struct pollfd p[2] = { { .fd = part->fd, .events = events }, { .fd = c->wake, .events = POLLIN } };
  const int n = poll(p, 2, 1000);
  hk_cluster_alive(c);
  if (hk_cluster_stops(c))
    return hk_part_fail(part, "the daemon ends");
  if (n == 0 && hk_now() > until)
    return hk_part_fail(part, "the daemon does not answer");
  return 0;
}

/* Returns the next frame except ACK, PONG and non-fatal ERROR: that is the answer. */
static int cluster_part_answer(struct hk_cluster *c, struct hk_part *part, uint8_t type, struct hk_frame *f)
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
      return hk_part_fail(part, why);
    }
    if (code == HK_FRAME_WHOLE)
      continue;
    if (code != HK_FRAME_PART)
      return cluster_part_unreadable(part);
    int status = wait_for(c, part, POLLIN, until);
    if (status == 0)
      status = receive(part);
    if (status != 0)
      return status;
  }
}

/* Processes received frames that are no answer. */
static int hear(struct hk_part *part)
{
  struct hk_frame f;
  int code, status = receive(part);
  while (status == 0 && (code = hk_inbox_next(&part->inbox, &f)) != HK_FRAME_PART) {
    struct hk_error_message m;
    if (code != HK_FRAME_WHOLE)
      status = cluster_part_unreadable(part);
    else if (f.type == HK_ERROR && hk_error_read(&f, &m) == 0 && m.closing)
      status = hk_part_fail(part, "the daemon has closed its feed");
  }
  return status;
}

static int cluster_part_say(struct hk_cluster *c, struct hk_part *part, const struct hk_writer *w)
{
  for (size_t at = 0; at < w->size;) {
    const ssize_t n = send(part->fd, w->data + at, w->size - at, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      at += (size_t)n;
      continue;
    }
    if (errno != EAGAIN && errno != EINTR)
      return hk_part_fail(part, strerror(errno));
    int status = wait_for(c, part, POLLOUT | POLLIN, INT64_MAX); /* the daemon may push back for any time */
    if (status == 0)
      status = hear(part);
    if (status != 0)
      return status;
  }
  return 0;
}

/* --- feeds ----------------------------------------------------------------------------------------------------------------- */

int hk_part_open(struct hk_cluster *c, struct hk_part *part, const char *feed, uint64_t *at)
{
  struct hk_token shown = { 0 };
  char peer[HK_ADDRESS_MAX];
  struct hk_writer w = HK_WRITER(part->room->frame, sizeof part->room->frame);
  struct hk_frame f;
  struct hk_feed_at is;
  snprintf(shown.name, sizeof shown.name, "[cluster] %.40s", c->rule.name);
  snprintf(peer, sizeof peer, "[cluster] partition %" PRIu32, part->partition);
  const struct hk_inner inner = { .protocol = HK_PROTOCOL_BINARY,
                                  .listener = &c->peers.listener,
                                  .gate = &c->peers.gate,
                                  .peer = peer,
                                  .scopes = HK_SCOPE_FEED,
                                  .shown = &shown,
                                  .unit = 1,
                                  .scored = true };
  part->fd = hk_inner_open(c->net, &inner);
  if (part->fd < 0)
    return hk_part_fail(part, strerror(-part->fd));
  int status = hk_hello_write(&w, 0, &(struct hk_hello){ .client = hk_string("cluster") });
  if (status == 0)
    status = hk_feed_write(&w, 0, hk_string(feed));
  if (status == 0)
    status = cluster_part_say(c, part, &w);
  if (status == 0)
    status = cluster_part_answer(c, part, HK_FEED_AT, &f);
  if (status == 0 && hk_feed_at_read(&f, &is) != 0)
    return cluster_part_unreadable(part);
  if (status == 0)
    *at = is.points;
  return status;
}

int hk_part_follow(struct hk_cluster *c, struct hk_part *part, uint64_t at)
{
  part->needs = 0;
  part->wanted = hk_part_offset(at);
  part->before = at / HK_LOG_POINTS_MAX - part->wanted;
  return c->kind->follow(part->engine, part->partition, part->wanted == 0 ? HK_ENGINE_FIRST : part->wanted, 0);
}

/* --- messages -------------------------------------------------------------------------------------------------------------- */

/* Registers names that lack a handle, from `from` on, as many as fit into a frame; returns their number, or a negative errno. */
static int64_t register_some(struct hk_cluster *c, struct hk_part *part, uint32_t from, uint32_t n)
{
  struct hk_part_room *s = part->room;
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
    return hk_part_fail(part, "a name is too long");
  status = cluster_part_say(c, part, &w);
  if (status == 0)
    status = cluster_part_answer(c, part, HK_REGISTERED, &f);
  if (status == 0 && (hk_registered_read(&f, &registered) != 0 || registered.n != count))
    status = cluster_part_unreadable(part);
  for (uint32_t i = 0; i < count && status == 0; i++) {
    uint32_t handle, reason;
    hk_registered_next(&registered, &handle, &reason);
    s->handle[s->lacking[from + i]] = reason == 0 ? handle : HK_NO_HANDLE;
  }
  return status != 0 ? status : (int64_t)count;
}

/* Finds the slot of a name. *last: 1 + the slot of the name before it, 0 if unknown; afterwards that of this one. Peers send
 * their sensors in the same order again and again, so the name that followed last time is tried first: with many sensors, a
 * search in the table takes most of this thread's time, since hardly any of it is in the processor's caches. */
static bool cluster_part_find_slot(struct hk_registry *registry, uint32_t *after, struct hk_string name, uint32_t *last,
                                   uint32_t *slot)
{
  const uint32_t guess = *last > 0 ? after[*last - 1] : 0;
  const bool guessed = guess > 0 && hk_registry_is(registry, guess - 1, name.data, name.length);
  if (guessed)
    *slot = guess - 1;
  const bool found = guessed || hk_registry_find(registry, name.data, name.length, slot) == 0;
  if (found && !guessed && *last > 0)
    after[*last - 1] = *slot + 1;
  *last = found ? *slot + 1 : 0;
  return found;
}

/* Finds the handle of each name; HK_NO_HANDLE: it was refused. */
static int find_handles(struct hk_cluster *c, struct hk_part *part, struct hk_list *names)
{
  struct hk_part_room *s = part->room;
  struct hk_registry *registry = c->net->shards->registry;
  uint32_t n = 0;
  hk_registry_read(registry);
  for (uint32_t i = 0; i < names->n; i++) {
    uint32_t slot;
    s->name[i] = hk_name_next(names);
    s->handle[i] = HK_NO_HANDLE;
    if (cluster_part_find_slot(registry, s->after, s->name[i], &part->last, &slot))
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

/* Sends the points of a message to the daemon; the first is number `before` of the feed. Points of refused sensors are
 * included, so that the numbers of the others do not change. */
static int feed(struct hk_cluster *c, struct hk_part *part, const struct hk_points *p, uint64_t before)
{
  struct hk_part_room *s = part->room;
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
      return hk_part_fail(part, "its points cannot be written");
    status = cluster_part_say(c, part, &w);
  }
  return status;
}

/* The log was deleted and made again: it begins at 0, whatever offset was requested. */
static int begin_anew(struct hk_cluster *c, struct hk_part *part)
{
  hk_log(c->net->log, HK_LOG_WARNING,
         "[cluster] partition %" PRIu32 ": its log was deleted after message %" PRIu64
         " and made anew: what was not read of it is lost; the new one is read from its first message on",
         part->partition, part->wanted - 1);
  part->before += HK_PART_RANGE;
  part->wanted = 0;
  return part->before < HK_PART_LOGS * HK_PART_RANGE ? 0
                                                     : hk_part_fail(part, "its log was made anew too often: choose another name");
}

/* Messages come from the requested offset on; counts those that the broker did not keep. */
static int look_at_offset(struct hk_cluster *c, struct hk_part *part, uint64_t offset)
{
  uint64_t missing = 0;
  if (part->followed && offset < part->wanted)
    return hk_part_fail(part, "the broker sends messages from before the offset that was asked for");
  if (offset < part->wanted && begin_anew(c, part) != 0)
    return -EPIPE;
  if (offset >= HK_PART_RANGE)
    return hk_part_fail(part, "its log has more messages than any of ours");
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

/* Shows where a partition waits, and since when. */
static void cluster_part_waits(struct hk_cluster *c, const struct hk_part *part)
{
  const int64_t lag = part->sent > 0 ? hk_wall() - part->sent : 0;
  hk_cluster_reached(c, part->partition, part->wanted, lag > 0 ? lag : 0);
  hk_cluster_needs(c, part->partition, part->needs);
}

/* When the broker may have removed the message: not before the retention is over, and since it removes messages by whole
 * segments, and a scorer may have waited before for it, not soon. */
static int64_t cluster_part_look(const struct hk_cluster *c, const struct hk_part *part)
{
  const int64_t kept = part->sent > 0 ? part->sent + c->rule.retention - hk_wall() : c->rule.retention;
  const int64_t soon = c->rule.retention / 4;
  return hk_now() + (kept > soon ? kept : soon);
}

/* A message of a later version: nothing is read from here on. */
static void cluster_part_wait(struct hk_cluster *c, struct hk_part *part, const struct hk_broker_engine_event *e)
{
  part->needs = hk_frame_version(e->data, e->size);
  part->wanted = e->offset;
  part->sent = e->sent;
  part->look = cluster_part_look(c, part);
  part->behind = true;
  hk_log(c->net->log, HK_LOG_ERROR,
         "[cluster] partition %" PRIu32 ": message %" PRIu64 " is of version %u; this hankeld reads version %d. The partition "
         "waits, and its points stay at the broker: upgrade this machine, or move the partition to one with that version",
         part->partition, e->offset, part->needs, HK_PROTOCOL_VERSION);
  cluster_part_waits(c, part);
}

int hk_part_came(struct hk_cluster *c, struct hk_part *part, const struct hk_broker_engine_event *e)
{
  struct hk_part_room *s = part->room;
  struct hk_list names;
  struct hk_points points = { 0 };
  const char *why;
  if (part->needs && e->offset <= part->wanted)
    return hk_part_fail(part, "its log was made anew while it waited: it is read again");
  int status = part->needs ? 0 : look_at_offset(c, part, e->offset);
  if (status == 0 && !part->needs && hk_frame_version(e->data, e->size) > HK_PROTOCOL_VERSION)
    cluster_part_wait(c, part, e);
  if (status == 0 && part->needs) {
    part->owed = true;
    return hk_part_settle(c, part);
  }
  if (status == 0 && hk_log_message_read(e->data, e->size, &names, &points, &why) != 0) {
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster", "partition %" PRIu32 ": message %" PRIu64 " is left out: %s",
                e->partition, e->offset, why);
    s->bad++;
    points.n = 0;
  } else if (status == 0) {
    status = find_handles(c, part, &names);
    if (status == 0)
      status = feed(c, part, &points, (part->before + e->offset) * HK_LOG_POINTS_MAX);
  }
  part->owed = true;
  if (status == 0)
    status = hk_part_settle(c, part);
  pthread_mutex_lock(&c->lock);
  c->look.messages += status == 0;
  c->look.points += status == 0 ? points.n : 0;
  c->look.bad += s->bad;
  c->look.refused += s->refused;
  pthread_mutex_unlock(&c->lock);
  s->bad = s->refused = 0;
  if (status == 0) {
    const int64_t lag = e->sent > 0 ? hk_wall() - e->sent : 0;
    part->behind = true;
    hk_cluster_reached(c, part->partition, part->wanted, lag > 0 ? lag : 0);
  }
  return status;
}

int hk_part_settle(struct hk_cluster *c, struct hk_part *part)
{
  const struct hk_event_shared *shared = hk_cluster_shared(c);
  if (!part->owed || (shared && hk_shared_waiting(shared) > EVENTS))
    return 0;
  part->owed = false;
  return c->kind->took(part->engine);
}

void hk_part_rests(struct hk_cluster *c, struct hk_part *part)
{
  if (part->needs)
    cluster_part_waits(c, part);
  else if (part->behind)
    hk_cluster_reached(c, part->partition, part->wanted, 0);
  part->behind = false;
}

int hk_part_sign(struct hk_cluster *c, struct hk_part *part)
{
  struct hk_writer w = HK_WRITER(part->room->frame, sizeof part->room->frame);
  if (part->needs && hk_now() >= part->look)
    return hk_part_fail(part, "the message that it waits before may be kept no longer (retention): it is read again");
  int status = hk_ping_write(&w, HK_PING, 0, 0);
  if (status == 0)
    status = cluster_part_say(c, part, &w);
  return status == 0 ? hear(part) : status;
}
