#include "tests/bench/programs/intake_sender.h"

#include "proto/wire/columns.h"
#include "tests/bench/programs/load_peer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct sender {
  struct desk *desk;
  struct peer peer;
  int udp, bare; /* connected */
  uint32_t *handle;
  uint8_t *stream; /* FRAMES frames */
  size_t frame;    /* bytes of one */
  uint64_t sequence;
};

/* One time a frame, f32: 8 bytes a point. */
static void make_stream(struct sender *s)
{
  static float value[FRAME];
  static uint32_t handle[FRAME];
  s->frame = hk_points_size(HK_TIME_ONE, HK_VALUE_F32, FRAME);
  s->stream = need(malloc(FRAMES * s->frame));
  struct hk_writer w = HK_WRITER(s->stream, FRAMES * s->frame);
  for (uint32_t n = 0; n < FRAMES; n++) {
    for (uint32_t i = 0; i < FRAME; i++) {
      handle[i] = s->handle[(n * FRAME + i) % SENSORS];
      value[i] = (float)i;
    }
    const struct hk_points p = {
      .n = FRAME, .time_kind = HK_TIME_ONE, .value_kind = HK_VALUE_F32, .base = now_wall(), .values = value, .handles = handle
    };
    if (hk_points_write(&w, 0, &p) != 0)
      die("POINTS does not fit");
  }
}

static void send_stream(struct sender *s, int fd)
{
  for (uint32_t n = 0; n < s->desk->count; n += FRAMES)
    send_all(fd, s->stream, FRAMES * s->frame);
}

/* Whether the daemon has taken everything sent so far. */
static void fence(struct sender *s)
{
  uint8_t bytes[64];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  struct hk_frame f;
  if (hk_ping_write(&w, HK_PING, 1, 7) != 0)
    die("PING does not fit");
  send_all(s->peer.fd, w.data, w.size);
  peer_await(&s->peer, HK_PONG, &f);
}

/* Sends `count` datagrams of the feed, with a time each and f64 where there is one point, as from a sensor that sends by itself.
 */
static void send_datagrams(struct sender *s, int fd, bool feed)
{
  static uint8_t bytes[BATCH][1400];
  static struct mmsghdr messages[BATCH];
  static struct iovec parts[BATCH];
  const uint32_t points = s->desk->points;
  float value[MANY] = { 0 };
  double wide[MANY] = { 0 };
  uint32_t handle[MANY];
  for (uint32_t n = 0; n < s->desk->count; n += BATCH) {
    const int64_t time = now_wall();
    for (uint32_t i = 0; i < BATCH; i++) {
      struct hk_writer w = HK_WRITER(bytes[i], sizeof bytes[i]);
      for (uint32_t k = 0; k < points; k++)
        handle[k] = s->handle[((n + i) * points + k) % SENSORS];
      const struct hk_points p = { .feed = s->peer.feed,
                                   .sequence = s->sequence + i + 1,
                                   .before = s->desk->datagram_points + i * points,
                                   .n = points,
                                   .time_kind = HK_TIME_ONE,
                                   .value_kind = points == 1 ? HK_VALUE_F64 : HK_VALUE_F32,
                                   .base = time,
                                   .values = points == 1 ? (const void *)wide : value,
                                   .handles = handle };
      if (hk_points_write(&w, 0, &p) != 0)
        die("a datagram does not fit");
      parts[i] = (struct iovec){ w.data, w.size };
      messages[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
    }
    const int sent = sendmmsg(fd, messages, BATCH, 0);
    if (sent != BATCH)
      die("%d of %d datagrams could be sent: %s", sent, BATCH, strerror(errno));
    if (feed) {
      s->sequence += BATCH;
      s->desk->sent_datagrams += BATCH;
      s->desk->datagram_points += BATCH * points;
    }
  }
}

void sender_run(struct desk *desk)
{
  struct sender s = { .desk = desk, .handle = need(malloc(SENSORS * sizeof(uint32_t))) };
  sem_wait(&desk->go);
  peer_open(&s.peer, desk->daemon_tcp);
  peer_register(&s.peer, "s", 0, SENSORS, s.handle);
  make_stream(&s);
  s.udp = dial(desk->daemon_udp, SOCK_DGRAM);
  s.bare = dial(desk->udp, SOCK_DGRAM);
  sem_post(&desk->done);
  for (;;) {
    sem_wait(&desk->go);
    if (desk->order == ORDER_STREAM) {
      const int fd = dial(desk->tcp, SOCK_STREAM);
      send_stream(&s, fd);
      close(fd);
    } else if (desk->order == ORDER_DAEMON) {
      send_stream(&s, s.peer.fd);
      fence(&s);
      desk->sent_frames += desk->count;
    } else if (desk->order == ORDER_BURST) {
      send_datagrams(&s, s.bare, false);
    } else if (desk->order == ORDER_FEED) {
      send_datagrams(&s, s.udp, true);
    } else if (desk->order == ORDER_FENCE) {
      fence(&s);
    } else {
      _exit(0);
    }
    sem_post(&desk->done);
  }
}

void sender_order(struct desk *d, enum order order, uint32_t count, uint32_t points)
{
  d->order = order;
  d->count = count;
  d->points = points;
  sem_post(&d->go);
}
