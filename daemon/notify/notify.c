#include "daemon/notify/notify.h"

#include "daemon/durable/event_shared.h"
#include "daemon/notify/receiver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 5                      /* s */
#define MOST (2 * HK_CONFIG_NOTIFY_MAX) /* including those that are stopping */

struct hk_receivers {
  struct hk_durable *durable;
  struct hk_eventlog *events;
  struct hk_log *log;
  pthread_mutex_t lock; /* of the list */
  struct hk_receiver *receiver[MOST];
};

/* The running receiver of a name; NULL: none. */
static struct hk_receiver *receiver_of(struct hk_receivers *all, const char *name)
{
  for (uint32_t i = 0; i < MOST; i++)
    if (all->receiver[i] && !all->receiver[i]->gone && strcmp(all->receiver[i]->given.rule.name, name) == 0)
      return all->receiver[i];
  return NULL;
}

static void end(struct hk_receiver *r)
{
  hk_receiver_close(r);
  free(r);
}

/* Stops receivers that are gone (last: all), waiting up to some s for each, and frees those that have stopped. Under the lock. */
static bool notify_bury(struct hk_receivers *all, bool last, unsigned patience)
{
  bool buried = true;
  for (uint32_t i = 0; i < MOST; i++) {
    struct hk_receiver *r = all->receiver[i];
    if (!r || (!r->gone && !last))
      continue;
    if (!hk_receiver_stop(r, patience)) {
      buried = false;
      continue;
    }
    end(r);
    all->receiver[i] = NULL;
  }
  return buried;
}

static int begin(struct hk_receivers *all, const struct hk_notify_rule *rule, struct hk_sections *groups)
{
  uint32_t i = 0;
  while (i < MOST && all->receiver[i])
    i++;
  struct hk_receiver *r = i < MOST ? calloc(1, sizeof *r) : NULL;
  if (!r)
    return -ENOMEM;
  r->durable = all->durable;
  r->events = all->events;
  r->log = all->log;
  r->given.rule = *rule;
  r->given.machines = groups ? hk_sections_hold(groups) : NULL;
  const int status = hk_receiver_start(r);
  if (status != 0)
    end(r);
  else
    all->receiver[i] = r;
  return status;
}

/* A stopping receiver of this name may still write its place, from which the next one begins. 0 or -EBUSY. */
static int notify_wait_for(struct hk_receivers *all, const char *name)
{
  for (uint32_t i = 0; i < MOST; i++) {
    struct hk_receiver *r = all->receiver[i];
    if (!r || !r->gone || strcmp(r->given.rule.name, name) != 0)
      continue;
    if (!hk_receiver_stop(r, PATIENCE))
      return -EBUSY;
    end(r);
    all->receiver[i] = NULL;
  }
  return 0;
}

/* The machines of a configuration, if a receiver needs them; otherwise *out is NULL. 0 or -ENOMEM. */
static int find_machines(struct hk_sections **out, const struct hk_config *config)
{
  *out = NULL;
  for (uint32_t k = 0; k < config->n_notify; k++)
    if (config->notify[k].group == HK_NOTIFY_MACHINE)
      return hk_sections_new(out, config);
  return 0;
}

int hk_receivers_adopt(struct hk_receivers *all, const struct hk_config *config)
{
  struct hk_sections *machines;
  if (all && hk_eventlog_shared(all->events))
    hk_shared_want(hk_eventlog_shared(all->events), config->n_notify > 0 || config->incidents.n > 0);
  if (!all)
    return config->n_notify > 0 ? -ENOMEM : 0;
  int status = find_machines(&machines, config);
  pthread_mutex_lock(&all->lock);
  for (uint32_t i = 0; i < MOST; i++) {
    struct hk_receiver *r = all->receiver[i];
    bool named = false;
    for (uint32_t k = 0; r && k < config->n_notify; k++)
      named |= strcmp(config->notify[k].name, r->given.rule.name) == 0;
    if (r && !named)
      r->gone = true;
  }
  (void)notify_bury(all, false, 0);
  for (uint32_t k = 0; k < config->n_notify; k++) {
    const struct hk_notify_rule *rule = &config->notify[k];
    struct hk_sections *groups = rule->group == HK_NOTIFY_MACHINE ? machines : NULL;
    struct hk_receiver *r = receiver_of(all, rule->name);
    if (r)
      hk_receiver_take(r, rule, groups);
    else if (notify_wait_for(all, rule->name) != 0 || begin(all, rule, groups) != 0)
      status = -ENOMEM;
  }
  pthread_mutex_unlock(&all->lock);
  hk_sections_release(machines);
  return status;
}

int hk_receivers_start(struct hk_receivers **out, struct hk_durable *durable, struct hk_eventlog *events,
                       const struct hk_config *config, struct hk_log *log)
{
  struct hk_receivers *all = calloc(1, sizeof *all);
  if (!all)
    return -ENOMEM;
  all->durable = durable;
  all->events = events;
  all->log = log;
  pthread_mutex_init(&all->lock, NULL);
  *out = all;
  return hk_receivers_adopt(all, config);
}

bool hk_receivers_stop(struct hk_receivers *all)
{
  if (!all)
    return true;
  pthread_mutex_lock(&all->lock);
  const bool stopped = notify_bury(all, true, PATIENCE);
  pthread_mutex_unlock(&all->lock);
  return stopped;
}

void hk_receivers_free(struct hk_receivers *all)
{
  if (!all)
    return;
  pthread_mutex_destroy(&all->lock);
  free(all);
}

uint32_t hk_receivers_look(struct hk_receivers *all, struct hk_receiver_look out[HK_CONFIG_NOTIFY_MAX])
{
  uint32_t n = 0;
  if (!all)
    return 0;
  pthread_mutex_lock(&all->lock);
  (void)notify_bury(all, false, 0);
  for (uint32_t i = 0; i < MOST && n < HK_CONFIG_NOTIFY_MAX; i++) {
    struct hk_receiver *r = all->receiver[i];
    if (!r || r->gone)
      continue;
    pthread_mutex_lock(&r->lock);
    out[n++] = r->look;
    pthread_mutex_unlock(&r->lock);
  }
  pthread_mutex_unlock(&all->lock);
  return n;
}
