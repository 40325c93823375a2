/* libhankel: handles received frames. See client.h. */
#include "proto/client/client_receive.h"
#include "proto/client/client.h"
#include "proto/client/client_connect.h"
#include "proto/client/client_send.h"
#include "proto/wire/event_message.h"
#include "proto/wire/incident_message.h"
#include "proto/wire/scores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* --- names of the handles of results --- */

static struct hk_client_name *name_place(const struct hankel *h, uint32_t handle)
{
  uint32_t i = (handle * 0x9e3779b1u) >> 8 & (h->results.names_size - 1);
  while (h->results.names[i].name && h->results.names[i].handle != handle)
    i = (i + 1) & (h->results.names_size - 1);
  return &h->results.names[i];
}

static const char *receive_name_of(const struct hankel *h, uint32_t handle)
{
  return h->results.names_size ? name_place(h, handle)->name : NULL;
}

const char *hankel_name(const hankel *h, uint32_t handle)
{
  return receive_name_of(h, handle);
}

static int name_set(struct hankel *h, uint32_t handle, struct hk_string name)
{
  if (2 * (h->results.n_names + 1) > h->results.names_size) {
    struct hk_client_name *const old = h->results.names;
    const uint32_t old_size = h->results.names_size, size = old_size ? 2 * old_size : 64;
    struct hk_client_name *fresh = calloc(size, sizeof *fresh);
    if (!fresh)
      return -ENOMEM;
    h->results.names = fresh;
    h->results.names_size = size;
    for (uint32_t i = 0; i < old_size; i++) {
      if (old[i].name)
        *name_place(h, old[i].handle) = old[i];
    }
    free(old);
  }
  char *copy = strndup(name.data, name.length);
  if (!copy)
    return -ENOMEM;
  struct hk_client_name *place = name_place(h, handle);
  h->results.n_names += !place->name;
  free(place->name);
  *place = (struct hk_client_name){ handle, copy };
  return 0;
}

void hk_client_forget_names(struct hankel *h)
{
  for (uint32_t i = 0; i < h->results.names_size; i++)
    free(h->results.names[i].name);
  free(h->results.names);
  h->results.names = NULL;
  h->results.names_size = h->results.n_names = 0;
}

/* --- frames; each returns 0, HANKEL_BAD_PAYLOAD, or -ENOMEM --- */

static int receive_begin(struct hankel *h)
{
  h->phase = HK_CLIENT_READY;
  h->link.pause = HK_CLIENT_PAUSE_MS;
  h->link.fresh = true;
  h->error[0] = 0;
  h->counters.reconnected += h->link.greeted_once;
  h->link.greeted_once = true;
  if (h->options.callbacks.connected)
    h->options.callbacks.connected(h->options.arg, h->link.server);
  return 0;
}

static int take_welcome(struct hankel *h, const struct hk_frame *f)
{
  struct hk_welcome m;
  if (h->phase != HK_CLIENT_GREETING || h->datagrams.feed != 0 || hk_welcome_read(f, &m) != 0 || m.feed == 0 ||
      m.max_frame < HK_FRAME_MAX_LEAST)
    return HANKEL_BAD_PAYLOAD;
  h->datagrams.feed = m.feed;
  h->link.max_frame = m.max_frame;
  if (h->options.security.mac) {
    h->datagrams.mac = m.key.length == HK_MAC_KEY ? hk_mac_new((const uint8_t *)m.key.data) : NULL;
    if (!h->datagrams.mac) {
      hk_client_disconnect(h, -EACCES, "the daemon gives no key for datagrams: it needs TLS");
      return 0;
    }
  }
  snprintf(h->link.server, sizeof h->link.server, "%.*s", (int)m.server.length, m.server.data);
  if (!h->options.feed)
    return receive_begin(h);
  if (hk_feed_write(&h->link.out, 0, hk_string(h->options.feed)) < 0) {
    hk_client_disconnect(h, -EINVAL, "the name of the feed is too long");
    return 0;
  }
  h->link.fresh = true;
  return 0;
}

/* Position of the feed. At the first connection: the number of points that the daemon had before. Later: how many of the kept
 * points have arrived nevertheless. If it is less than was acknowledged, the daemon has lost data, and the library continues. */
static int take_feed_at(struct hankel *h, const struct hk_frame *f)
{
  struct hk_feed_at m;
  if (h->phase != HK_CLIENT_GREETING || h->datagrams.feed == 0 || hk_feed_at_read(f, &m) != 0)
    return HANKEL_BAD_PAYLOAD;
  h->points.durability = (int)m.durability;
  if (!h->points.fed)
    h->points.position = m.points;
  h->points.fed = true;
  hk_client_acknowledged(h, m.points);
  h->points.pictures = 0;            /* else it has not arrived, nor has anything behind it: hankel_picture reports it */
  if (h->points.position < m.points) /* another program has sent points of this feed */
    h->points.position = m.points;
  return receive_begin(h);
}

static int take_ack(struct hankel *h, const struct hk_frame *f)
{
  uint64_t points;
  if (hk_ack_read(f, &points) != 0 || !h->options.feed ||
      points > h->points.position + (h->points.n - h->points.kept) + h->points.pictures)
    return HANKEL_BAD_PAYLOAD;
  hk_client_acknowledged(h, points);
  h->link.fresh = true;
  return 0;
}

static int take_done(struct hankel *h, const struct hk_frame *f)
{
  uint64_t since;
  if (hk_done_read(f, &since) != 0)
    return HANKEL_BAD_PAYLOAD;
  h->subscription.asked -= h->subscription.asked > 0;
  if (h->subscription.asked == 0 && !h->subscription.wanted && h->subscription.since == HANKEL_NOW)
    h->subscription.since = since;
  return 0;
}

static int take_registered(struct hankel *h, const struct hk_frame *f)
{
  struct hk_list list;
  if (hk_registered_read(f, &list) != 0 || f->tag > h->own.n || list.n > h->own.n - f->tag)
    return HANKEL_BAD_PAYLOAD;
  for (uint32_t i = f->tag; i < f->tag + list.n; i++) {
    uint32_t reason;
    struct hk_client_sensor *s = &h->own.sensor[i];
    hk_registered_next(&list, &s->handle, &reason);
    s->phase = reason == 0 ? HK_SENSOR_GOOD : HK_SENSOR_REFUSED;
    if (reason != 0 && h->options.callbacks.refused)
      h->options.callbacks.refused(h->options.arg, s->name, (int)reason);
  }
  h->link.fresh = true;
  return 0;
}

static int receive_take_names(struct hankel *h, const struct hk_frame *f)
{
  struct hk_list list;
  if (hk_names_read(f, &list) != 0)
    return HANKEL_BAD_PAYLOAD;
  int status = 0;
  for (uint32_t i = 0; i < list.n && status == 0; i++) {
    uint32_t handle;
    struct hk_string name;
    hk_names_next(&list, &handle, &name);
    status = name_set(h, handle, name);
  }
  return status;
}

/* Sets name[] to the names of n results. False: a handle was never named. */
static bool name_results(const struct hankel *h, const struct hk_scores *s, const char **name)
{
  for (size_t i = 0; i < s->n; i++) {
    uint32_t handle;
    memcpy(&handle, (const uint8_t *)s->handles + 4 * i, sizeof handle);
    if (!(name[i] = receive_name_of(h, handle)))
      return false;
  }
  return true;
}

static int take_scores(struct hankel *h, const struct hk_frame *f)
{
  struct hk_scores s;
  if (hk_scores_read(f, &s) != 0)
    return HANKEL_BAD_PAYLOAD;
  if (!h->options.callbacks.scores)
    return 0;
  /* Aligned columns, widest first. */
  const size_t n = s.n, wide = sizeof(char *) + sizeof(int64_t) + sizeof(double) + sizeof(uint64_t);
  const size_t needed = n * (wide + sizeof(uint32_t) + sizeof(float) + 1);
  if (needed > h->results.columns_size) {
    void *columns = realloc(h->results.columns, needed);
    if (!columns)
      return -ENOMEM;
    h->results.columns = columns;
    h->results.columns_size = needed;
  }
  const char **name = h->results.columns;
  int64_t *time = (int64_t *)(name + n);
  double *value = (double *)(time + n);
  uint64_t *sequence = (uint64_t *)(value + n);
  uint32_t *handle = (uint32_t *)(sequence + n);
  float *score = (float *)(handle + n);
  uint8_t *state = (uint8_t *)(score + n);
  if (!h->options.handles && !name_results(h, &s, name))
    return HANKEL_BAD_PAYLOAD;
  hk_scores_times(&s, time);
  if (s.values)
    memcpy(value, s.values, n * sizeof *value);
  if (s.sequences)
    memcpy(sequence, s.sequences, n * sizeof *sequence);
  memcpy(handle, s.handles, n * sizeof *handle);
  memcpy(score, s.scores, n * sizeof *score);
  if (s.states)
    memcpy(state, s.states, n);
  else
    memset(state, HANKEL_OK, n);
  const struct hankel_scores scores = { s.n,    h->options.handles ? NULL : name, time, s.values ? value : NULL, score, state,
                                        handle, s.sequences ? sequence : NULL };
  h->options.callbacks.scores(h->options.arg, &scores);
  return 0;
}

static int take_events(struct hankel *h, const struct hk_frame *f)
{
  struct hk_list list;
  if (hk_events_read(f, &list) != 0)
    return HANKEL_BAD_PAYLOAD;
  for (uint32_t i = 0; i < list.n; i++) {
    struct hk_event_message m;
    hk_event_next(&list, &m);
    char by[HK_WHO_MAX + 1];
    snprintf(by, sizeof by, "%.*s", (int)m.by.length, m.by.data);
    const struct hankel_event e = { .name = receive_name_of(h, m.handle),
                                    .number = m.number,
                                    .kind = m.kind,
                                    .time = m.time,
                                    .from = m.from,
                                    .instant = m.instant,
                                    .score = m.score,
                                    .before = m.before,
                                    .after = m.after,
                                    .position = m.position,
                                    .sequence = m.sequence,
                                    .severity = m.severity,
                                    .margin = m.margin,
                                    .spread_before = m.spread_before,
                                    .spread_after = m.spread_after,
                                    .channel = m.channel,
                                    .marks = m.marks,
                                    .held = m.held,
                                    .likeness = m.likeness,
                                    .similar = m.similar,
                                    .similar_from = m.similar_from,
                                    .by = by,
                                    .novelty = m.novelty,
                                    .incident = m.incident,
                                    .limit = m.limit };
    if (!e.name)
      return HANKEL_BAD_PAYLOAD;
    /* events of an earlier subscription do not advance the new one's position */
    if (m.position > 0 && h->subscription.asked == 0 && !h->subscription.wanted)
      h->subscription.since = m.position;
    if (h->options.callbacks.event)
      h->options.callbacks.event(h->options.arg, &e);
  }
  return 0;
}

static int receive_take_incident(struct hankel *h, const struct hk_frame *f)
{
  struct hk_incident_message m;
  if (hk_incident_read(f, &m) != 0)
    return HANKEL_BAD_PAYLOAD;
  char *strings = malloc(m.text.length + m.about.length + 2), *about = strings + m.text.length + 1;
  if (!strings)
    return -ENOMEM;
  memcpy(strings, m.text.data, m.text.length);
  memcpy(about, m.about.data, m.about.length);
  strings[m.text.length] = about[m.about.length] = 0;
  const struct hankel_incident i = { .id = m.id,
                                     .kind = m.kind,
                                     .told = m.told,
                                     .count = m.count,
                                     .into = m.into,
                                     .time = m.time,
                                     .since = m.since,
                                     .rank = m.rank,
                                     .severity = m.severity,
                                     .position = m.position,
                                     .text = strings,
                                     .about = about };
  if (m.position > 0 && h->subscription.asked == 0 && !h->subscription.wanted)
    h->subscription.since = m.position;
  if (h->options.callbacks.incident)
    h->options.callbacks.incident(h->options.arg, &i);
  free(strings);
  return 0;
}

static int take_gap(struct hankel *h, const struct hk_frame *f)
{
  uint64_t results, events;
  if (hk_gap_read(f, &results, &events) != 0)
    return HANKEL_BAD_PAYLOAD;
  if (h->options.callbacks.gap)
    h->options.callbacks.gap(h->options.arg, results, events);
  return 0;
}

static int take_pong(struct hankel *h, const struct hk_frame *f)
{
  uint64_t token;
  if (hk_ping_read(f, &token) != 0 || token > h->written || token < h->confirmed || h->pongs == h->pings)
    return HANKEL_BAD_PAYLOAD;
  h->confirmed = token;
  h->pongs++;
  return 0;
}

static int take_report(struct hankel *h, const struct hk_frame *f)
{
  free(h->request.report);
  h->request.report = strndup((const char *)f->payload, f->length);
  return h->request.report ? 0 : -ENOMEM;
}

static int take_reloaded(struct hankel *h, const struct hk_frame *f)
{
  struct hk_string text;
  if (hk_reloaded_read(f, &h->request.taken, &text) != 0)
    return HANKEL_BAD_PAYLOAD;
  free(h->request.report);
  h->request.report = strndup(text.data, text.length);
  return h->request.report ? 0 : -ENOMEM;
}

static int take_farewell(struct hankel *h, const struct hk_frame *f)
{
  const int status = h->options.counts ? hk_farewell_read(f, &h->counters.late, &h->counters.rejected) : hk_empty_read(f);
  if (status != 0 || !h->bye_sent)
    return HANKEL_BAD_PAYLOAD;
  h->confirmed = h->written;
  h->counters.counted = h->options.counts != 0;
  h->farewell = true;
  hk_client_disconnect(h, -ENOTCONN, "finished");
  return 0;
}

/* The daemon's version knows no counts: reconnects at once without asking for them. */
static void go_without_counts(struct hankel *h, const char *why)
{
  const int once = h->options.once;
  h->options.once = h->options.counts = 0;
  hk_client_disconnect(h, -ECONNABORTED, why);
  h->options.once = once;
  h->link.retry_at = hk_client_now();
}

static int take_error(struct hankel *h, const struct hk_frame *f)
{
  struct hk_error_message m;
  if (hk_error_read(f, &m) != 0)
    return HANKEL_BAD_PAYLOAD;
  char text[1200];
  snprintf(text, sizeof text, "%s%s%s%s%s%.*s", hankel_error_name(m.code), m.type ? " (" : "",
           m.type ? hk_frame_name(m.type) : "", m.type ? ")" : "", m.message.length ? ": " : "",
           (int)(m.message.length < 1024 ? m.message.length : 1024), m.message.data);
  if (m.closing && m.code == HANKEL_BAD_PAYLOAD && m.type == HK_HELLO && h->options.counts) {
    go_without_counts(h, text);
    return 0;
  }
  if (m.closing || m.code == HANKEL_FORBIDDEN) {
    const int fault = m.code == HANKEL_FORBIDDEN ? -EPERM : m.code == HANKEL_UNAUTHORIZED ? -EACCES : -ECONNABORTED;
    hk_client_disconnect(h, fault, text);
    return 0;
  }
  if (m.type == HK_RELOAD) { /* no reload was done; the error is the answer */
    free(h->request.report);
    h->request.report = strdup(text);
    h->request.taken = false;
  }
  if (m.code == HANKEL_UNKNOWN_HANDLE) { /* sensors were evicted: requests all handles again */
    h->own.asked = 0;
    h->link.fresh = true;
    for (uint32_t i = 0; i < h->own.n; i++)
      h->own.sensor[i].phase = HK_SENSOR_NEW;
  }
  snprintf(h->error, sizeof h->error, "%s", text);
  if (h->options.callbacks.error)
    h->options.callbacks.error(h->options.arg, m.code, text);
  return 0;
}

static int receive_take(struct hankel *h, const struct hk_frame *f)
{
  if (h->phase == HK_CLIENT_GREETING && f->type != HK_WELCOME && f->type != HK_FEED_AT && f->type != HK_ERROR)
    return HANKEL_OUT_OF_ORDER;
  switch (f->type) {
  case HK_WELCOME:
    return take_welcome(h, f);
  case HK_FEED_AT:
    return take_feed_at(h, f);
  case HK_ACK:
    return take_ack(h, f);
  case HK_REGISTERED:
    return take_registered(h, f);
  case HK_DONE:
    return take_done(h, f);
  case HK_PONG:
    return take_pong(h, f);
  case HK_REPORT:
    return take_report(h, f);
  case HK_FAREWELL:
    return take_farewell(h, f);
  case HK_RELOADED:
  case HK_OPERATED:
    return take_reloaded(h, f);
  case HK_NAMES:
    return receive_take_names(h, f);
  case HK_SCORES:
    return take_scores(h, f);
  case HK_EVENTS:
    return take_events(h, f);
  case HK_INCIDENT:
    return receive_take_incident(h, f);
  case HK_GAP:
    return take_gap(h, f);
  case HK_ERROR:
    return take_error(h, f);
  default:
    return HANKEL_BAD_TYPE;
  }
}

/* Handles all whole frames in the inbox. False: the connection has ended. */
static bool receive_take_all(struct hankel *h)
{
  struct hk_frame f;
  int status;
  while ((status = hk_inbox_next(&h->link.in, &f)) == HK_FRAME_WHOLE) {
    status = receive_take(h, &f);
    if (status != 0 || h->link.fd < 0)
      break;
  }
  if (h->link.fd < 0)
    return false;
  if (status == HK_FRAME_PART)
    return true;
  char why[96];
  snprintf(why, sizeof why, "the server sent a frame that cannot be read: %s (%s)",
           status == -ENOMEM ? "no memory" : hankel_error_name(status), hk_frame_name(f.type));
  hk_client_disconnect(h, status == -ENOMEM ? -ENOMEM : -EPROTO, why);
  return false;
}

void hk_client_read(struct hankel *h)
{
  /* Bounded, so that a flood of input does not prevent sending. */
  for (int turns = 0; turns < 16; turns++) {
    size_t size;
    uint8_t *space = hk_inbox_space(&h->link.in, &size);
    if (!space) {
      hk_client_disconnect(h, -ENOMEM, "no memory");
      return;
    }
    const ssize_t n = hk_client_recv(h, space, size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      return;
    if (n <= 0) {
      const int fault = n < 0 ? -errno : -ECONNRESET;
      hk_client_disconnect(h, fault == -EPROTO ? -EACCES : fault,
                           fault == -EPROTO ? hk_client_tls_fault(h->link.tls)
                           : n < 0          ? strerror(errno)
                                            : "the server closed the connection");
      return;
    }
    h->link.last_read = hk_client_now();
    hk_inbox_wrote(&h->link.in, (size_t)n);
    if (!receive_take_all(h) || ((size_t)n < size && !h->link.tls)) /* TLS returns one record at a time */
      return;
  }
}
