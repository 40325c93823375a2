/* libhankel: the public calls and the life of the connection. See hankel.h. */
#include "proto/client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t hk_client_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Splits HOST:PORT, [V6]:PORT or PORT and looks it up. 0, -EINVAL (no address, and will never be one) or -EHOSTUNREACH; *why. */
static int look_up(const char *text, int socktype, char host[256], struct addrinfo **out, const char **why)
{
  snprintf(host, 256, "127.0.0.1");
  const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
  if (colon) {
    const bool bracket = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
    const char *begin = text + bracket;
    const size_t length = (size_t)(colon - begin) - bracket;
    if (length == 0 || length >= 256 || (text[0] == '[' && !bracket)) {
      *why = "no address of the form HOST:PORT";
      return -EINVAL;
    }
    memcpy(host, begin, length);
    host[length] = 0;
  }
  if (port[0] == 0 || strspn(port, "0123456789") != strlen(port) || strtoul(port, NULL, 10) > 65535) {
    *why = "no address of the form HOST:PORT, with a number up to 65535 for the port";
    return -EINVAL;
  }
  const struct addrinfo hints = { .ai_socktype = socktype, .ai_flags = AI_NUMERICSERV };
  const int status = getaddrinfo(host, port, &hints, out);
  if (status != 0) {
    *why = gai_strerror(status);
    return -EHOSTUNREACH;
  }
  return 0;
}

/* Gives back what belongs to a connection: sockets, addresses, what was read. */
static void release(struct hankel *h)
{
  if (h->tls)
    hk_client_tls_end(h->tls);
  hk_client_tls_free(h->tls);
  h->tls = NULL;
  hk_mac_free(h->mac);
  h->mac = NULL;
  if (h->fd >= 0)
    close(h->fd);
  if (h->udp >= 0)
    close(h->udp);
  if (h->addresses)
    freeaddrinfo(h->addresses);
  h->fd = h->udp = -1;
  h->addresses = h->address = NULL;
  hk_inbox_free(&h->in);
}

void hk_client_disconnect(struct hankel *h, int fault, const char *reason)
{
  const bool was_ready = h->phase == HK_CLIENT_READY;
  const uint64_t in_doubt = h->options.feed ? 0 : h->written - h->confirmed;
  char why[1200];
  snprintf(why, sizeof why, "%.1199s", reason);
  snprintf(h->error, sizeof h->error, "%.300s: %s", h->options.address, why);
  release(h);
  h->out.size = h->out_start = h->datagram_size = 0;
  h->counters.in_doubt += in_doubt;
  h->confirmed = h->pinged = h->written;
  h->feed = h->sequence = h->before = 0;
  h->pings = h->pongs = 0;
  h->asked = 0;
  for (uint32_t i = 0; i < h->n_sensors; i++)
    h->sensors[i].phase = HK_SENSOR_NEW;
  h->subscribe_wanted = h->what != 0;
  h->subscribing = 0;
  h->first = h->kept; /* of a feed: once more from there */
  hk_client_forget_names(h);
  const bool refused = fault == -EPERM || (fault == -EACCES && !h->greeted_once);
  if (h->options.once || h->farewell || fault == -EINVAL || refused) {
    h->phase = HK_CLIENT_OVER;
    h->fault = fault;
  } else {
    /* Half of the pause is random, so that the clients of a daemon that starts again do not come all at once. */
    const int64_t half = h->pause / 2;
    h->phase = HK_CLIENT_CLOSED;
    h->retry_at = hk_client_now() + half + random() % (half + 1);
    h->pause = 2 * h->pause < HK_CLIENT_PAUSE_MOST_MS ? 2 * h->pause : HK_CLIENT_PAUSE_MOST_MS;
  }
  if (was_ready && h->options.callbacks.disconnected)
    h->options.callbacks.disconnected(h->options.arg, in_doubt, why);
}

ssize_t hk_client_recv(struct hankel *h, void *data, size_t size)
{
  return h->tls ? hk_client_tls_read(h->tls, data, size) : recv(h->fd, data, size, 0);
}

ssize_t hk_client_send(struct hankel *h, const void *data, size_t size)
{
  return h->tls ? hk_client_tls_write(h->tls, data, size) : send(h->fd, data, size, MSG_NOSIGNAL);
}

/* Says HELLO. */
static void greet(struct hankel *h)
{
  char token[HK_CLIENT_TOKEN], error[300];
  int status = hk_client_token(&h->options.security, token, error, sizeof error);
  if (status == 0 && token[0] && !h->tls)
    status = hk_client_token_may_go(&h->options.security, h->address->ai_addr, error, sizeof error);
  if (status < 0) {
    hk_client_disconnect(h, status, error);
    return;
  }
  h->phase = HK_CLIENT_GREETING;
  h->last_read = h->last_sent = h->last_ping = hk_client_now();
  const struct hk_hello hello = { hk_string(h->options.client), hk_string(token), h->options.security.mac ? HK_WANTS_KEY : 0 };
  (void)hk_hello_write(&h->out, 0, &hello); /* the buffer is empty and the name was checked */
  h->fresh = true;
}

/* Goes on with the handshake. */
static void shake(struct hankel *h)
{
  const int status = hk_client_tls_shake(h->tls);
  if (status > 0)
    greet(h);
  else if (status < 0)
    hk_client_disconnect(h, status, *hk_client_tls_fault(h->tls) ? hk_client_tls_fault(h->tls) : strerror(-status));
}

/* Connected: shakes hands, if that is to be, and says HELLO. */
static void begin_talk(struct hankel *h)
{
  const int on = 1;
  char error[300];
  (void)setsockopt(h->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* only a matter of speed */
  if (!h->options.security.tls) {
    greet(h);
    return;
  }
  const int status = hk_client_tls_new(&h->tls, &h->options.security, h->host, h->fd, error, sizeof error);
  if (status < 0) {
    hk_client_disconnect(h, status, error);
    return;
  }
  h->phase = HK_CLIENT_SHAKING;
  shake(h);
}

/* Tries the addresses from h->address on, until one says yes or later. */
static void try_addresses(struct hankel *h, int fault)
{
  for (; h->address; h->address = h->address->ai_next) {
    h->fd = socket(h->address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (h->fd < 0) {
      fault = -errno;
      continue;
    }
    if (connect(h->fd, h->address->ai_addr, h->address->ai_addrlen) == 0) {
      begin_talk(h);
      return;
    }
    if (errno == EINPROGRESS) {
      h->phase = HK_CLIENT_CONNECTING;
      return;
    }
    fault = -errno;
    close(h->fd);
    h->fd = -1;
  }
  hk_client_disconnect(h, fault, strerror(-fault));
}

static void begin(struct hankel *h)
{
  h->deadline = hk_client_now() + HK_CLIENT_GREETING_MS;
  const char *why = "";
  char udp_host[256];
  int status = look_up(h->options.address, SOCK_STREAM, h->host, &h->addresses, &why);
  struct addrinfo *udp = NULL;
  if (status == 0 && h->options.udp)
    status = look_up(h->options.udp, SOCK_DGRAM, udp_host, &udp, &why);
  if (udp) {
    h->udp = socket(udp->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (h->udp < 0 || connect(h->udp, udp->ai_addr, udp->ai_addrlen) < 0) {
      status = -errno;
      why = strerror(errno);
    }
    freeaddrinfo(udp);
  }
  if (status < 0) {
    hk_client_disconnect(h, status, why);
    return;
  }
  h->address = h->addresses;
  try_addresses(h, -EADDRNOTAVAIL);
}

/* connect() has come to an end. */
static void connected(struct hankel *h)
{
  int fault = 0;
  socklen_t size = sizeof fault;
  if (getsockopt(h->fd, SOL_SOCKET, SO_ERROR, &fault, &size) < 0)
    fault = errno;
  if (fault == 0) {
    begin_talk(h);
    return;
  }
  close(h->fd);
  h->fd = -1;
  h->address = h->address->ai_next;
  try_addresses(h, -fault);
}

/* When READY has to be looked at though nothing comes: INT64_MAX for never. What cannot be sent now, because the daemon does not
 * read or has not answered a REGISTER, waits for the socket and not for the clock. */
static int64_t next_tick(const struct hankel *h)
{
  if (h->pings > h->pongs)
    return (h->last_sent > h->last_read ? h->last_sent : h->last_read) + HK_CLIENT_DEAD_MS;
  if (h->ping_wanted)
    return INT64_MAX;
  return h->written > h->pinged ? h->last_ping + HK_CLIENT_DOUBT_MS : h->last_sent + HK_CLIENT_PING_MS;
}

static void tick_ready(struct hankel *h)
{
  if (h->pings > h->pongs)
    hk_client_disconnect(h, -ETIMEDOUT, "the daemon no longer answers");
  else
    h->ping_wanted = h->fresh = true;
}

/* What time alone brings about. */
static void tick(struct hankel *h)
{
  const int64_t now = hk_client_now();
  if (h->phase == HK_CLIENT_CLOSED && now >= h->retry_at)
    begin(h);
  const bool beginning = h->phase == HK_CLIENT_CONNECTING || h->phase == HK_CLIENT_SHAKING || h->phase == HK_CLIENT_GREETING;
  if (beginning && now >= h->deadline)
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
    until = h->retry_at;
    break;
  case HK_CLIENT_CONNECTING:
  case HK_CLIENT_SHAKING:
  case HK_CLIENT_GREETING:
    until = h->deadline;
    break;
  case HK_CLIENT_READY:
    until = h->fresh || (h->tls && hk_client_tls_pending(h->tls)) ? now : h->datagram_size > 0 ? now + 1 : next_tick(h);
    break;
  default:
    until = INT64_MAX;
  }
  return until == INT64_MAX ? -1 : until > now ? (int)(until - now) : 0;
}

int hankel_fd(const hankel *h)
{
  return h->fd;
}

short hankel_events(const hankel *h)
{
  if (h->fd < 0)
    return 0;
  const bool room = h->out.size > h->out_start || (h->tls && hk_client_tls_wants_room(h->tls));
  return h->phase == HK_CLIENT_CONNECTING ? POLLOUT : (short)(POLLIN | (room ? POLLOUT : 0));
}

int hankel_step(hankel *h, int timeout)
{
  tick(h);
  hk_client_pump(h);
  const int own = hankel_timeout(h);
  if (own >= 0 && (timeout < 0 || own < timeout))
    timeout = own;
  struct pollfd p = { .fd = h->fd, .events = hankel_events(h) };
  const int ready = h->phase != HK_CLIENT_OVER ? poll(&p, 1, timeout) : 0;
  if (ready > 0 && h->phase == HK_CLIENT_CONNECTING)
    connected(h);
  else if (ready > 0 && h->phase == HK_CLIENT_SHAKING)
    shake(h);
  else if ((ready > 0 && p.revents & (POLLIN | POLLHUP | POLLERR)) || (h->tls && hk_client_tls_pending(h->tls)))
    hk_client_read(h);
  hk_client_pump(h);
  return h->phase == HK_CLIENT_OVER ? h->fault : 0;
}

/* Steps until done(h), or the time is over. */
static int step_until(hankel *h, bool (*done)(const hankel *), int timeout)
{
  const int64_t deadline = hk_client_now() + timeout;
  for (;;) {
    hk_client_pump(h); /* may be all that is needed */
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
    (void)hankel_step(h, timeout < 0 ? -1 : (int)left); /* a fault shows in the phase */
  }
}

static bool is_ready(const hankel *h)
{
  return h->phase == HK_CLIENT_READY;
}
static bool is_flushed(const hankel *h)
{
  return h->first == h->n_points && h->out.size == h->out_start && h->datagram_size == 0 && h->phase == HK_CLIENT_READY;
}
static bool is_confirmed(const hankel *h)
{
  return is_flushed(h) && h->kept == h->n_points && !h->ping_wanted && !h->subscribe_wanted && h->pings == h->pongs &&
         h->confirmed == h->written;
}
static bool has_report(const hankel *h)
{
  return h->report != NULL;
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
  h->ping_wanted = h->fresh = true;
  const int status = step_until(h, is_confirmed, timeout);
  return status == 0 && h->counters.in_doubt != in_doubt ? -ECONNRESET : status;
}

int hankel_status(hankel *h, char **text, int timeout)
{
  free(h->report);
  h->report = NULL;
  h->status_wanted = h->fresh = true;
  const int status = step_until(h, has_report, timeout);
  if (status < 0)
    return status;
  *text = h->report;
  h->report = NULL;
  return 0;
}

int hankel_reload(hankel *h, char **text, int timeout)
{
  free(h->report);
  h->report = NULL;
  h->reload_wanted = h->fresh = true;
  const int status = step_until(h, has_report, timeout);
  if (status < 0)
    return status;
  *text = h->report;
  h->report = NULL;
  return h->taken ? 0 : 1;
}

int hankel_finish(hankel *h, int timeout)
{
  h->bye_wanted = h->fresh = true;
  return step_until(h, is_farewell, timeout);
}

static int subscribe(hankel *h, const char *glob, float min_score, uint32_t what, uint64_t since)
{
  const uint32_t shown = HANKEL_SCORES | HANKEL_UNSCORED | HANKEL_EVENTS | HANKEL_NOTICES;
  const uint32_t all = shown | HANKEL_VALUES | HANKEL_POSITIONS | HANKEL_SEQUENCES | HANKEL_DETAILS;
  if ((what & ~all) || (what != 0 && !(what & shown)) || !(min_score >= 0 && min_score <= 1) || strlen(glob) > HK_GLOB_MAX) {
    snprintf(h->error, sizeof h->error,
             "subscribe: the glob has over %d bytes, the score is not in [0, 1], or nothing is asked for", HK_GLOB_MAX);
    return -EINVAL;
  }
  char *copy = strdup(glob);
  if (!copy)
    return -ENOMEM;
  free(h->glob);
  h->glob = copy;
  h->min_score = min_score;
  h->what = what;
  h->since = since;
  h->subscribe_wanted = h->fresh = true;
  return 0;
}

int hankel_subscribe(hankel *h, const char *glob, float min_score, uint32_t what)
{
  return subscribe(h, glob, min_score, what, HANKEL_NOW);
}

int hankel_subscribe_since(hankel *h, const char *glob, float min_score, uint32_t what, uint64_t since)
{
  return subscribe(h, glob, min_score, what | HANKEL_POSITIONS, since);
}

/* False: no memory. */
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
  h->since = HANKEL_NOW;
  h->options.client = strndup(options->client ? options->client : "libhankel", HK_CLIENT_MAX);
  const bool secure = copy_security(&h->options.security, &options->security);
  h->fd = h->udp = -1;
  h->pause = HK_CLIENT_PAUSE_MS;
  h->max_frame = HK_FRAME_MAX_LEAST;
  h->in.max_length = HK_FRAME_MAX;
  h->out = (struct hk_writer)HK_WRITER(malloc(HK_CLIENT_OUT), HK_CLIENT_OUT);
  h->point_sensor = malloc(h->options.buffer * sizeof *h->point_sensor);
  h->point_time = malloc(h->options.buffer * sizeof *h->point_time);
  h->point_value = malloc(h->options.buffer * sizeof *h->point_value);
  h->frame_handle = malloc(HK_CLIENT_FRAME_POINTS * sizeof *h->frame_handle);
  h->frame_time = malloc(HK_CLIENT_FRAME_POINTS * sizeof *h->frame_time);
  h->frame_value = malloc(HK_CLIENT_FRAME_POINTS * sizeof *h->frame_value);
  h->frame_value32 = malloc(HK_CLIENT_FRAME_POINTS * sizeof *h->frame_value32);
  if (!secure || (options->feed && !h->options.feed) || !h->options.address || (options->udp && !h->options.udp) || !h->options.client || !h->out.data ||
      !h->point_sensor || !h->point_time || !h->point_value || !h->frame_handle || !h->frame_time || !h->frame_value ||
      !h->frame_value32) {
    hankel_close(h);
    return NULL;
  }
  begin(h);
  return h;
}

void hankel_close(hankel *h)
{
  if (!h)
    return;
  release(h);
  hk_client_forget_names(h);
  for (uint32_t i = 0; i < h->n_sensors; i++)
    free(h->sensors[i].name);
  void *const owned[] = { (void *)h->options.address,
                          (void *)h->options.udp,
                          (void *)h->options.client,
                          (void *)h->options.security.ca,
                          (void *)h->options.security.certificate,
                          (void *)h->options.security.key,
                          (void *)h->options.security.token,
                          (void *)h->options.security.token_file,
                          (void *)h->options.feed,
                          h->out.data,
                          h->point_sensor,
                          h->point_time,
                          h->point_value,
                          h->frame_handle,
                          h->frame_time,
                          h->frame_value,
                          h->frame_value32,
                          h->sensors,
                          h->index,
                          h->glob,
                          h->columns,
                          h->report };
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
  return h->position;
}
int hankel_durability(const hankel *h)
{
  return h->durability;
}

void hankel_count(const hankel *h, struct hankel_counters *out)
{
  *out = h->counters;
}
