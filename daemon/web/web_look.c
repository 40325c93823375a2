/* See web_look.h. Shards answer at once, or when their devices do; they wake the web's thread, which answers the waiting peers.
 */
#include "daemon/web/web_look.h"

#include "daemon/web/web_reply.h"
#include "proto/wire/name.h"

#include <errno.h>
#include <string.h>

/* Thread: a shard's. */
static void web_look_wake(void *arg)
{
  const struct hk_web *web = arg;
  lws_cancel_service(web->lws);
}

static int web_look_wait_for(struct lws *wsi, struct hk_web_peer *p)
{
  p->looking = p->web->looking;
  p->web->looking = p;
  lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0); /* no time limit but the devices', and that of questions to other machines */
  return 0;
}

/* The status of the answer, which is in the body; 0: not yet. */
static unsigned web_look_answered(struct hk_web_peer *p)
{
  char why[512];
  struct hk_buffer *body = &p->answer.body;
  const unsigned code = p->web->answers.answered(p->inquiry, body);
  if (code == 0 || code == 200)
    return code;
  snprintf(why, sizeof why, "%.*s", (int)(body->size < sizeof why ? body->size : sizeof why - 1), body->size ? body->data : "");
  body->size = 0;
  hk_web_problem(body, code, why);
  return code;
}

/* Answers at once if it can. */
static int web_look_begin(struct lws *wsi, struct hk_web_peer *p)
{
  if (!p->inquiry)
    return hk_web_fault(wsi, p, 503, "no memory", NULL);
  const unsigned code = web_look_answered(p);
  if (code == 0)
    return web_look_wait_for(wsi, p);
  hk_web_look_end(p);
  return hk_web_reply(wsi, p, code, code == 200 ? "application/json" : "application/problem+json", NULL);
}

int hk_web_look(struct lws *wsi, struct hk_web_peer *p)
{
  static const size_t before = sizeof HK_WEB_LOOK_PATH - 1;
  const struct hk_web_answers *a = &p->web->answers;
  char name[HK_NAME_MAX + 1];
  int status = 0;
  uint64_t scores = HK_WEB_LIMIT;
  if (!hk_web_number(wsi, "scores", HK_WEB_LIMIT_MOST, &scores))
    return hk_web_fault(wsi, p, 400, "`scores` is a number from 0 to 10000", NULL);
  if (p->request.path[before] == 0)
    status = hk_web_argument(wsi, "name", name, sizeof name);
  else if ((size_t)snprintf(name, sizeof name, "%s", p->request.path + before) >= sizeof name)
    status = -E2BIG;
  if (status != 0)
    return hk_web_fault(wsi, p, 404, "no sensor has this name", NULL);
  a->look(a->arg, name, (uint32_t)scores, web_look_wake, p->web, &p->inquiry);
  return web_look_begin(wsi, p);
}

/* False: an argument is too long. */
static bool read_asked(struct lws *wsi, struct hk_web_sensors *asked)
{
  return hk_web_argument(wsi, "channel", asked->channel, sizeof asked->channel) == 0 &&
         hk_web_argument(wsi, "state", asked->state, sizeof asked->state) == 0 &&
         hk_web_argument(wsi, "alert", asked->alert, sizeof asked->alert) == 0 &&
         hk_web_argument(wsi, "sort", asked->sort, sizeof asked->sort) == 0 &&
         hk_web_argument(wsi, "after", asked->after, sizeof asked->after) == 0;
}

static int web_look_list(struct lws *wsi, struct hk_web_peer *p, bool groups, bool lines)
{
  const struct hk_web_answers *a = &p->web->answers;
  char glob[HK_GLOB_MAX + 1];
  uint64_t limit = HK_WEB_LIMIT, line = 0;
  struct hk_web_sensors asked = { .groups = groups, .lines = lines, .glob = glob };
  const char *wrong = NULL;
  if (hk_web_argument(wsi, "glob", glob, sizeof glob) != 0)
    wrong = "`glob` has at most 512 bytes";
  else if (!hk_web_number(wsi, "limit", HK_WEB_LIMIT_MOST, &limit) || limit == 0)
    wrong = "`limit` is a number from 1 to 10000";
  else if (lines && !hk_web_number(wsi, "line", UINT32_MAX - 1, &line))
    wrong = "`line` is a number from 0 on";
  else if (!read_asked(wsi, &asked))
    wrong = "channel, state, alert, sort or after is too long";
  if (wrong)
    return hk_web_fault(wsi, p, 400, wrong, NULL);
  asked.line = (uint32_t)line;
  asked.limit = limit < HK_SENSORS_MAX ? (uint32_t)limit : HK_SENSORS_MAX;
  if ((wrong = a->list(a->arg, &asked, web_look_wake, p->web, &p->inquiry)))
    return hk_web_fault(wsi, p, 400, wrong, NULL);
  return web_look_begin(wsi, p);
}

int hk_web_sensors(struct lws *wsi, struct hk_web_peer *p)
{
  return web_look_list(wsi, p, false, false);
}

int hk_web_groups(struct lws *wsi, struct hk_web_peer *p)
{
  return web_look_list(wsi, p, true, false);
}

int hk_web_lines(struct lws *wsi, struct hk_web_peer *p)
{
  return web_look_list(wsi, p, true, true);
}

void hk_web_look_end(struct hk_web_peer *p)
{
  struct hk_web_peer **link = &p->web->looking;
  while (*link && *link != p)
    link = &(*link)->looking;
  if (*link)
    *link = p->looking;
  p->web->answers.drop(p->inquiry);
  p->inquiry = NULL;
}

void hk_web_look_go_on(struct hk_web *web)
{
  for (struct hk_web_peer *p = web->looking, *next; p; p = next) {
    next = p->looking;
    const unsigned code = web_look_answered(p);
    if (code == 0)
      continue;
    hk_web_look_end(p);
    hk_web_ready(p, code, NULL);
  }
}
