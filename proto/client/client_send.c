/* libhankel: sensors, points, and everything that goes out. See client.h. */
#include "proto/client/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static uint32_t hash(const char *name)
{
  uint32_t x = 0x811c9dc5u; /* FNV-1a; the names are the program's own, so nobody aims at the table */
  for (; *name; name++)
    x = (x ^ (uint8_t)*name) * 0x01000193u;
  return x;
}

/* Place of the name in the index, or the free place where it would go. */
static uint32_t place_of(const struct hankel *h, const char *name)
{
  uint32_t place = hash(name) & (h->index_size - 1);
  while (h->index[place] != 0 && strcmp(h->sensors[h->index[place] - 1].name, name) != 0)
    place = (place + 1) & (h->index_size - 1);
  return place;
}

/* Room for one more sensor in table and index. */
static int grow(struct hankel *h)
{
  if (h->n_sensors == h->sensors_capacity) {
    const uint32_t capacity = h->sensors_capacity ? 2 * h->sensors_capacity : 16;
    struct hk_client_sensor *sensors = realloc(h->sensors, capacity * sizeof *sensors);
    if (!sensors)
      return -ENOMEM;
    h->sensors = sensors;
    h->sensors_capacity = capacity;
  }
  if (2 * (h->n_sensors + 1) > h->index_size) {
    const uint32_t size = h->index_size ? 2 * h->index_size : 64;
    uint32_t *index = calloc(size, sizeof *index);
    if (!index)
      return -ENOMEM;
    free(h->index);
    h->index = index;
    h->index_size = size;
    for (uint32_t i = 0; i < h->n_sensors; i++)
      index[place_of(h, h->sensors[i].name)] = i + 1;
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
  if (grow(h) < 0 || h->n_sensors == INT32_MAX)
    return -ENOMEM;
  const uint32_t place = place_of(h, name);
  if (h->index[place] != 0)
    return (int)(h->index[place] - 1);
  char *copy = strdup(name);
  if (!copy)
    return -ENOMEM;
  h->sensors[h->n_sensors] = (struct hk_client_sensor){ copy, HK_NO_HANDLE, HK_SENSOR_NEW };
  h->index[place] = ++h->n_sensors;
  h->fresh = true;
  return (int)(h->n_sensors - 1);
}

/* Moves what waits to the front when the end is reached. */
static uint32_t make_room(struct hankel *h)
{
  if (h->kept == h->n_points) {
    h->kept = h->first = h->n_points = 0;
  } else if (h->n_points == h->options.buffer && h->kept >= h->options.buffer / 4) {
    const size_t n = h->n_points - h->kept;
    memmove(h->point_sensor, h->point_sensor + h->kept, n * sizeof *h->point_sensor);
    memmove(h->point_time, h->point_time + h->kept, n * sizeof *h->point_time);
    memmove(h->point_value, h->point_value + h->kept, n * sizeof *h->point_value);
    h->first -= h->kept;
    h->kept = 0;
    h->n_points = (uint32_t)n;
  }
  return h->options.buffer - h->n_points;
}

int64_t hankel_send_columns(hankel *h, uint32_t n, const uint32_t *sensor, const int64_t *time, const double *value)
{
  for (uint32_t i = 0; i < n; i++) {
    if (sensor[i] >= h->n_sensors) {
      snprintf(h->error, sizeof h->error, "there is no sensor number %u: hankel_sensor gives the numbers", sensor[i]);
      return -EINVAL;
    }
  }
  uint32_t taken = 0;
  for (;;) {
    const uint32_t room = make_room(h), rest = n - taken, piece = rest < room ? rest : room;
    memcpy(h->point_sensor + h->n_points, sensor + taken, piece * sizeof *sensor);
    memcpy(h->point_time + h->n_points, time + taken, piece * sizeof *time);
    memcpy(h->point_value + h->n_points, value + taken, piece * sizeof *value);
    h->n_points += piece;
    taken += piece;
    h->fresh |= piece > 0;
    if (taken == n)
      break;
    const uint32_t before = h->first;
    hk_client_pump(h);
    if (h->first == before && make_room(h) == 0)
      break;
  }
  if (h->n_points - h->first >= HK_CLIENT_FRAME_POINTS)
    hk_client_pump(h);
  return taken;
}

int hankel_send(hankel *h, uint32_t sensor, int64_t time, double value)
{
  const int64_t taken = hankel_send_columns(h, 1, &sensor, &time, &value);
  return taken < 0 ? (int)taken : taken == 1 ? 0 : -EAGAIN;
}

/* Of a feed, points are kept until they are acknowledged; else until they are sent. */
static void sent(struct hankel *h, uint32_t n)
{
  h->first += n;
  if (!h->options.feed)
    h->kept = h->first;
}

void hk_client_acknowledged(struct hankel *h, uint64_t points)
{
  const uint64_t more = points > h->position ? points - h->position : 0;
  uint32_t n = more < h->n_points - h->kept ? (uint32_t)more : h->n_points - h->kept;
  while (h->kept + n < h->first && h->sensors[h->point_sensor[h->kept + n]].phase == HK_SENSOR_REFUSED)
    n++; /* was never sent */
  h->kept += n;
  h->position += n;
  if (h->first < h->kept) /* the connection before had sent it */
    h->first = h->kept;
}

/* Puts together one frame of the points that wait, at most `most` points and `bytes` bytes; those of refused sensors are
 * dropped; in a feed, whose points are numbered, a frame ends before them. Returns how many waiting points it uses up; p->n of
 * them are in the frame. 0: the next sensor has no handle yet. */
static uint32_t gather(struct hankel *h, struct hk_points *p, uint32_t most, size_t bytes)
{
  uint32_t used = 0, n = 0;
  bool small = true, one = true, even = true;
  for (uint32_t i = h->first; i < h->n_points && n < most; i++, used++) {
    const struct hk_client_sensor *s = &h->sensors[h->point_sensor[i]];
    if (s->phase == HK_SENSOR_REFUSED && h->options.feed && n > 0)
      break;
    if (s->phase == HK_SENSOR_REFUSED) {
      h->counters.refused++;
      continue;
    }
    if (s->phase == HK_SENSOR_NEW)
      break;
    const int64_t time = h->point_time[i];
    int64_t step, last_step;
    const double value = h->point_value[i];
    const bool value_small = (double)(float)value == value;
    const bool time_one = n == 0 || time == h->frame_time[0];
    const bool time_even =
        n < 2 || (!__builtin_sub_overflow(time, h->frame_time[n - 1], &step) &&
                  !__builtin_sub_overflow(h->frame_time[1], h->frame_time[0], &last_step) && step == last_step);
    const bool now_small = small && value_small, now_one = one && time_one, now_even = even && time_even;
    const uint8_t time_kind = now_one ? HK_TIME_ONE : now_even ? HK_TIME_EVEN : HK_TIME_EACH;
    if (hk_points_size(time_kind, now_small ? HK_VALUE_F32 : HK_VALUE_F64, n + 1) > bytes)
      break;
    small = now_small;
    one = now_one;
    even = now_even;
    h->frame_handle[n] = s->handle;
    h->frame_time[n] = time;
    h->frame_value[n] = value;
    n++;
  }
  if (small) {
    for (uint32_t i = 0; i < n; i++)
      h->frame_value32[i] = (float)h->frame_value[i];
  }
  *p = (struct hk_points){
    .n = n,
    .time_kind = one    ? HK_TIME_ONE
                 : even ? HK_TIME_EVEN
                        : HK_TIME_EACH,
    .value_kind = small ? HK_VALUE_F32 : HK_VALUE_F64,
    .base = h->frame_time[0],
    .step = n > 1 && even ? h->frame_time[1] - h->frame_time[0] : 0,
    .times = h->frame_time,
    .values = small ? (const void *)h->frame_value32 : h->frame_value,
    .handles = h->frame_handle,
  };
  return used;
}

/* Sends the datagram that is ready. False: the socket takes no more now. */
static bool send_datagram(struct hankel *h)
{
  ssize_t sent = send(h->udp, h->datagram, h->datagram_size, MSG_NOSIGNAL);
  if (sent < 0 && errno == ECONNREFUSED) /* tells of an earlier one; this one was not sent */
    sent = send(h->udp, h->datagram, h->datagram_size, MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR))
    return false;
  h->counters.unsent += sent < 0;
  h->datagram_size = 0;
  return true;
}

static void send_over_udp(struct hankel *h)
{
  while (h->datagram_size == 0 || send_datagram(h)) {
    struct hk_points p;
    const uint32_t used = gather(h, &p, HK_CLIENT_FRAME_POINTS, HK_CLIENT_DATAGRAM - (h->mac ? HK_MAC_BYTES : 0));
    sent(h, used);
    if (p.n == 0) {
      if (used == 0)
        return;
      continue;
    }
    p.feed = h->feed;
    p.sequence = ++h->sequence;
    p.before = h->before;
    h->before += p.n;
    struct hk_writer w = HK_WRITER(h->datagram, sizeof h->datagram);
    (void)hk_points_write(&w, 0, &p); /* fits: gather saw to it */
    if (h->mac && hk_mac_make(h->mac, h->datagram, w.size, h->datagram + w.size) != 0) {
      hk_client_disconnect(h, -ENOMEM, "a keyed checksum could not be made");
      return;
    }
    h->datagram_size = w.size + (h->mac ? HK_MAC_BYTES : 0);
    h->written += p.n;
    h->counters.points += p.n;
    h->counters.datagrams++;
  }
}

static size_t out_room(const struct hankel *h)
{
  return h->out.capacity - h->out.size;
}

static void send_over_tcp(struct hankel *h)
{
  /* A frame that uses the room well, or none: a nearly full buffer waits for the socket. */
  while (h->first < h->n_points && out_room(h) >= h->out.capacity / 2) {
    struct hk_points p;
    const uint32_t used = gather(h, &p, HK_CLIENT_FRAME_POINTS, out_room(h));
    if (used == 0)
      return;
    if (h->options.feed)
      p.before = h->position + (h->first - h->kept) + (used - p.n);
    if (p.n > 0 && hk_points_write(&h->out, 0, &p) < 0)
      return; /* cannot be: it was measured */
    sent(h, used);
    if (h->options.feed)
      hk_client_acknowledged(h, h->position); /* what was never sent needs no acknowledgement */
    h->written += p.n;
    h->counters.points += p.n;
  }
}

/* Asks for the handles of sensors that have none yet, as many as fit. The tag says which is the first. */
static void ask_for_handles(struct hankel *h)
{
  enum { NAMES = 256 };
  struct hk_string names[NAMES];
  while (h->asked < h->n_sensors) {
    uint32_t n = 0;
    size_t bytes = HK_FRAME_HEADER + 4;
    for (; n < NAMES && h->asked + n < h->n_sensors; n++) {
      names[n] = hk_string(h->sensors[h->asked + n].name);
      bytes += 2 + names[n].length;
      if (bytes > out_room(h))
        break;
    }
    if (n == 0 || hk_register_write(&h->out, h->asked, n, names) < 0)
      return; /* when the socket has taken what waits */
    h->asked += n;
  }
}

/* Small requests. What does not fit stays wanted. */
static void ask(struct hankel *h)
{
  struct hk_writer *w = &h->out;
  if (h->subscribe_wanted) {
    const struct hk_subscription m = { h->what, h->min_score, hk_string(h->glob), h->since };
    h->subscribe_wanted = (h->what ? hk_subscribe_write(w, 0, &m) : hk_empty_write(w, HK_UNSUBSCRIBE, 0)) < 0;
    h->subscribing += !h->subscribe_wanted;
  }
  if (h->status_wanted)
    h->status_wanted = hk_empty_write(w, HK_STATUS, 0) < 0;
  if (h->reload_wanted)
    h->reload_wanted = hk_empty_write(w, HK_RELOAD, 0) < 0;
  if (h->operate_wanted)
    h->operate_wanted = hk_operate_write(w, 0, &h->operate) < 0;
  if (h->sensors_wanted)
    h->sensors_wanted = hk_sensors_write(w, 0, &h->sensors_asked) < 0;
}

/* Requests that come behind all points. */
static void ask_last(struct hankel *h)
{
  struct hk_writer *w = &h->out;
  const bool drained = h->first == h->n_points && h->datagram_size == 0;
  if (((h->ping_wanted && drained) || h->written - h->pinged >= HK_CLIENT_PING_POINTS) &&
      hk_ping_write(w, HK_PING, 0, h->written) == 0) {
    h->pinged = h->written;
    h->last_ping = hk_client_now();
    h->pings++;
    h->ping_wanted &= !drained;
  }
  if (h->bye_wanted && drained && h->kept == h->n_points && !h->bye_sent)
    h->bye_sent = hk_bye_write(w, 0, h->sequence, h->before) == 0;
}

/* Gives the socket what waits. */
static void send_out(struct hankel *h)
{
  while (h->out_start < h->out.size) {
    const ssize_t n = hk_client_send(h, h->out.data + h->out_start, h->out.size - h->out_start);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      break;
    if (n < 0) {
      /* What the daemon said last, perhaps an error frame, may still wait to be read; it tells more than errno does. */
      const int fault = -errno;
      hk_client_read(h);
      if (h->fd >= 0)
        hk_client_disconnect(h, fault, strerror(-fault));
      return;
    }
    h->out_start += (size_t)n;
    h->last_sent = hk_client_now();
  }
  if (h->out_start > 0) {
    memmove(h->out.data, h->out.data + h->out_start, h->out.size - h->out_start);
    h->out.size -= h->out_start;
    h->out_start = 0;
  }
}

void hk_client_pump(struct hankel *h)
{
  if (h->phase != HK_CLIENT_GREETING && h->phase != HK_CLIENT_READY)
    return;
  h->fresh = false;
  for (;;) {
    const uint32_t first = h->first, asked = h->asked;
    if (h->phase == HK_CLIENT_READY) {
      ask(h);
      ask_for_handles(h);
      if (h->udp >= 0)
        send_over_udp(h);
      else
        send_over_tcp(h);
      ask_last(h);
    }
    send_out(h);
    const bool moved = h->first != first || h->asked != asked;
    if (h->phase != HK_CLIENT_READY || !moved || h->out.size > 0)
      return;
  }
}
