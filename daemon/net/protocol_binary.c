/* Binary protocol over TCP: frames in, replies out. After an invalid frame, the connection is closed, with an ERROR that gives
 * the reason. */
#include "daemon/durable/disk_health.h"
#include "daemon/net/admission.h"
#include "daemon/net/binary_operator.h"
#include "daemon/net/binary_replies.h"
#include "daemon/net/connection.h"
#include "daemon/net/loop.h"
#include "daemon/net/net.h"
#include "daemon/sensors/register.h"
#include "proto/wire/columns.h"
#include "proto/wire/mac.h"
#include "proto/wire/message.h"
#include "proto/wire/picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_FRAME 4096 /* bytes of a payload before HELLO */

/* Whether data sent to it cannot be read by others. */
static bool private(const struct hk_connection *c)
{
  return c->tls || hk_loopback(&c->listener->address);
}

static enum hk_turn hello(struct hk_connection *c, const struct hk_frame *f)
{
  struct hk_hello m;
  if (c->binary.greeted)
    return hk_binary_fault(c, f, HANKEL_OUT_OF_ORDER, "HELLO came twice");
  if (hk_hello_read(f, &m) != 0)
    return hk_binary_bad_payload(c, f);
  hk_log(c->net->log, HK_LOG_DEBUG, "%s: %.*s", c->peer, (int)m.client.length, m.client.data);
  if (!hk_admission_hello(c, m.token.data, m.token.length))
    return HK_TURN_OVER;
  c->binary.greeted = true;
  const uint64_t feed = c->peer_feed ? hk_peer_feed_open(c->peer_feed, c->source) : 0;
  if (!(c->identity.scopes & HK_SCOPE_FEED))
    hk_peer_feed_shut(c->peer_feed); /* its datagrams are not authenticated */
  if (feed == 0 && c->peer_feed)
    hk_log(c->net->log, HK_LOG_ERROR, "no random numbers available; the feed of %s stays closed", c->peer);
  c->binary.inbox.max_length = (uint32_t)c->loop->config->max_frame;
  uint8_t bytes[256];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  uint8_t key[HK_MAC_KEY];
  c->binary.wants_counts = m.wants & HK_WANTS_COUNTS;
  const bool keyed = c->peer_feed && (m.wants & HK_WANTS_KEY) && private(c) && hk_peer_feed_key(c->peer_feed, key) == 0;
  const struct hk_welcome welcome = {
    feed, c->binary.inbox.max_length, hk_string("hankeld " HANKELD_VERSION), { (const char *)key, keyed ? sizeof key : 0 }
  };
  if (hk_welcome_write(&w, f->tag, &welcome) == 0)
    hk_binary_reply(c, &w);
  return HK_TURN_MORE;
}

static enum hk_turn register_names(struct hk_connection *c, const struct hk_frame *f)
{
  struct hk_registry *const registry = hk_connection_intake(c)->registry;
  struct hk_list names;
  if (hk_register_read(f, &names) != 0)
    return hk_binary_bad_payload(c, f);
  const uint32_t n = names.n;
  const size_t size = HK_FRAME_HEADER + 4 + 8 * (size_t)n;
  struct hk_string *strings = malloc(n * sizeof *strings);
  uint32_t *handles = malloc(2 * (size_t)n * sizeof *handles), *reasons = handles + n; /* handles; first, slots */
  uint8_t *bytes = malloc(size);
  if (strings && handles && bytes) {
    for (uint32_t i = 0; i < n; i++)
      strings[i] = hk_name_next(&names);
    hk_registry_take_all(registry, hk_admission_owner(c), n, strings, handles, reasons);
    for (uint32_t i = 0; i < n; i++) {
      handles[i] = reasons[i] == 0 ? hk_registry_handle(registry, handles[i]) : HK_NO_HANDLE;
      if (reasons[i] != 0)
        hk_intake_refused(hk_connection_intake(c), (int)reasons[i], strings[i].data, strings[i].length);
    }
    struct hk_writer w = HK_WRITER(bytes, size);
    if (hk_registered_write(&w, f->tag, n, handles, reasons) == 0)
      hk_binary_reply(c, &w);
  } else {
    hk_binary_error(c, f->tag, HANKEL_INTERNAL, f->type, "no memory");
  }
  free(strings);
  free(handles);
  free(bytes);
  return HK_TURN_MORE;
}

static enum hk_turn binary_points(struct hk_connection *c, const struct hk_frame *f)
{
  struct hk_points p;
  uint32_t unknown;
  const bool feeds = c->feeding.feed != NULL;
  if (hk_points_read(f, &p) != 0 || p.feed != 0 || p.sequence != 0 || (!feeds && p.before != 0) || p.before > INT64_MAX)
    return hk_binary_bad_payload(c, f);
  c->feeding.at = p.before;
  if (!feeds)
    unknown = hk_intake_points(hk_connection_intake(c), c->source, &p);
  else if (!hk_intake_feed(hk_connection_intake(c), c->source, &c->feeding, &p, &unknown))
    return hk_binary_fault(c, f, HANKEL_LIMIT, "another connection has taken this feed over");
  if (unknown == 0)
    return HK_TURN_MORE;
  hk_log_peer(c->net->log, &c->quota, HK_LOG_NOTICE, c->peer, "%u of %u points had handles that are not registered; dropped",
              unknown, p.n);
  return hk_binary_fault(c, f, HANKEL_UNKNOWN_HANDLE,
                         "points with handles that are not registered were dropped; register the names again");
}

static enum hk_turn binary_picture(struct hk_connection *c, const struct hk_frame *f)
{
  struct hk_picture_message m;
  char why[256], line[sizeof why + HK_NAME_MAX + 32];
  const char *wrong = NULL;
  const bool feeds = c->feeding.feed != NULL;
  if (hk_picture_read(f, &m, &wrong) == HANKEL_BAD_PAYLOAD || (!feeds && m.before != 0))
    return hk_binary_bad_payload(c, f);
  c->feeding.at = m.before;
  const struct hk_picture_source from = { c->source, feeds ? &c->feeding : NULL, hk_admission_owner(c), &c->binary.cameras,
                                          c->loop->net->board };
  const int code = hk_pictures_take(hk_connection_intake(c), &c->loop->pictures, &c->loop->config->pictures, &from, &m, wrong,
                                    why, sizeof why);
  if (code == HANKEL_LIMIT)
    return hk_binary_fault(c, f, HANKEL_LIMIT, "another connection has taken this feed over");
  if (code == 0)
    return HK_TURN_MORE;
  snprintf(line, sizeof line, "picture of %.*s: %s", (int)m.camera.length, m.camera.length > 0 ? m.camera.data : "",
           code == HANKEL_INTERNAL ? "no memory for it" : why);
  return hk_binary_fault(c, f, (uint16_t)code, line);
}

/* Whether the sender must wait for its answer. Points of an earlier connection may be on their way: until the shards have
 * them, no later points are taken. And until those points are committed, the feed's position is unknown: a restarted program
 * sends from the position in the answer, and would later get acknowledgements of points that it never sent. If the disk fails
 * for long, the answer does not wait for the commit. */
static bool feed_waits(struct hk_connection *c)
{
  struct hk_durable *durable = c->net->durable;
  return !hk_feed_settled(c->feeding.feed, c->feeding.turn) ||
         (!hk_feed_is_committed(c->feeding.feed) && hk_condition_acknowledges(durable));
}

static enum hk_turn feed_at(struct hk_connection *c)
{
  struct hk_feed_at at = { .durability = c->net->durable->mode };
  c->binary.feed_waits = feed_waits(c);
  if (c->binary.feed_waits)
    return HK_TURN_WAIT;
  at.points = c->binary.acknowledged = hk_feed_committed(c->feeding.feed);
  uint8_t bytes[HK_FRAME_HEADER + 16];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  if (hk_feed_at_write(&w, c->binary.feed_tag, &at) == 0)
    hk_binary_reply(c, &w);
  return HK_TURN_MORE;
}

static enum hk_turn binary_feed(struct hk_connection *c, const struct hk_frame *f)
{
  struct hk_string name;
  if (hk_feed_read(f, &name) != 0)
    return hk_binary_bad_payload(c, f);
  if (c->feeding.feed)
    return hk_binary_fault(c, f, HANKEL_OUT_OF_ORDER, "FEED came twice");
  if (!hk_admission_feed(c, name))
    return hk_binary_fault(c, f, HANKEL_FORBIDDEN, "the token or certificate does not allow a feed of this name");
  const int status =
      hk_feeds_take(c->net->durable->feeds, name, hk_admission_owner(c), &c->loop->wake, &c->feeding.feed, &c->feeding.turn);
  if (status == -ENOSPC)
    return hk_binary_fault(c, f, HANKEL_LIMIT, "too many feeds; reuse the names of existing ones");
  if (status == -EDQUOT) {
    char why[192];
    snprintf(why, sizeof why, "%.64s has %u feeds, the limit of one peer (max_feeds_per_peer); reuse their names",
             c->identity.shown.name[0] ? c->identity.shown.name : "this address", c->loop->config->max_feeds_per_peer);
    return hk_binary_fault(c, f, HANKEL_LIMIT, why);
  }
  if (status != 0)
    return hk_binary_fault(c, f, HANKEL_INTERNAL, "no memory for this feed");
  hk_loop_feeds(c->loop, c);
  c->binary.feed_tag = f->tag;
  return feed_at(c);
}

static void binary_acknowledge(struct hk_connection *c)
{
  if (c->binary.feed_waits && c->state == HK_OPEN)
    hk_connection_go_on(c);
  if (c->binary.feed_waits)
    return; /* FEED_AT reports it */
  const uint64_t points = hk_feed_committed(c->feeding.feed);
  uint8_t bytes[HK_FRAME_HEADER + 8];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  if (points <= c->binary.acknowledged || c->state != HK_OPEN)
    return;
  c->binary.acknowledged = points;
  if (hk_ack_write(&w, points) == 0)
    hk_binary_reply(c, &w);
}

static enum hk_turn binary_subscribe(struct hk_connection *c, const struct hk_frame *f)
{
  struct hk_subscription m;
  const int code = hk_subscribe_read(f, &m);
  if (code == HANKEL_BAD_SUBSCRIPTION)
    return hk_binary_fault(c, f, HANKEL_BAD_SUBSCRIPTION, "the glob, the score or the selection is not valid");
  if (code != 0)
    return hk_binary_bad_payload(c, f);
  const struct hk_wanted wanted = { HK_PROTOCOL_BINARY, m.what, m.min_score, m.glob, m.since };
  const int status = hk_loop_subscribe(c->loop, c, &wanted);
  if (status == -ENOSPC)
    return hk_binary_fault(c, f, HANKEL_BAD_SUBSCRIPTION,
                           "too many different subscriptions; max_subscriptions in the configuration limits them");
  if (status != 0)
    return hk_binary_fault(c, f, HANKEL_INTERNAL, "no memory for this subscription");
  const uint64_t since = hk_subscribed_since(c->loop->publisher, &c->subscriber);
  uint8_t bytes[HK_FRAME_HEADER + 8];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  if (hk_done_write(&w, f->tag, m.what & HANKEL_POSITIONS ? &since : NULL) == 0)
    hk_binary_reply(c, &w);
  hk_loop_tell_events(c->loop);
  return HK_TURN_MORE;
}

static enum hk_turn unsubscribe(struct hk_connection *c, const struct hk_frame *f)
{
  if (hk_empty_read(f) != 0)
    return hk_binary_bad_payload(c, f);
  hk_loop_unsubscribe(c->loop, c);
  uint8_t bytes[HK_FRAME_HEADER];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  if (hk_empty_write(&w, HK_DONE, f->tag) == 0)
    hk_binary_reply(c, &w);
  return HK_TURN_MORE;
}

/* Datagrams that were sent before a PING or BYE may still wait in their socket. Those that had arrived when the frame was read
 * are taken before it is answered. */
static enum hk_turn pong(struct hk_connection *c)
{
  if (!c->net->requests.read_datagrams(c->loop, c->binary.ping_time))
    return HK_TURN_WAIT;
  c->binary.ping_time = 0;
  uint8_t bytes[HK_FRAME_HEADER + 8];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  if (hk_ping_write(&w, HK_PONG, c->binary.ping_tag, c->binary.ping_token) == 0)
    hk_binary_reply(c, &w);
  return HK_TURN_MORE;
}

static enum hk_turn binary_ping(struct hk_connection *c, const struct hk_frame *f)
{
  if (hk_ping_read(f, &c->binary.ping_token) != 0)
    return hk_binary_bad_payload(c, f);
  c->binary.ping_tag = f->tag;
  c->binary.ping_time = hk_now();
  return pong(c);
}

static enum hk_turn bye(struct hk_connection *c, const struct hk_frame *f)
{
  uint64_t datagrams, sent;
  if (hk_bye_read(f, &datagrams, &sent) != 0)
    return hk_binary_bad_payload(c, f);
  c->flow.leaving = true;
  c->binary.bye_tag = f->tag;
  c->binary.bye_time = hk_now();
  c->binary.bye_datagrams = datagrams;
  c->binary.bye_points = sent;
  return HK_TURN_MORE;
}

/* The scopes one of which a frame needs; 0: none. */
static uint32_t scopes_of(uint8_t type)
{
  switch (type) {
  case HK_REGISTER:
  case HK_FEED:
  case HK_POINTS:
  case HK_PICTURE:
    return HK_SCOPE_FEED;
  case HK_SUBSCRIBE:
  case HK_SENSORS:
    return HK_SCOPE_SUBSCRIBE;
  case HK_STATUS:
    return HK_SCOPE_SUBSCRIBE | HK_SCOPE_ADMIN;
  case HK_RELOAD:
  case HK_OPERATE:
    return HK_SCOPE_ADMIN;
  default:
    return 0;
  }
}

static enum hk_turn forbidden(struct hk_connection *c, const struct hk_frame *f)
{
  char answer[HK_AUDIT_LACK_TEXT];
  hk_admission_forbidden(c, hk_frame_name(f->type), scopes_of(f->type), answer);
  return hk_binary_fault(c, f, HANKEL_FORBIDDEN, answer);
}

static enum hk_turn binary_take(struct hk_connection *c, const struct hk_frame *f)
{
  const uint32_t scopes = scopes_of(f->type);
  hk_count(&c->loop->counters.frames, 1);
  if (!c->binary.greeted && f->type != HK_HELLO && f->type >= HK_REGISTER && f->type <= HK_PICTURE)
    return hk_binary_fault(c, f, HANKEL_OUT_OF_ORDER, "the first frame of a connection is HELLO");
  if (scopes && !(c->identity.scopes & scopes))
    return forbidden(c, f);
  switch (f->type) {
  case HK_HELLO:
    return hello(c, f);
  case HK_REGISTER:
    return register_names(c, f);
  case HK_POINTS:
    return binary_points(c, f);
  case HK_PICTURE:
    return binary_picture(c, f);
  case HK_SUBSCRIBE:
    return binary_subscribe(c, f);
  case HK_UNSUBSCRIBE:
    return unsubscribe(c, f);
  case HK_PING:
    return binary_ping(c, f);
  case HK_STATUS:
    return hk_binary_status(c, f);
  case HK_BYE:
    return bye(c, f);
  case HK_FEED:
    return binary_feed(c, f);
  case HK_RELOAD:
    return hk_binary_reload(c, f);
  case HK_OPERATE:
    return hk_binary_operate(c, f);
  case HK_SENSORS:
    return hk_binary_sensors(c, f);
  default:
    return hk_binary_fault(c, f, HANKEL_BAD_TYPE, "no such frame, or not one that a client sends");
  }
}

static enum hk_turn farewell(struct hk_connection *c)
{
  const bool feeds = c->peer_feed && (hk_peer_feed_fed(c->peer_feed) || c->binary.bye_datagrams > 0);
  if (feeds && !c->net->requests.read_datagrams(c->loop, c->binary.bye_time))
    return HK_TURN_WAIT;
  if (c->peer_feed)
    hk_peer_feed_end(c->peer_feed, c->binary.bye_datagrams, c->binary.bye_points);
  if (hk_source_pending(c->source) > 0 || !hk_loop_told(c->loop, &c->subscriber, &c->binary.bye_event))
    return HK_TURN_WAIT;
  hk_send_gap(&c->subscriber, SIZE_MAX);
  hk_send_gap(&c->others, SIZE_MAX);
  uint8_t bytes[HK_FRAME_HEADER + 16];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  const uint64_t late = atomic_load_explicit(&c->source->late, memory_order_relaxed); /* no points are pending: the counts are
                                                                                       * final */
  const uint64_t rejected = atomic_load_explicit(&c->source->rejected, memory_order_relaxed);
  if ((c->binary.wants_counts ? hk_farewell_write(&w, c->binary.bye_tag, late, rejected)
                              : hk_empty_write(&w, HK_FAREWELL, c->binary.bye_tag)) == 0)
    hk_binary_reply(c, &w);
  hk_connection_finish(c);
  return HK_TURN_OVER;
}

/* Only points, and pictures, of which points are made, need room: greetings, requests and subscriptions are served while other
 * connections flood. */
static bool points_next(const struct hk_inbox *in)
{
  const uint8_t type = in->end - in->start >= HK_FRAME_HEADER ? hk_frame_type(in->data + in->start) : 0;
  return type == HK_POINTS || type == HK_PICTURE;
}

static enum hk_turn binary_step(struct hk_connection *c)
{
  static const char *const messages[] = {
    [HANKEL_BAD_MAGIC] = "not the beginning of a frame of this protocol",
    [HANKEL_BAD_VERSION] = "unsupported protocol version",
    [HANKEL_TOO_LONG] = "the payload is longer than max_frame",
    [HANKEL_BAD_CHECKSUM] = "the frame was damaged: its checksum does not match",
  };
  if (c->flow.leaving)
    return farewell(c);
  if (c->binary.ping_time != 0)
    return pong(c);
  if (c->binary.feed_waits)
    return feed_at(c);
  if (hk_binary_asks(c))
    return hk_binary_answer(c);
  if (points_next(&c->binary.inbox) && !hk_intake_open(hk_connection_intake(c), c->source, c->net->capacity.frame_points))
    return HK_TURN_WAIT;
  struct hk_frame f;
  if (!c->binary.greeted)
    c->binary.inbox.max_length = FIRST_FRAME;
  const int code = hk_inbox_next(&c->binary.inbox, &f);
  if (code == HK_FRAME_WHOLE)
    return binary_take(c, &f);
  if (code == HK_FRAME_PART)
    return HK_TURN_NEED;
  return hk_binary_fault(c, &f, (uint16_t)code, code <= HANKEL_BAD_CHECKSUM ? messages[code] : "it cannot be read");
}

static void binary_end(struct hk_connection *c)
{
  if (c->binary.inbox.end > c->binary.inbox.start) {
    hk_count(&c->loop->counters.bad_frames, 1);
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, c->peer, "the connection ended within a frame");
  }
  hk_connection_finish(c);
}

static char *space(struct hk_connection *c, size_t *size)
{
  hk_inbox_lend(&c->binary.inbox, c->loop->buffer, HK_LOOP_BUFFER);
  return (char *)hk_inbox_space(&c->binary.inbox, size);
}

static void wrote(struct hk_connection *c, size_t n)
{
  hk_inbox_wrote(&c->binary.inbox, n);
}

static int binary_settle(struct hk_connection *c)
{
  return hk_inbox_settle(&c->binary.inbox);
}

static size_t binary_left(const struct hk_connection *c)
{
  return c->binary.inbox.end - c->binary.inbox.start;
}

static void free_part(struct hk_connection *c)
{
  hk_inbox_free(&c->binary.inbox);
  hk_cameras_free(&c->binary.cameras);
  hk_binary_abandon(c);
}

static void binary_tell(struct hk_connection *c, uint16_t code, const char *message)
{
  hk_binary_error(c, 0, code, 0, message);
  if (code == HANKEL_TIMEOUT)
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, c->peer, "closed: %s", message);
}

static bool awaits_reload(const struct hk_connection *c)
{
  return c->binary.reload != 0;
}

const struct hk_connection_kind hk_binary_kind = {
  .scopes = HK_SCOPE_ALL,
  .late_newcomer = "no HELLO came within the handshake deadline",
  .lingers = true,
  .space = space,
  .wrote = wrote,
  .settle = binary_settle,
  .left = binary_left,
  .free = free_part,
  .step = binary_step,
  .end = binary_end,
  .tell = binary_tell,
  .acknowledge = binary_acknowledge,
  .awaits_reload = awaits_reload,
};
