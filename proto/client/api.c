/* libhankel: the public calls, and its timers. See hankel.h. */
#include "proto/client/client.h"
#include "proto/client/client_connect.h"
#include "proto/client/client_picture.h"
#include "proto/client/client_receive.h"
#include "proto/client/client_send.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Time of the next timer in READY; INT64_MAX: none. Data that cannot be sent now, because the daemon does not read or has not
 * answered a REGISTER, waits for the socket, not for a timer. */
static int64_t next_tick(const struct hankel *h)
{
  if (h->pings > h->pongs)
    return (h->link.last_sent > h->link.last_read ? h->link.last_sent : h->link.last_read) + HK_CLIENT_DEAD_MS;
  if (h->ping_wanted)
    return INT64_MAX;
  return h->written > h->pinged ? h->link.last_ping + HK_CLIENT_DOUBT_MS : h->link.last_sent + HK_CLIENT_PING_MS;
}

static void tick_ready(struct hankel *h)
{
  if (h->pings > h->pongs)
    hk_client_disconnect(h, -ETIMEDOUT, "the daemon no longer answers");
  else
    h->ping_wanted = h->link.fresh = true;
}

/* Handles expired timers. */
static void api_tick(struct hankel *h)
{
  const int64_t now = hk_client_now();
  if (h->phase == HK_CLIENT_CLOSED && now >= h->link.retry_at)
    hk_client_begin(h);
  const bool beginning = h->phase == HK_CLIENT_CONNECTING || h->phase == HK_CLIENT_SHAKING || h->phase == HK_CLIENT_GREETING;
  if (beginning && now >= h->link.deadline)
    hk_client_disconnect(h, -ETIMEDOUT, "the daemon does not answer");
  if (h->phase == HK_CLIENT_READY && now >= next_tick(h))
    tick_ready(h);
}

int hankel_timeout(const hankel *h)
{
  const int64_t now = hk_client_now();
  int64_t until;
  switch (h->phase) {
  case HK_CLIENT_CLOSED:
    until = h->link.retry_at;
    break;
  case HK_CLIENT_CONNECTING:
  case HK_CLIENT_SHAKING:
  case HK_CLIENT_GREETING:
    until = h->link.deadline;
    break;
  case HK_CLIENT_READY:
    until = h->link.fresh || (h->link.tls && hk_client_tls_pending(h->link.tls)) ? now
            : h->datagrams.size > 0                                              ? now + 1
                                                                                 : next_tick(h);
    break;
  default:
    until = INT64_MAX;
  }
  return until == INT64_MAX ? -1 : until > now ? (int)(until - now) : 0;
}

int hankel_fd(const hankel *h)
{
  return h->link.fd;
}

short hankel_events(const hankel *h)
{
  if (h->link.fd < 0)
    return 0;
  const bool room = h->link.out.size > h->link.out_start || (h->link.tls && hk_client_tls_wants_room(h->link.tls));
  return h->phase == HK_CLIENT_CONNECTING ? POLLOUT : (short)(POLLIN | (room ? POLLOUT : 0));
}

int hankel_step(hankel *h, int timeout)
{
  api_tick(h);
  hk_client_pump(h);
  const int own = hankel_timeout(h);
  if (own >= 0 && (timeout < 0 || own < timeout))
    timeout = own;
  struct pollfd p = { .fd = h->link.fd, .events = hankel_events(h) };
  const int ready = h->phase != HK_CLIENT_OVER ? poll(&p, 1, timeout) : 0;
  if (ready > 0 && h->phase == HK_CLIENT_CONNECTING)
    hk_client_connected(h);
  else if (ready > 0 && h->phase == HK_CLIENT_SHAKING)
    hk_client_shake(h);
  else if ((ready > 0 && p.revents & (POLLIN | POLLHUP | POLLERR)) || (h->link.tls && hk_client_tls_pending(h->link.tls)))
    hk_client_read(h);
  hk_client_pump(h);
  return h->phase == HK_CLIENT_OVER ? h->fault : 0;
}

/* Steps until done(h), or until the timeout. */
static int step_until(hankel *h, bool (*done)(const hankel *), int timeout)
{
  const int64_t deadline = hk_client_now() + timeout;
  for (;;) {
    hk_client_pump(h); /* may suffice */
    if (done(h))
      return 0;
    if (h->phase == HK_CLIENT_OVER)
      return h->fault ? h->fault : -ENOTCONN;
    const int64_t left = deadline - hk_client_now();
    if (timeout >= 0 && left <= 0) {
      if (h->phase == HK_CLIENT_READY)
        snprintf(h->error, sizeof h->error, "%s: no answer within %d ms", h->options.address, timeout);
      return -ETIMEDOUT;
    }
    (void)hankel_step(h, timeout < 0 ? -1 : (int)left); /* an error shows in the phase */
  }
}

static bool is_ready(const hankel *h)
{
  return h->phase == HK_CLIENT_READY;
}
static bool is_flushed(const hankel *h)
{
  return h->points.first == h->points.n && h->link.out.size == h->link.out_start && h->datagrams.size == 0 &&
         h->phase == HK_CLIENT_READY;
}
static bool is_confirmed(const hankel *h)
{
  return is_flushed(h) && h->points.kept == h->points.n && !h->ping_wanted && !h->subscription.wanted && h->pings == h->pongs &&
         h->confirmed == h->written;
}
static bool has_report(const hankel *h)
{
  return h->request.report != NULL;
}
static bool is_farewell(const hankel *h)
{
  return h->farewell;
}

int hankel_wait(hankel *h, int timeout)
{
  return step_until(h, is_ready, timeout);
}
int hankel_flush(hankel *h, int timeout)
{
  return step_until(h, is_flushed, timeout);
}

int hankel_sync(hankel *h, int timeout)
{
  const uint64_t in_doubt = h->counters.in_doubt;
  h->ping_wanted = h->link.fresh = true;
  const int status = step_until(h, is_confirmed, timeout);
  return status == 0 && h->counters.in_doubt != in_doubt ? -ECONNRESET : status;
}

static bool is_acknowledged(const hankel *h)
{
  return is_flushed(h) && h->points.kept == h->points.n && h->points.pictures == 0;
}

int hankel_picture(hankel *h, const struct hankel_picture *picture, int timeout)
{
  const int64_t begin = hk_client_now();
  if (h->options.udp) {
    snprintf(h->error, sizeof h->error, "pictures go over TCP only");
    return -EINVAL;
  }
  int status = step_until(h, h->options.feed ? is_acknowledged : is_flushed, timeout);
  if (status == 0)
    status = hk_client_picture(h, picture);
  if (status != 0)
    return status;
  const uint64_t position = h->points.position, connections = h->counters.reconnected;
  const int64_t left = timeout - (hk_client_now() - begin);
  status = step_until(h, h->options.feed ? is_acknowledged : is_flushed, timeout < 0 ? -1 : left > 0 ? (int)left : 0);
  const bool arrived = h->options.feed ? h->points.position > position : h->counters.reconnected == connections;
  return status == 0 && !arrived ? -ECONNRESET : status;
}

int hankel_status(hankel *h, char **text, int timeout)
{
  free(h->request.report);
  h->request.report = NULL;
  h->request.status_wanted = h->link.fresh = true;
  const int status = step_until(h, has_report, timeout);
  if (status < 0)
    return status;
  *text = h->request.report;
  h->request.report = NULL;
  return 0;
}

int hankel_reload(hankel *h, char **text, int timeout)
{
  free(h->request.report);
  h->request.report = NULL;
  h->request.reload_wanted = h->link.fresh = true;
  const int status = step_until(h, has_report, timeout);
  if (status < 0)
    return status;
  *text = h->request.report;
  h->request.report = NULL;
  return h->request.taken ? 0 : 1;
}

static int api_operate(hankel *h, const struct hk_operate *m, char **text, int timeout)
{
  if (m->subject.length > HK_GLOB_MAX || m->by.length > HK_WHO_MAX) {
    snprintf(h->error, sizeof h->error, "a name or a glob has at most %d bytes, and who asks %u", HK_GLOB_MAX, HK_WHO_MAX);
    return -EINVAL;
  }
  if (!hk_name_piece_valid(m->subject.data, m->subject.length, NULL) || !hk_name_piece_valid(m->by.data, m->by.length, NULL)) {
    snprintf(h->error, sizeof h->error, "a name, a glob and who asks are UTF-8 with no control characters in it, such as a tab");
    return -EINVAL;
  }
  free(h->request.report);
  h->request.report = NULL;
  h->request.operate = *m;
  h->request.operate_wanted = h->link.fresh = true;
  const int status = step_until(h, has_report, timeout);
  h->request.operate_wanted = false; /* the strings become invalid */
  if (status < 0)
    return status;
  *text = h->request.report;
  h->request.report = NULL;
  return h->request.taken ? 0 : 1;
}

int hankel_acknowledge(hankel *h, const char *sensor, uint32_t number, const char *by, char **text, int timeout)
{
  const struct hk_operate m = { HANKEL_ACKNOWLEDGE, number, 0, hk_string(sensor), hk_string(by) };
  return api_operate(h, &m, text, timeout);
}

int hankel_feedback(hankel *h, const char *sensor, uint32_t incident, int what, const char *by, char **text, int timeout)
{
  if (what < HANKEL_EXPECTED || what > HANKEL_UNDO) {
    snprintf(h->error, sizeof h->error, "feedback is one of expected, false and undo");
    return -EINVAL;
  }
  const struct hk_operate m = { (uint8_t)what, incident, 0, hk_string(sensor), hk_string(by) };
  return api_operate(h, &m, text, timeout);
}

int hankel_maintain(hankel *h, const char *glob, uint64_t duration, const char *by, char **text, int timeout)
{
  const struct hk_operate m = { duration > 0 ? HANKEL_BEGIN_MAINTENANCE : HANKEL_END_MAINTENANCE, 0, duration, hk_string(glob),
                                hk_string(by) };
  return api_operate(h, &m, text, timeout);
}

int hankel_cluster(hankel *h, int what, uint32_t partition, const char *by, char **text, int timeout)
{
  if (what < HANKEL_DRAIN || what > HANKEL_MOVE) {
    snprintf(h->error, sizeof h->error, "a machine of a cluster drains, does so no longer, or takes a partition");
    return -EINVAL;
  }
  const struct hk_operate m = { (uint8_t)what, partition, 0, hk_string(""), hk_string(by) };
  return api_operate(h, &m, text, timeout);
}

int hankel_sensors(hankel *h, const char *glob, uint32_t limit, uint64_t after, char **text, int timeout)
{
  const struct hk_sensors_asked m = { after, limit, hk_string(glob) };
  if (m.glob.length > HK_GLOB_MAX || !hk_name_piece_valid(glob, m.glob.length, NULL) || limit < 1 || limit > HK_SENSORS_MAX) {
    snprintf(h->error, sizeof h->error, "a glob is UTF-8 of at most %d bytes with no control characters, and the limit 1 to %u",
             HK_GLOB_MAX, HK_SENSORS_MAX);
    return -EINVAL;
  }
  free(h->request.report);
  h->request.report = NULL;
  h->request.sensors_asked = m;
  h->request.sensors_wanted = h->link.fresh = true;
  const int status = step_until(h, has_report, timeout);
  h->request.sensors_wanted = false; /* the string becomes invalid */
  if (status < 0)
    return status;
  *text = h->request.report;
  h->request.report = NULL;
  return 0;
}

int hankel_finish(hankel *h, int timeout)
{
  h->bye_wanted = h->link.fresh = true;
  return step_until(h, is_farewell, timeout);
}

static int api_subscribe(hankel *h, const char *glob, float min_score, uint32_t what, uint64_t since)
{
  const uint32_t shown = HANKEL_SCORES | HANKEL_UNSCORED | HANKEL_EVENTS | HANKEL_NOTICES | HANKEL_INCIDENTS;
  const uint32_t all = shown | HANKEL_VALUES | HANKEL_POSITIONS | HANKEL_SEQUENCES | HANKEL_DETAILS | HANKEL_NOTES;
  if ((what & ~all) || (what != 0 && !(what & shown)) || !(min_score >= 0 && min_score <= 1) || strlen(glob) > HK_GLOB_MAX) {
    snprintf(h->error, sizeof h->error,
             "subscribe: the glob has over %d bytes, the score is not in [0, 1], or nothing is asked for", HK_GLOB_MAX);
    return -EINVAL;
  }
  char *copy = strdup(glob);
  if (!copy)
    return -ENOMEM;
  free(h->subscription.glob);
  h->subscription.glob = copy;
  h->subscription.min_score = min_score;
  h->subscription.what = what;
  h->subscription.since = since;
  h->subscription.wanted = h->link.fresh = true;
  return 0;
}

int hankel_subscribe(hankel *h, const char *glob, float min_score, uint32_t what)
{
  return api_subscribe(h, glob, min_score, what, HANKEL_NOW);
}

int hankel_subscribe_since(hankel *h, const char *glob, float min_score, uint32_t what, uint64_t since)
{
  return api_subscribe(h, glob, min_score, what | HANKEL_POSITIONS, since);
}

/* False: out of memory. */
static bool copy_security(struct hankel_security *to, const struct hankel_security *from)
{
  const char *const *const strings[] = { &from->ca, &from->certificate, &from->key, &from->token, &from->token_file };
  const char **const copies[] = { &to->ca, &to->certificate, &to->key, &to->token, &to->token_file };
  bool all = true;
  for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
    *copies[i] = *strings[i] ? strdup(*strings[i]) : NULL;
    all &= !*strings[i] || *copies[i];
  }
  return all;
}

hankel *hankel_open(const struct hankel_options *options)
{
  hankel *h = calloc(1, sizeof *h);
  if (!h)
    return NULL;
  const uint32_t least = 1024, most = 1u << 20, points = options->buffer;
  h->options = *options;
  h->options.buffer = points < least ? least : points > most ? most : points;
  h->options.address = strdup(options->address);
  h->options.udp = options->udp ? strdup(options->udp) : NULL;
  h->options.feed = options->feed ? strdup(options->feed) : NULL;
  h->subscription.since = HANKEL_NOW;
  h->options.client = strndup(options->client ? options->client : "libhankel", HK_CLIENT_MAX);
  const bool secure = copy_security(&h->options.security, &options->security);
  h->link.fd = h->datagrams.socket = -1;
  h->link.pause = HK_CLIENT_PAUSE_MS;
  h->link.max_frame = HK_FRAME_MAX_LEAST;
  h->link.in.max_length = HK_FRAME_MAX;
  h->link.out = (struct hk_writer)HK_WRITER(malloc(HK_CLIENT_OUT), HK_CLIENT_OUT);
  h->points.sensor = malloc(h->options.buffer * sizeof *h->points.sensor);
  h->points.time = malloc(h->options.buffer * sizeof *h->points.time);
  h->points.value = malloc(h->options.buffer * sizeof *h->points.value);
  h->points.frame_handle = malloc(HK_CLIENT_FRAME_POINTS * sizeof *h->points.frame_handle);
  h->points.frame_time = malloc(HK_CLIENT_FRAME_POINTS * sizeof *h->points.frame_time);
  h->points.frame_value = malloc(HK_CLIENT_FRAME_POINTS * sizeof *h->points.frame_value);
  h->points.frame_value32 = malloc(HK_CLIENT_FRAME_POINTS * sizeof *h->points.frame_value32);
  if (!secure || (options->feed && !h->options.feed) || !h->options.address || (options->udp && !h->options.udp) ||
      !h->options.client || !h->link.out.data || !h->points.sensor || !h->points.time || !h->points.value ||
      !h->points.frame_handle || !h->points.frame_time || !h->points.frame_value || !h->points.frame_value32) {
    hankel_close(h);
    return NULL;
  }
  hk_client_begin(h);
  return h;
}

void hankel_close(hankel *h)
{
  if (!h)
    return;
  hk_client_release(h);
  hk_client_forget_names(h);
  for (uint32_t i = 0; i < h->own.n; i++)
    free(h->own.sensor[i].name);
  void *const owned[] = { (void *)h->options.address,
                          (void *)h->options.udp,
                          (void *)h->options.client,
                          (void *)h->options.security.ca,
                          (void *)h->options.security.certificate,
                          (void *)h->options.security.key,
                          (void *)h->options.security.token,
                          (void *)h->options.security.token_file,
                          (void *)h->options.feed,
                          h->link.out.data,
                          h->points.sensor,
                          h->points.time,
                          h->points.value,
                          h->points.frame_handle,
                          h->points.frame_time,
                          h->points.frame_value,
                          h->points.frame_value32,
                          h->own.sensor,
                          h->own.index,
                          h->subscription.glob,
                          h->results.columns,
                          h->request.report };
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
    free(owned[i]);
  free(h);
}

const char *hankel_error(const hankel *h)
{
  return h->error;
}
int hankel_connected(const hankel *h)
{
  return h->phase == HK_CLIENT_READY;
}

uint64_t hankel_feed_position(const hankel *h)
{
  return h->points.position;
}
int hankel_durability(const hankel *h)
{
  return h->points.durability;
}

void hankel_count(const hankel *h, struct hankel_counters *out)
{
  *out = h->counters;
}
