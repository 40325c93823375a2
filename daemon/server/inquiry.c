#include "daemon/server/inquiry.h"

#include "daemon/scoring/hand_over.h"
#include "daemon/server/distant_names.h"
#include "daemon/server/fleet_list.h"
#include "daemon/server/progress.h"
#include "daemon/server/question.h"
#include "daemon/server/sensor_list.h"
#include "daemon/server/server.h"
#include "daemon/server/web_sensor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct hk_inquiry {
  struct hk_server *server;
  void (*ready)(void *arg);
  void *arg;
  /* one of these: */
  struct hk_look *look;              /* at a sensor of this machine */
  struct hk_sensor_list *list;       /* of this machine */
  struct hk_mail_question *question; /* of a sensor of another machine */
  struct hk_fleet_list *fleet;       /* of all machines */
  bool names;                        /* of the sensors of this machine, */
  uint32_t from;                     /* from this slot on */
  bool progress;                     /* how far this machine's data were, */
  int64_t reached;                   /* as of hk_progress_ends, */
  uint64_t appended;                 /* once the log has all events up to here */
  int failed;                        /* a negative errno: none of these */
  uint32_t partition;                /* of a sensor that is not here, */
  struct hk_holder holder;           /* and who has it */
};

static struct hk_inquiry *inquiry_new(struct hk_server *server, void (*ready)(void *arg), void *arg)
{
  struct hk_inquiry *q = calloc(1, sizeof *q);
  if (q)
    *q = (struct hk_inquiry){ .server = server, .ready = ready, .arg = arg };
  return q;
}

void hk_inquiry_drop(struct hk_inquiry *q)
{
  if (!q)
    return;
  hk_sensor_unlook(q->look);
  hk_sensor_list_abandon(q->list);
  hk_mail_forget(q->question);
  hk_fleet_list_free(q->fleet);
  free(q);
}

/* --- one sensor --------------------------------------------------------------------------------------------------------- */

/* Asks the machine that has the sensor's partition, if it is another one. */
static void inquiry_elsewhere(struct hk_inquiry *q, const char *name, uint32_t scores)
{
  struct hk_server *s = q->server;
  struct hk_buffer text = { 0 };
  q->partition = hk_cluster_partition(s->cluster, name);
  if (!hk_sensor_where(s, q->partition, &q->holder)) {
    q->failed = s->shared.mail ? -EHOSTUNREACH : -ENOENT;
    return;
  }
  if (hk_cluster_is_us(s->cluster, &q->holder))
    return;
  hk_question_write_look(&text, name, scores);
  if (s->shared.mail)
    q->question = hk_mail_ask(s->shared.mail, q->holder.machine, &text, q->ready, q->arg);
  q->failed = q->question ? 0 : s->shared.mail ? -ENOMEM : -EREMOTE;
  hk_buffer_free(&text);
}

static void inquiry_look_here(struct hk_inquiry *q, const char *name, uint32_t scores)
{
  q->failed = hk_sensor_look(q->server, name, scores, q->ready, q->arg, &q->look);
}

void hk_inquiry_look(void *arg, const char *name, uint32_t scores, void (*ready)(void *arg), void *ready_arg,
                     struct hk_inquiry **out)
{
  *out = inquiry_new(arg, ready, ready_arg);
  if (!*out)
    return;
  inquiry_look_here(*out, name, scores);
  if ((*out)->failed == -ENOENT)
    inquiry_elsewhere(*out, name, scores);
}

/* --- lists -------------------------------------------------------------------------------------------------------------- */

const char *hk_inquiry_list(void *arg, const struct hk_web_sensors *asked, void (*ready)(void *arg), void *ready_arg,
                            struct hk_inquiry **out)
{
  struct hk_server *server = arg;
  const char *wrong = NULL;
  *out = inquiry_new(server, ready, ready_arg);
  if (!*out)
    return NULL;
  if (!asked->rows && hk_fleet_is_known(server))
    wrong = hk_fleet_list_ask(server, asked, ready, ready_arg, &(*out)->fleet);
  else
    wrong = hk_sensor_list_ask(server, asked, ready, ready_arg, &(*out)->list);
  if (wrong) {
    hk_inquiry_drop(*out);
    *out = NULL;
  }
  return wrong;
}

static void inquiry_wake(void *arg)
{
  struct hk_server *s = arg;
  hk_shard_settled(&s->shard[0]);
}

struct hk_inquiry *hk_inquiry_begin(struct hk_connection *c, const struct hk_sensors_asked *m)
{
  struct hk_server *s = c->net->server;
  struct hk_inquiry *q = inquiry_new(s, inquiry_wake, s);
  if (!q)
    return NULL;
  if (hk_fleet_is_known(s))
    q->fleet = hk_fleet_list_begin(s, m, inquiry_wake, s);
  else
    q->list = hk_sensor_list_begin(c, m);
  if (q->fleet || q->list)
    return q;
  hk_inquiry_drop(q);
  return NULL;
}

bool hk_inquiry_listed(struct hk_inquiry *q, struct hk_buffer *json)
{
  const bool done = q->fleet ? hk_fleet_list_result(q->fleet, json) : hk_sensor_list_result(q->list, json);
  if (!done)
    return false;
  q->list = NULL; /* it is freed */
  hk_inquiry_drop(q);
  return true;
}

/* --- progress ----------------------------------------------------------------------------------------------------------- */

static void inquiry_look_at_progress(struct hk_inquiry *q, uint32_t silence)
{
  struct hk_eventlog *events = q->server->shards.events;
  q->progress = true;
  q->reached = INT64_MAX;
  if (hk_eventlog_shared(events)) { /* else it has no events for others */
    q->reached = hk_progress_ends(q->server, silence * INT64_C(1000000));
    q->appended = hk_eventlog_appended(events); /* after that */
  }
}

static unsigned inquiry_progressed(const struct hk_inquiry *q, struct hk_buffer *out)
{
  struct hk_eventlog *events = q->server->shards.events;
  if (q->appended > 0 && !hk_eventlog_safe(events, q->appended))
    return 0;
  if (q->reached == INT64_MAX)
    hk_buffer_print(out, "{\"reached\":null}");
  else
    hk_buffer_print(out, "{\"reached\":%" PRId64 "}", q->reached / 1000000);
  return 200;
}

/* --- answers ------------------------------------------------------------------------------------------------------------ */

/* The status of a failure, with the reason in words. */
static unsigned inquiry_fail(const struct hk_inquiry *q, struct hk_buffer *out, int status)
{
  if (status == -EREMOTE)
    hk_buffer_print(out, "this machine of the cluster does not score the sensor; ask %s", q->holder.machine);
  else if (status == -EHOSTUNREACH)
    hk_buffer_print(out, "no machine is known to score partition %" PRIu32 ", to which this name belongs", q->partition);
  else
    hk_buffer_print(out, "%s",
                    status == -ENOENT   ? "no sensor has this name"
                    : status == -EINVAL ? "the question of another machine was not understood"
                    : status == -ENOMEM ? "no memory"
                                        : "no backend is computing at the moment");
  return status == -ENOENT || status == -EREMOTE ? 404 : status == -EINVAL ? 400 : 503;
}

unsigned hk_inquiry_answered(struct hk_inquiry *q, struct hk_buffer *out)
{
  if (q->question)
    return hk_mail_answered(q->question, out);
  if (q->fleet)
    return hk_fleet_list_result(q->fleet, out) ? 200 : 0;
  if (q->list) {
    if (!hk_sensor_list_result(q->list, out))
      return 0;
    q->list = NULL;
    hk_buffer_put(out, "\n", 1);
    return 200;
  }
  if (q->names) {
    hk_distant_tell(q->server->shards.registry, q->from, out);
    return 200;
  }
  if (q->progress)
    return inquiry_progressed(q, out);
  if (!q->look)
    return inquiry_fail(q, out, q->failed ? q->failed : -ENOMEM);
  const int status = hk_sensor_seen(q->server, q->look, out);
  return status == 1 ? 0 : status == 0 ? 200 : inquiry_fail(q, out, status);
}

/* --- questions of other machines ---------------------------------------------------------------------------------------- */

void *hk_inquiry_of_other(void *arg, const char *text, size_t size, void (*ready)(void *arg), void *ready_arg)
{
  struct hk_question question;
  struct hk_inquiry *q = inquiry_new(arg, ready, ready_arg);
  if (!q)
    return NULL;
  if (!hk_question_read(text, size, &question))
    q->failed = -EINVAL;
  else if (question.names) {
    q->names = true;
    q->from = question.from;
  } else if (question.progress)
    inquiry_look_at_progress(q, question.silence);
  else if (question.name[0])
    inquiry_look_here(q, question.name, question.scores);
  else if (hk_sensor_list_ask(q->server, &question.sensors, ready, ready_arg, &q->list))
    q->failed = -EINVAL;
  hk_question_free(&question);
  return q;
}

unsigned hk_inquiry_result(void *job, struct hk_buffer *out)
{
  return hk_inquiry_answered(job, out);
}

void hk_inquiry_end(void *job)
{
  hk_inquiry_drop(job);
}
