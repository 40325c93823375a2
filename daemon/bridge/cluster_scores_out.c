#include "daemon/bridge/cluster_scores_out.h"

#include "daemon/net/inner.h"
#include "proto/wire/score_message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND 1000000000ll
#define WINDOW HK_SCORES_WINDOW
#define RESULT_LEAST 16u /* bytes of a result in a frame: value, handle and score; the time may be that of all */
#define FRAME_MOST (HK_FRAME_MAX / RESULT_LEAST)
#define MOST (4 * FRAME_MOST) /* results that wait */
#define SLOT 0xffffffu        /* of a handle */
_Static_assert(WINDOW < HK_CONFIRMS_MAX, "all may be on their way");

int hk_scores_out_begin(struct hk_scores_out *o, uint32_t max_sensors, int epoll)
{
  o->fd = -1;
  o->epoll = epoll;
  o->kept = 1;
  o->sensors = max_sensors;
  o->inbox.max_length = HK_FRAME_MAX;
  o->place = calloc(max_sensors, sizeof *o->place);
  o->room = malloc(HK_SCORE_MESSAGE_BYTES);
  hk_confirms_begin(&o->confirms);
  if (!o->place || !o->room)
    return -ENOMEM;
  return getrandom(&o->writer, sizeof o->writer, 0) == (ssize_t)sizeof o->writer ? 0 : -EIO;
}

void hk_scores_out_finish(struct hk_scores_out *o)
{
  for (uint32_t i = 0; i < o->n; i++)
    free(o->window[(o->first + i) % WINDOW].data);
  hk_inbox_free(&o->inbox);
  free(o->waiting);
  hk_buffer_free(&o->names);
  free(o->place);
  free(o->room);
}

/* All results before the mark have come. */
static void scores_heard(struct hk_scores_out *o)
{
  if (o->mark.heard)
    return;
  o->mark.heard = true;
  o->mark.waiting = o->n_waiting;
  o->mark.round = o->round;
}

void hk_scores_out_close(struct hk_scores_out *o)
{
  scores_heard(o);
  if (o->fd >= 0)
    close(o->fd);
  o->fd = -1;
  hk_inbox_free(&o->inbox);
  o->retry = hk_now() + SECOND;
}

void hk_scores_out_open(struct hk_cluster *c, struct hk_scores_out *o)
{
  struct hk_token shown = { 0 };
  uint8_t bytes[512];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  const struct hk_subscription all = { .what = HANKEL_SCORES | HANKEL_UNSCORED | HANKEL_VALUES | HANKEL_SEQUENCES,
                                       .glob = hk_string("") };
  snprintf(shown.name, sizeof shown.name, "[cluster] %.40s", c->rule.name);
  const struct hk_inner inner = { .protocol = HK_PROTOCOL_BINARY,
                                  .listener = &c->peers.listener,
                                  .gate = &c->peers.gate,
                                  .peer = "[cluster] scores",
                                  .scopes = HK_SCOPE_SUBSCRIBE,
                                  .shown = &shown,
                                  .unit = 1,
                                  .scored = true };
  int status = hk_hello_write(&w, 0, &(struct hk_hello){ .client = hk_string("cluster") });
  if (status == 0)
    status = hk_subscribe_write(&w, 0, &all);
  o->fd = status == 0 ? hk_inner_open(c->net, &inner) : status;
  if (o->fd < 0 || send(o->fd, w.data, w.size, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)w.size ||
      epoll_ctl(o->epoll, EPOLL_CTL_ADD, o->fd, &(struct epoll_event){ .events = EPOLLIN }) != 0) {
    hk_log_peer(c->net->log, &c->quota, HK_LOG_WARNING, "cluster", "scores of this machine are not shared: %s",
                strerror(o->fd < 0 ? -o->fd : errno));
    hk_scores_out_close(o);
  }
}

/* The columns of a message that is being made. */
struct scores_piece {
  uint32_t n, n_names;
  struct hk_string name[HK_SCORE_MESSAGE_MAX];
  int64_t time[HK_SCORE_MESSAGE_MAX];
  double value[HK_SCORE_MESSAGE_MAX];
  uint64_t sequence[HK_SCORE_MESSAGE_MAX];
  uint32_t number[HK_SCORE_MESSAGE_MAX];
  float score[HK_SCORE_MESSAGE_MAX];
  uint8_t state[HK_SCORE_MESSAGE_MAX];
};

static void scores_put(struct hk_scores_out *o, const struct scores_piece *p, bool sequences)
{
  struct hk_writer w = HK_WRITER(o->room, HK_SCORE_MESSAGE_BYTES);
  const struct hk_score_columns columns = {
    p->n, p->time, p->value, sequences ? p->sequence : NULL, p->number, p->score, p->state
  };
  uint8_t *data = NULL;
  if (p->n == 0)
    return;
  if (hk_score_message_write(&w, o->writer, p->n_names, p->name, &columns) == 0)
    data = malloc(w.size);
  if (!data) {
    o->lost += p->n;
    return;
  }
  memcpy(data, w.data, w.size);
  o->window[(o->first + o->n++) % WINDOW] = (struct hk_scores_message){ data, w.size };
  o->results += p->n;
}

static struct hk_string scores_name(const struct hk_scores_out *o, uint32_t at)
{
  uint16_t length;
  memcpy(&length, o->names.data + at, sizeof length);
  return (struct hk_string){ o->names.data + at + sizeof length, length };
}

/* Makes a message of some of the waiting results. */
static void scores_make(struct hk_scores_out *o, const uint32_t *chosen, uint32_t n, struct scores_piece *p)
{
  bool sequences = true;
  o->message++;
  p->n = p->n_names = 0;
  for (uint32_t i = 0; i < n; i++) {
    const struct hk_scores_result *r = &o->waiting[chosen[i]];
    struct hk_scores_place *place = &o->place[r->handle & SLOT];
    if (place->message != o->message || place->of != r->name) {
      place->message = o->message;
      place->number = p->n_names;
      place->of = r->name;
      p->name[p->n_names++] = scores_name(o, r->name);
    }
    sequences &= r->sequenced;
    p->time[p->n] = r->time;
    p->value[p->n] = r->value;
    p->sequence[p->n] = r->sequence;
    p->number[p->n] = place->number;
    p->score[p->n] = r->score;
    p->state[p->n++] = r->state;
  }
  scores_put(o, p, sequences);
}

static void scores_forget_names(struct hk_scores_out *o)
{
  o->names.size = 0;
  o->kept++;
}

/* Makes a round of messages of what waits, none of which has a sensor of another one. What has no room in the message of its
 * sensor waits on. */
static void scores_make_round(struct hk_scores_out *o)
{
  const uint32_t all = (o->n_waiting + HK_SCORE_MESSAGE_MAX - 1) / HK_SCORE_MESSAGE_MAX, n = all < WINDOW ? all : WINDOW;
  uint32_t(*chosen)[HK_SCORE_MESSAGE_MAX] = malloc(n * sizeof *chosen), many[WINDOW] = { 0 }, left = 0, marked = 0;
  struct scores_piece *piece = malloc(sizeof *piece);
  o->round++;
  if (chosen && piece) {
    for (uint32_t i = 0; i < o->n_waiting; i++) {
      const uint32_t at = (o->waiting[i].handle & SLOT) % n;
      if (many[at] < HK_SCORE_MESSAGE_MAX)
        chosen[at][many[at]++] = i;
    }
    for (uint32_t i = 0; i < n; i++)
      scores_make(o, chosen[i], many[i], piece);
    for (uint32_t i = 0; i < o->n_waiting; i++) {
      uint32_t *more = &many[(o->waiting[i].handle & SLOT) % n];
      if (*more > 0)
        --*more;
      else
        o->waiting[left++] = o->waiting[i];
      marked = i < o->mark.waiting ? left : marked;
    }
  } else {
    o->lost += o->n_waiting;
  }
  if (o->mark.waiting > 0)
    o->mark.round = o->round;
  o->mark.waiting = marked;
  o->n_waiting = left;
  if (left == 0)
    scores_forget_names(o);
  free(chosen);
  free(piece);
}

/* Memory for n more waiting results. */
static bool scores_reserve(struct hk_scores_out *o, uint32_t n)
{
  uint32_t capacity = o->capacity > 0 ? o->capacity : HK_SCORE_MESSAGE_MAX;
  while (capacity < o->n_waiting + n)
    capacity *= 2;
  if (capacity == o->capacity)
    return true;
  struct hk_scores_result *waiting = realloc(o->waiting, capacity * sizeof *waiting);
  if (!waiting)
    return false;
  o->waiting = waiting;
  o->capacity = capacity;
  return true;
}

/* Keeps the name of a result's sensor, which may be another scorer's by the time that its message is made. False: it is that now,
 * or there is no memory. */
static bool scores_keep_name(struct hk_scores_out *o, const struct hk_registry *registry, struct hk_scores_result *r)
{
  const uint32_t slot = r->handle & SLOT;
  if (slot >= o->sensors)
    return false;
  struct hk_scores_place *place = &o->place[slot];
  if (place->kept != o->kept || place->handle != r->handle) {
    if (!hk_registry_holds(registry, slot) || hk_registry_handle(registry, slot) != r->handle)
      return false;
    const struct hk_string name = hk_registry_name(registry, slot);
    const size_t at = o->names.size;
    const uint16_t length = (uint16_t)name.length;
    hk_buffer_put(&o->names, (const char *)&length, sizeof length);
    hk_buffer_put(&o->names, name.data, length);
    if (o->names.failed || at > UINT32_MAX) {
      o->names.failed = false;
      o->names.size = at;
      return false;
    }
    place->kept = o->kept;
    place->handle = r->handle;
    place->name = (uint32_t)at;
  }
  r->name = place->name;
  return true;
}

static void scores_keep(struct hk_cluster *c, struct hk_scores_out *o, const struct hk_scores *f)
{
  struct hk_registry *registry = c->net->shards->registry;
  int64_t *time = malloc(f->n * sizeof *time);
  if (!time || !f->values || !scores_reserve(o, f->n)) {
    o->lost += f->n;
    free(time);
    return;
  }
  hk_scores_times(f, time);
  hk_registry_read(registry);
  for (uint32_t i = 0; i < f->n; i++) {
    struct hk_scores_result *r = &o->waiting[o->n_waiting];
    *r = (struct hk_scores_result){ .time = time[i], .sequenced = f->sequences != NULL, .state = HANKEL_OK };
    memcpy(&r->handle, (const uint8_t *)f->handles + i * sizeof r->handle, sizeof r->handle);
    memcpy(&r->value, (const uint8_t *)f->values + i * sizeof r->value, sizeof r->value);
    memcpy(&r->score, (const uint8_t *)f->scores + i * sizeof r->score, sizeof r->score);
    if (f->sequences)
      memcpy(&r->sequence, (const uint8_t *)f->sequences + i * sizeof r->sequence, sizeof r->sequence);
    if (f->states)
      r->state = ((const uint8_t *)f->states)[i];
    const bool kept = scores_keep_name(o, registry, r);
    o->n_waiting += kept;
    o->lost += !kept;
  }
  hk_registry_read_end(registry);
  free(time);
}

bool hk_scores_out_room(const struct hk_scores_out *o)
{
  return o->n_waiting + FRAME_MOST <= MOST;
}

bool hk_scores_out_hear(struct hk_cluster *c, struct hk_scores_out *o)
{
  struct hk_frame f;
  for (;;) {
    int code;
    while (hk_scores_out_room(o) && (code = hk_inbox_next(&o->inbox, &f)) != HK_FRAME_PART) {
      struct hk_scores results;
      uint64_t dropped, events, token;
      if (code != HK_FRAME_WHOLE)
        return false;
      if (f.type == HK_SCORES && hk_scores_read(&f, &results) == 0)
        scores_keep(c, o, &results);
      else if (f.type == HK_GAP && hk_gap_read(&f, &dropped, &events) == 0)
        o->lost += dropped;
      else if (f.type == HK_PONG && hk_ping_read(&f, &token) == 0 && token == o->mark.number)
        scores_heard(o);
    }
    if (!hk_scores_out_room(o))
      return true;
    size_t room;
    uint8_t *space = hk_inbox_space(&o->inbox, &room);
    const ssize_t n = space && room > 0 ? recv(o->fd, space, room, MSG_DONTWAIT) : 0;
    if (n <= 0)
      return n < 0 && (errno == EAGAIN || errno == EINTR);
    hk_inbox_wrote(&o->inbox, (size_t)n);
  }
}

int hk_scores_out_publish(struct hk_cluster *c, struct hk_scores_out *o)
{
  int status = 0;
  if (o->n == 0 && o->n_waiting > 0 && !c->look.blocked)
    scores_make_round(o);
  while (status == 0 && !c->look.blocked && hk_confirms_open(&o->confirms) < o->n) {
    const struct hk_scores_message *m = &o->window[(o->first + hk_confirms_open(&o->confirms)) % WINDOW];
    o->confirms.sent++;
    status = c->kind->publish(c->engine, HK_ENGINE_SCORES, m->data, m->size);
  }
  return status;
}

void hk_scores_out_mark(struct hk_scores_out *o, uint64_t number)
{
  uint8_t bytes[HK_FRAME_HEADER + 8];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  if (o->mark.number != 0)
    return;
  o->mark = (struct hk_scores_mark){ .number = number };
  if (o->fd < 0)
    scores_heard(o);
  else if (hk_ping_write(&w, HK_PING, 0, number) != 0 ||
           send(o->fd, w.data, w.size, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)w.size)
    o->mark.number = 0; /* to be made again: if the connection has ended, then once what it has brought is read */
}

uint64_t hk_scores_out_marked(struct hk_scores_out *o)
{
  const struct hk_scores_mark *m = &o->mark;
  const uint64_t number = m->number;
  if (number == 0 || !m->heard || m->waiting > 0 || (o->n > 0 && o->round <= m->round))
    return 0;
  o->mark.number = 0;
  return number;
}

void hk_scores_out_discard(struct hk_scores_out *o)
{
  while (o->n > hk_confirms_open(&o->confirms))
    free(o->window[(o->first + --o->n) % WINDOW].data);
  o->n_waiting = o->mark.waiting = 0;
  scores_forget_names(o);
}

void hk_scores_out_confirm(struct hk_scores_out *o, const struct hk_broker_engine_event *e)
{
  const uint64_t before = o->confirms.low;
  if (!hk_confirms_take(&o->confirms, e, NULL, NULL))
    return;
  for (uint64_t i = before; i < o->confirms.low; i++) {
    free(o->window[o->first].data);
    o->first = (o->first + 1) % WINDOW;
    o->n--;
  }
}
