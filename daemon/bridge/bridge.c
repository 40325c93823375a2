#include "daemon/bridge/bridge.h"

#include "daemon/bridge/bridge_thread.h"
#include "daemon/bridge/mqtt_in.h"
#include "daemon/bridge/mqtt_out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 5                /* s */
#define MOST (2 * HK_BRIDGES_MAX) /* including those that are ending */

static const struct hk_bridge_kind *const kinds[] = { &hk_mqtt_in_kind, &hk_mqtt_out_kind };
#define KINDS (sizeof kinds / sizeof *kinds)

struct hk_bridges {
  struct hk_net *net;
  struct hk_bridge_peers peers;
  pthread_mutex_t lock; /* protects the list */
  uint32_t numbers;
  struct hk_bridge *bridge[MOST];
};

static struct hk_bridge *bridge_of(struct hk_bridges *all, const struct hk_bridge_kind *kind, const char *name)
{
  for (uint32_t i = 0; i < MOST; i++)
    if (all->bridge[i] && all->bridge[i]->kind == kind && !all->bridge[i]->gone && strcmp(all->bridge[i]->next.name, name) == 0)
      return all->bridge[i];
  return NULL;
}

static bool is_named(const struct hk_bridge *b, const struct hk_config *config)
{
  for (uint32_t k = 0; k < config->mqtt.n; k++)
    if (strcmp(config->mqtt.rule[k].name, b->next.name) == 0 && b->kind->wanted(&config->mqtt.rule[k]))
      return true;
  return false;
}

/* Frees the bridges that have ended after a request, waiting at most this time for each. To call under the lock. */
static bool bury(struct hk_bridges *all, unsigned patience)
{
  bool buried = true;
  for (uint32_t i = 0; i < MOST; i++) {
    struct hk_bridge *b = all->bridge[i];
    if (!b || !b->gone)
      continue;
    if (!hk_bridge_join(b, patience)) {
      buried = false;
      continue;
    }
    hk_bridge_close(b);
    free(b);
    all->bridge[i] = NULL;
  }
  return buried;
}

static int bridge_begin(struct hk_bridges *all, const struct hk_bridge_kind *kind, const struct hk_mqtt_rule *rule)
{
  uint32_t i = 0;
  while (i < MOST && all->bridge[i])
    i++;
  struct hk_bridge *b = i < MOST ? calloc(1, sizeof *b) : NULL;
  if (!b)
    return -ENOMEM;
  b->net = all->net;
  b->peers = &all->peers;
  b->kind = kind;
  b->number = all->numbers++;
  b->next = *rule;
  const int status = hk_bridge_start(b);
  if (status != 0) {
    hk_bridge_close(b);
    free(b);
    return status;
  }
  all->bridge[i] = b;
  return 0;
}

int hk_bridges_adopt(struct hk_bridges *all, const struct hk_config *config)
{
  int status = 0;
  if (!all)
    return config->mqtt.n > 0 ? -ENOMEM : 0;
  pthread_mutex_lock(&all->lock);
  for (uint32_t i = 0; i < MOST; i++) {
    struct hk_bridge *b = all->bridge[i];
    if (!b || b->gone || is_named(b, config))
      continue;
    b->gone = true;
    hk_bridge_end(b);
  }
  (void)bury(all, 0);
  for (uint32_t k = 0; k < config->mqtt.n; k++) {
    for (size_t i = 0; i < KINDS; i++) {
      struct hk_bridge *b = bridge_of(all, kinds[i], config->mqtt.rule[k].name);
      if (b)
        hk_bridge_take(b, &config->mqtt.rule[k]);
      else if (kinds[i]->wanted(&config->mqtt.rule[k]) && bridge_begin(all, kinds[i], &config->mqtt.rule[k]) != 0)
        status = -ENOMEM;
    }
  }
  pthread_mutex_unlock(&all->lock);
  return status;
}

int hk_bridges_new(struct hk_bridges **out, struct hk_net *net)
{
  struct hk_bridges *all = calloc(1, sizeof *all);
  if (!all)
    return -ENOMEM;
  all->net = net;
  all->peers.listener.precision = 1;
  snprintf(all->peers.gate.name, sizeof all->peers.gate.name, "mqtt");
  pthread_mutex_init(&all->lock, NULL);
  *out = all;
  return 0;
}

void hk_bridges_end(struct hk_bridges *all)
{
  if (!all)
    return;
  pthread_mutex_lock(&all->lock);
  for (uint32_t i = 0; i < MOST; i++) {
    if (!all->bridge[i])
      continue;
    all->bridge[i]->gone = true;
    hk_bridge_end(all->bridge[i]);
  }
  pthread_mutex_unlock(&all->lock);
}

bool hk_bridges_ended(const struct hk_bridges *all)
{
  bool ended = true;
  for (uint32_t i = 0; all && i < MOST; i++) /* the list is written by main, which calls this */
    ended &= !all->bridge[i] || atomic_load(&all->bridge[i]->over);
  return ended;
}

bool hk_bridges_stop(struct hk_bridges *all)
{
  if (!all)
    return true;
  hk_bridges_end(all);
  pthread_mutex_lock(&all->lock);
  const bool stopped = bury(all, PATIENCE);
  pthread_mutex_unlock(&all->lock);
  return stopped;
}

void hk_bridges_free(struct hk_bridges *all)
{
  if (!all)
    return;
  pthread_mutex_destroy(&all->lock);
  free(all);
}

uint32_t hk_bridges_look(struct hk_bridges *all, struct hk_bridge_look out[HK_BRIDGES_MAX])
{
  uint32_t n = 0;
  if (!all)
    return 0;
  pthread_mutex_lock(&all->lock);
  for (uint32_t i = 0; i < MOST && n < HK_BRIDGES_MAX; i++) {
    struct hk_bridge *b = all->bridge[i];
    if (!b || b->gone)
      continue;
    pthread_mutex_lock(&b->lock);
    out[n++] = b->look;
    pthread_mutex_unlock(&b->lock);
  }
  pthread_mutex_unlock(&all->lock);
  return n;
}
