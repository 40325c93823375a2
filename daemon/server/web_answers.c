/* See web_answers.h. */
#include "daemon/server/web_answers.h"

#include "daemon/durable/disk_health.h"
#include "daemon/intake/picture_board.h"
#include "daemon/scoring/stall.h"
#include "daemon/server/cluster_view.h"
#include "daemon/server/inquiry.h"
#include "daemon/server/metrics.h"
#include "daemon/server/web_lists.h"

#include <errno.h>
#include <string.h>

static bool web_answers_take(const struct hk_listener *listener, int fd, struct hk_address_limits_place *place, const char **why)
{
  return hk_web_take(listener->net->server->web, listener, fd, place, why);
}

/* Thread: the web's. */
static void web_answers_metrics(void *arg, bool open, struct hk_buffer *out)
{
  hk_metrics_text(arg, open, out);
}

static void obstacle(struct hk_buffer *out, const char *what, const char *why)
{
  char text[512];
  const int length = snprintf(text, sizeof text, "%s: %s", what, why);
  if (out->size > 0)
    hk_buffer_put(out, ",", 1);
  hk_json_string(out, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

/* Thread: the web's. */
static void obstacles(void *arg, struct hk_buffer *out)
{
  struct hk_server *s = arg;
  char why[HK_STALL_WHY];
  for (uint32_t i = 0; i < s->shards.n; i++)
    if (hk_stall_lasts(&s->shard[i], why) > 0)
      obstacle(out, "scoring has stalled", why);
  const struct hk_durable_condition disk = hk_durable_condition(&s->durable);
  if (disk.state >= HK_DURABLE_DEGRADED)
    obstacle(out, "durability is lost", disk.why);
}

int hk_server_open_web(struct hk_server *s, char *error, size_t size)
{
  const struct hk_web_answers answers = { .arg = s,
                                          .metrics = web_answers_metrics,
                                          .obstacles = obstacles,
                                          .alerts = hk_list_alerts,
                                          .events = hk_list_events,
                                          .told = hk_list_told,
                                          .incidents = hk_list_incidents,
                                          .feedback = hk_list_feedback,
                                          .maintenance = hk_list_maintenance,
                                          .cluster = hk_cluster_view,
                                          .look = hk_inquiry_look,
                                          .list = hk_inquiry_list,
                                          .answered = hk_inquiry_answered,
                                          .drop = hk_inquiry_drop };
  if (hk_web_descriptors(s->config) == 0)
    return 0;
  s->net.requests.http = web_answers_take;
  s->net.board = hk_picture_board_new();
  if (!s->net.board) {
    snprintf(error, size, "HTTP: no memory");
    return -ENOMEM;
  }
  int status = hk_web_open(&s->web, &s->net, &answers, error, size);
  if (status == 0 && (status = hk_web_start(s->web)) != 0)
    snprintf(error, size, "HTTP: a thread cannot be started");
  return status;
}
