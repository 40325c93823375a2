/* libhankel: sensors, points, and sending. See client.h. */
#include "proto/client/client_send.h"
#include "proto/client/client.h"
#include "proto/client/client_connect.h"
#include "proto/client/client_receive.h"
#include "proto/wire/columns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static uint32_t client_send_hash(const char *name)
{
  uint32_t x = 0x811c9dc5u; /* FNV-1a suffices: the names are the program's own, so nobody crafts collisions */
  for (; *name; name++)
    x = (x ^ (uint8_t)*name) * 0x01000193u;
  return x;
}

/* Returns the entry of the name in the index, or the free entry for it. */
static uint32_t client_send_place_of(const struct hankel *h, const char *name)
{
  uint32_t place = client_send_hash(name) & (h->own.index_size - 1);
  while (h->own.index[place] != 0 && strcmp(h->own.sensor[h->own.index[place] - 1].name, name) != 0)
    place = (place + 1) & (h->own.index_size - 1);
  return place;
}

/* Makes room for one more sensor in table and index. */
static int client_send_grow(struct hankel *h)
{
  if (h->own.n == h->own.capacity) {
    const uint32_t capacity = h->own.capacity ? 2 * h->own.capacity : 16;
    struct hk_client_sensor *sensors = realloc(h->own.sensor, capacity * sizeof *sensors);
    if (!sensors)
      return -ENOMEM;
    h->own.sensor = sensors;
    h->own.capacity = capacity;
  }
  if (2 * (h->own.n + 1) > h->own.index_size) {
    const uint32_t size = h->own.index_size ? 2 * h->own.index_size : 64;
    uint32_t *index = calloc(size, sizeof *index);
    if (!index)
      return -ENOMEM;
    free(h->own.index);
    h->own.index = index;
    h->own.index_size = size;
    for (uint32_t i = 0; i < h->own.n; i++)
      index[client_send_place_of(h, h->own.sensor[i].name)] = i + 1;
  }
  return 0;
}

int hankel_sensor(hankel *h, const char *name)
{
  const size_t length = strlen(name);
  if (!hk_name_valid(name, length)) {
    snprintf(h->error, sizeof h->error,
             "a sensor's name must be 1 to %d bytes of UTF-8 with no control characters; this one has %zu", HK_NAME_MAX, length);
    return -EINVAL;
  }
  if (client_send_grow(h) < 0 || h->own.n == INT32_MAX)
    return -ENOMEM;
  const uint32_t place = client_send_place_of(h, name);
  if (h->own.index[place] != 0)
    return (int)(h->own.index[place] - 1);
  char *copy = strdup(name);
  if (!copy)
    return -ENOMEM;
  h->own.sensor[h->own.n] = (struct hk_client_sensor){ copy, HK_NO_HANDLE, HK_SENSOR_NEW };
  h->own.index[place] = ++h->own.n;
  h->link.fresh = true;
  return (int)(h->own.n - 1);
}

/* Moves the waiting points to the front when the end is reached. */
static uint32_t client_send_make_room(struct hankel *h)
{
  if (h->points.kept == h->points.n) {
    h->points.kept = h->points.first = h->points.n = 0;
  } else if (h->points.n == h->options.buffer && h->points.kept >= h->options.buffer / 4) {
    const size_t n = h->points.n - h->points.kept;
    memmove(h->points.sensor, h->points.sensor + h->points.kept, n * sizeof *h->points.sensor);
    memmove(h->points.time, h->points.time + h->points.kept, n * sizeof *h->points.time);
    memmove(h->points.value, h->points.value + h->points.kept, n * sizeof *h->points.value);
    h->points.first -= h->points.kept;
    h->points.kept = 0;
    h->points.n = (uint32_t)n;
  }
  return h->options.buffer - h->points.n;
}

int64_t hankel_send_columns(hankel *h, uint32_t n, const uint32_t *sensor, const int64_t *time, const double *value)
{
  for (uint32_t i = 0; i < n; i++) {
    if (sensor[i] >= h->own.n) {
      snprintf(h->error, sizeof h->error, "there is no sensor number %u: hankel_sensor gives the numbers", sensor[i]);
      return -EINVAL;
    }
  }
  uint32_t taken = 0;
  for (;;) {
    const uint32_t room = client_send_make_room(h), rest = n - taken, piece = rest < room ? rest : room;
    memcpy(h->points.sensor + h->points.n, sensor + taken, piece * sizeof *sensor);
    memcpy(h->points.time + h->points.n, time + taken, piece * sizeof *time);
    memcpy(h->points.value + h->points.n, value + taken, piece * sizeof *value);
    h->points.n += piece;
    taken += piece;
    h->link.fresh |= piece > 0;
    if (taken == n)
      break;
    const uint32_t before = h->points.first;
    hk_client_pump(h);
    if (h->points.first == before && client_send_make_room(h) == 0)
      break;
  }
  if (h->points.n - h->points.first >= HK_CLIENT_FRAME_POINTS)
    hk_client_pump(h);
  return taken;
}

int hankel_send(hankel *h, uint32_t sensor, int64_t time, double value)
{
  const int64_t taken = hankel_send_columns(h, 1, &sensor, &time, &value);
  return taken < 0 ? (int)taken : taken == 1 ? 0 : -EAGAIN;
}

/* Keeps points of a feed until they are acknowledged, others until they are sent. */
static void sent(struct hankel *h, uint32_t n)
{
  h->points.first += n;
  if (!h->options.feed)
    h->points.kept = h->points.first;
}

void hk_client_acknowledged(struct hankel *h, uint64_t points)
{
  if (h->points.pictures > 0 && points > h->points.position) { /* it is before all points that are not acknowledged */
    h->points.position++;
    h->points.pictures = 0;
  }
  const uint64_t more = points > h->points.position ? points - h->points.position : 0;
  uint32_t n = more < h->points.n - h->points.kept ? (uint32_t)more : h->points.n - h->points.kept;
  while (h->points.kept + n < h->points.first && h->own.sensor[h->points.sensor[h->points.kept + n]].phase == HK_SENSOR_REFUSED)
    n++; /* was never sent */
  h->points.kept += n;
  h->points.position += n;
  if (h->points.first < h->points.kept) /* an earlier connection had sent it */
    h->points.first = h->points.kept;
}

/* Builds a frame of waiting points, at most `most` points and `bytes` bytes. Drops points of refused sensors; in a feed, whose
 * points are numbered, the frame ends before them. Returns the number of waiting points that it uses, of which p->n are in the
 * frame. 0: the next sensor has no handle yet. */
static uint32_t client_send_gather(struct hankel *h, struct hk_points *p, uint32_t most, size_t bytes)
{
  uint32_t used = 0, n = 0;
  bool small = true, one = true, even = true;
  for (uint32_t i = h->points.first; i < h->points.n && n < most; i++, used++) {
    const struct hk_client_sensor *s = &h->own.sensor[h->points.sensor[i]];
    if (s->phase == HK_SENSOR_REFUSED && h->options.feed && n > 0)
      break;
    if (s->phase == HK_SENSOR_REFUSED) {
      h->counters.refused++;
      continue;
    }
    if (s->phase == HK_SENSOR_NEW)
      break;
    const int64_t time = h->points.time[i];
    int64_t step, last_step;
    const double value = h->points.value[i];
    const bool value_small = (double)(float)value == value;
    const bool time_one = n == 0 || time == h->points.frame_time[0];
    const bool time_even =
        n < 2 || (!__builtin_sub_overflow(time, h->points.frame_time[n - 1], &step) &&
                  !__builtin_sub_overflow(h->points.frame_time[1], h->points.frame_time[0], &last_step) && step == last_step);
    const bool now_small = small && value_small, now_one = one && time_one, now_even = even && time_even;
    const uint8_t time_kind = now_one ? HK_TIME_ONE : now_even ? HK_TIME_EVEN : HK_TIME_EACH;
    if (hk_points_size(time_kind, now_small ? HK_VALUE_F32 : HK_VALUE_F64, n + 1) > bytes)
      break;
    small = now_small;
    one = now_one;
    even = now_even;
    h->points.frame_handle[n] = s->handle;
    h->points.frame_time[n] = time;
    h->points.frame_value[n] = value;
    n++;
  }
  if (small) {
    for (uint32_t i = 0; i < n; i++)
      h->points.frame_value32[i] = (float)h->points.frame_value[i];
  }
  *p = (struct hk_points){
    .n = n,
    .time_kind = one    ? HK_TIME_ONE
                 : even ? HK_TIME_EVEN
                        : HK_TIME_EACH,
    .value_kind = small ? HK_VALUE_F32 : HK_VALUE_F64,
    .base = h->points.frame_time[0],
    .step = n > 1 && even ? h->points.frame_time[1] - h->points.frame_time[0] : 0,
    .times = h->points.frame_time,
    .values = small ? (const void *)h->points.frame_value32 : h->points.frame_value,
    .handles = h->points.frame_handle,
  };
  return used;
}

/* Sends the built datagram. False: the socket accepts no more now. */
static bool send_datagram(struct hankel *h)
{
  ssize_t sent = send(h->datagrams.socket, h->datagrams.frame, h->datagrams.size, MSG_NOSIGNAL);
  if (sent < 0 && errno == ECONNREFUSED) /* the error is of an earlier datagram; this one was not sent */
    sent = send(h->datagrams.socket, h->datagrams.frame, h->datagrams.size, MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR))
    return false;
  h->counters.unsent += sent < 0;
  h->datagrams.size = 0;
  return true;
}

static void send_over_udp(struct hankel *h)
{
  while (h->datagrams.size == 0 || send_datagram(h)) {
    struct hk_points p;
    const uint32_t used =
        client_send_gather(h, &p, HK_CLIENT_FRAME_POINTS, HK_CLIENT_DATAGRAM - (h->datagrams.mac ? HK_MAC_BYTES : 0));
    sent(h, used);
    if (p.n == 0) {
      if (used == 0)
        return;
      continue;
    }
    p.feed = h->datagrams.feed;
    p.sequence = ++h->datagrams.sequence;
    p.before = h->datagrams.before;
    h->datagrams.before += p.n;
    struct hk_writer w = HK_WRITER(h->datagrams.frame, sizeof h->datagrams.frame);
    (void)hk_points_write(&w, 0, &p); /* fits: gather limits its size */
    if (h->datagrams.mac && hk_mac_make(h->datagrams.mac, h->datagrams.frame, w.size, h->datagrams.frame + w.size) != 0) {
      hk_client_disconnect(h, -ENOMEM, "a keyed checksum could not be made");
      return;
    }
    h->datagrams.size = w.size + (h->datagrams.mac ? HK_MAC_BYTES : 0);
    h->written += p.n;
    h->counters.points += p.n;
    h->counters.datagrams++;
  }
}

static size_t out_room(const struct hankel *h)
{
  return h->link.out.capacity - h->link.out.size;
}

static void send_over_tcp(struct hankel *h)
{
  /* Sends either a well filled frame or none: if the buffer is nearly full, waits for the socket. */
  while (h->points.first < h->points.n && out_room(h) >= h->link.out.capacity / 2) {
    struct hk_points p;
    const uint32_t used = client_send_gather(h, &p, HK_CLIENT_FRAME_POINTS, out_room(h));
    if (used == 0)
      return;
    if (h->options.feed)
      p.before = h->points.position + h->points.pictures + (h->points.first - h->points.kept) + (used - p.n);
    if (p.n > 0 && hk_points_write(&h->link.out, 0, &p) < 0)
      return; /* cannot happen: gather limits the size */
    sent(h, used);
    if (h->options.feed)
      hk_client_acknowledged(h, h->points.position); /* points of refused sensors need no acknowledgement */
    h->written += p.n;
    h->counters.points += p.n;
  }
}

/* Requests the handles of new sensors, as many as fit. The tag is the number of the first. */
static void ask_for_handles(struct hankel *h)
{
  enum { NAMES = 256 };
  struct hk_string names[NAMES];
  while (h->own.asked < h->own.n) {
    uint32_t n = 0;
    size_t bytes = HK_FRAME_HEADER + 4;
    for (; n < NAMES && h->own.asked + n < h->own.n; n++) {
      names[n] = hk_string(h->own.sensor[h->own.asked + n].name);
      bytes += 2 + names[n].length;
      if (bytes > out_room(h))
        break;
    }
    if (n == 0 || hk_register_write(&h->link.out, h->own.asked, n, names) < 0)
      return; /* continues when the socket has accepted the waiting bytes */
    h->own.asked += n;
  }
}

/* Sends small requests. Those that do not fit are retried. */
static void client_send_ask(struct hankel *h)
{
  struct hk_writer *w = &h->link.out;
  if (h->subscription.wanted) {
    const struct hk_subscription m = { h->subscription.what, h->subscription.min_score, hk_string(h->subscription.glob),
                                       h->subscription.since };
    h->subscription.wanted = (h->subscription.what ? hk_subscribe_write(w, 0, &m) : hk_empty_write(w, HK_UNSUBSCRIBE, 0)) < 0;
    h->subscription.asked += !h->subscription.wanted;
  }
  if (h->request.status_wanted)
    h->request.status_wanted = hk_empty_write(w, HK_STATUS, 0) < 0;
  if (h->request.reload_wanted)
    h->request.reload_wanted = hk_empty_write(w, HK_RELOAD, 0) < 0;
  if (h->request.operate_wanted)
    h->request.operate_wanted = hk_operate_write(w, 0, &h->request.operate) < 0;
  if (h->request.sensors_wanted)
    h->request.sensors_wanted = hk_sensors_write(w, 0, &h->request.sensors_asked) < 0;
}

/* Sends requests that must follow all points. */
static void ask_last(struct hankel *h)
{
  struct hk_writer *w = &h->link.out;
  const bool drained = h->points.first == h->points.n && h->datagrams.size == 0;
  if (((h->ping_wanted && drained) || h->written - h->pinged >= HK_CLIENT_PING_POINTS) &&
      hk_ping_write(w, HK_PING, 0, h->written) == 0) {
    h->pinged = h->written;
    h->link.last_ping = hk_client_now();
    h->pings++;
    h->ping_wanted &= !drained;
  }
  if (h->bye_wanted && drained && h->points.kept == h->points.n && !h->bye_sent)
    h->bye_sent = hk_bye_write(w, 0, h->datagrams.sequence, h->datagrams.before) == 0;
}

/* Writes waiting bytes to the socket. */
static void send_out(struct hankel *h)
{
  while (h->link.out_start < h->link.out.size) {
    const ssize_t n = hk_client_send(h, h->link.out.data + h->link.out_start, h->link.out.size - h->link.out_start);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      break;
    if (n < 0) {
      /* Reads the daemon's last frames first: an error frame tells more than errno. */
      const int fault = -errno;
      hk_client_read(h);
      if (h->link.fd >= 0)
        hk_client_disconnect(h, fault, strerror(-fault));
      return;
    }
    h->link.out_start += (size_t)n;
    h->link.last_sent = hk_client_now();
  }
  if (h->link.out_start > 0) {
    memmove(h->link.out.data, h->link.out.data + h->link.out_start, h->link.out.size - h->link.out_start);
    h->link.out.size -= h->link.out_start;
    h->link.out_start = 0;
  }
}

void hk_client_pump(struct hankel *h)
{
  if (h->phase != HK_CLIENT_GREETING && h->phase != HK_CLIENT_READY)
    return;
  h->link.fresh = false;
  for (;;) {
    const uint32_t first = h->points.first, asked = h->own.asked;
    if (h->phase == HK_CLIENT_READY) {
      client_send_ask(h);
      ask_for_handles(h);
      if (h->datagrams.socket >= 0)
        send_over_udp(h);
      else
        send_over_tcp(h);
      ask_last(h);
    }
    send_out(h);
    const bool moved = h->points.first != first || h->own.asked != asked;
    if (h->phase != HK_CLIENT_READY || !moved || h->link.out.size > 0)
      return;
  }
}
