#include "daemon/cli/tail_cluster.h"

#include "daemon/cli/daemon_link.h"
#include "daemon/cli/options.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name of the machine that scores the next partition; *at: NULL for the first one. NULL: the asked one does, or it is the
 * end. */
static const char *tail_machine_of(const cJSON *report, const cJSON *where)
{
  const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(report, "cluster");
  const char *ours = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(cluster, "machine"));
  const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(where, "machine"));
  return name && (!ours || strcmp(ours, name) != 0) ? name : NULL;
}

static const cJSON *tail_where(const cJSON *report)
{
  return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(report, "cluster"), "where");
}

static bool tail_list_has(const char *list, const char *name)
{
  const size_t length = strlen(name);
  for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
    if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == 0))
      return true;
  return false;
}

char *hk_tail_cluster_others(const cJSON *report)
{
  char *list = NULL;
  const cJSON *where;
  cJSON_ArrayForEach(where, tail_where(report))
  {
    const char *name = tail_machine_of(report, where);
    if (!name || (list && tail_list_has(list, name)))
      continue;
    const size_t size = list ? strlen(list) : 0;
    char *longer = realloc(list, size + strlen(name) + 2);
    if (!longer)
      break;
    list = longer;
    sprintf(list + size, "%s%s", size > 0 ? "," : "", name);
  }
  return list;
}

static void tail_cluster_connect(struct hk_tail_cluster *c, const char *name)
{
  struct hankel_options link = c->link;
  struct hk_tail_machine *m = &c->machine[c->n];
  link.address = m->name = strdup(name);
  if (!m->name)
    return;
  m->h = hankel_open(&link);
  if (!m->h || hankel_subscribe(m->h, c->match, c->min_score, c->what) < 0) {
    (void)hk_failed(c->argv, "scores of %s are not shown: %s", name, m->h ? hankel_error(m->h) : "no memory");
    if (m->h)
      hankel_close(m->h);
    free(m->name);
    *m = (struct hk_tail_machine){ 0 };
    return;
  }
  c->n++;
  if (hankel_sync(m->h, HK_LINK_WAIT) == 0)
    fprintf(stderr, "hankel tail: scores of %s, too\n", name);
  else
    (void)hk_failed(c->argv, "%s is not connected, and is tried again: %s", name, hankel_error(m->h));
}

void hk_tail_cluster_look(struct hk_tail_cluster *c, const cJSON *report)
{
  const cJSON *where;
  cJSON_ArrayForEach(where, tail_where(report))
  {
    const char *name = tail_machine_of(report, where);
    bool known = !name;
    for (uint32_t i = 0; i < c->n && !known; i++)
      known = strcmp(c->machine[i].name, name) == 0;
    if (!known && c->n < HK_TAIL_MACHINES)
      tail_cluster_connect(c, name);
  }
}

void hk_tail_cluster_step(struct hk_tail_cluster *c, const hankel *first, int timeout)
{
  struct pollfd p[HK_TAIL_MACHINES + 1];
  p[0] = (struct pollfd){ .fd = hankel_fd(first), .events = hankel_events(first) };
  for (uint32_t i = 0; i < c->n; i++) {
    const int of = hankel_timeout(c->machine[i].h);
    p[i + 1] = (struct pollfd){ .fd = hankel_fd(c->machine[i].h), .events = hankel_events(c->machine[i].h) };
    timeout = of >= 0 && of < timeout ? of : timeout;
  }
  (void)poll(p, c->n + 1, timeout);
  for (uint32_t i = 0; i < c->n; i++)
    (void)hankel_step(c->machine[i].h, 0); /* a machine that is gone is connected again when it is back */
}

void hk_tail_cluster_close(struct hk_tail_cluster *c)
{
  for (uint32_t i = 0; i < c->n; i++) {
    hankel_close(c->machine[i].h);
    free(c->machine[i].name);
  }
  c->n = 0;
}
