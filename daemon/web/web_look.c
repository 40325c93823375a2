/* See web_look.h. The shard answers within a moment, or when its device does; the web's thread is woken and looks who waited. */
#include "daemon/web/web_look.h"

#include "daemon/web/web_reply.h"
#include "proto/wire/name.h"

#include <errno.h>
#include <string.h>

/* Thread: a shard's. */
static void wake(void *arg)
{
  const struct hk_web *web = arg;
  lws_cancel_service(web->lws);
}

static int fail(struct lws *wsi, struct hk_web_peer *p, int status)
{
  return status == -ENOENT   ? hk_web_fault(wsi, p, 404, "there is no sensor of this name", NULL)
         : status == -ENOMEM ? hk_web_fault(wsi, p, 503, "no memory", NULL)
                             : hk_web_fault(wsi, p, 503, "nothing computes scores at the moment", NULL);
}

int hk_web_look(struct lws *wsi, struct hk_web_peer *p)
{
  static const size_t before = sizeof HK_WEB_LOOK_PATH - 1;
  const struct hk_web_answers *a = &p->web->answers;
  char name[HK_NAME_MAX + 1];
  int status = 0;
  if (p->request.path[before] == 0)
    status = hk_web_argument(wsi, "name", name, sizeof name);
  else if ((size_t)snprintf(name, sizeof name, "%s", p->request.path + before) >= sizeof name)
    status = -E2BIG;
  if (status == 0)
    status = a->look(a->arg, name, wake, p->web, &p->look);
  if (status != 0)
    return fail(wsi, p, status == -E2BIG ? -ENOENT : status);
  p->looking = p->web->looking;
  p->web->looking = p;
  lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0); /* it takes as long as the device takes */
  return 0;
}

void hk_web_look_end(struct hk_web_peer *p)
{
  struct hk_web_peer **link = &p->web->looking;
  if (!p->look)
    return;
  while (*link != p)
    link = &(*link)->looking;
  *link = p->looking;
  p->web->answers.unlook(p->look);
  p->look = NULL;
}

void hk_web_look_go_on(struct hk_web *web)
{
  for (struct hk_web_peer *p = web->looking, *next; p; p = next) {
    next = p->looking;
    const int status = web->answers.seen(web->answers.arg, p->look, &p->answer.body);
    if (status == 1)
      continue;
    hk_web_look_end(p);
    p->answer.ready = status == 0 ? 200 : status == -ENOENT ? 404 : 503;
    if (status != 0)
      hk_web_problem(&p->answer.body, p->answer.ready,
                     status == -ENOENT ? "there is no sensor of this name" : "nothing computes scores at the moment");
    (void)lws_callback_on_writable(p->wsi);
  }
}
