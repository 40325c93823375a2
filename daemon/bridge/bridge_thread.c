#include "daemon/bridge/bridge_thread.h"

#include "daemon/base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void bridge_thread_wake(struct hk_bridge *b)
{
  const uint64_t one = 1;
  const ssize_t n = write(b->wake, &one, sizeof one); /* fails only if the eventfd is full, and so readable */
  (void)n;
}

void hk_bridge_woken(struct hk_bridge *b)
{
  uint64_t count;
  const ssize_t n = read(b->wake, &count, sizeof count);
  (void)n;
}

bool hk_bridge_interrupted(struct hk_bridge *b)
{
  pthread_mutex_lock(&b->lock);
  const bool changed = b->changed;
  pthread_mutex_unlock(&b->lock);
  return changed || atomic_load(&b->stop);
}

void hk_bridge_note(struct hk_bridge *b, enum hk_bridge_state state, const char *why)
{
  pthread_mutex_lock(&b->lock);
  if (b->look.state != state || b->look.since == 0)
    b->look.since = hk_wall();
  b->look.connected += state == HK_BRIDGE_CONNECTED && b->look.state != state;
  b->look.state = state;
  if (why)
    snprintf(b->look.why, sizeof b->look.why, "%s", why);
  pthread_mutex_unlock(&b->lock);
}

static void *bridge_thread_turns(void *arg)
{
  struct hk_bridge *b = arg;
  hk_thread_name(b->kind->thread, b->number);
  while (!atomic_load(&b->stop)) {
    pthread_mutex_lock(&b->lock);
    b->rule = b->next;
    b->changed = false;
    pthread_mutex_unlock(&b->lock);
    b->kind->run(b);
  }
  atomic_store(&b->over, true);
  return NULL;
}

int hk_bridge_start(struct hk_bridge *b)
{
  snprintf(b->look.name, sizeof b->look.name, "%s", b->next.name);
  b->look.way = b->kind->way;
  pthread_mutex_init(&b->lock, NULL);
  b->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (b->wake < 0)
    return -errno;
  const int status = pthread_create(&b->thread, NULL, bridge_thread_turns, b);
  b->running = status == 0;
  return -status;
}

void hk_bridge_take(struct hk_bridge *b, const struct hk_mqtt_rule *rule)
{
  pthread_mutex_lock(&b->lock);
  b->changed = b->changed || memcmp(&b->next, rule, sizeof *rule) != 0;
  b->next = *rule;
  pthread_mutex_unlock(&b->lock);
  bridge_thread_wake(b);
}

void hk_bridge_end(struct hk_bridge *b)
{
  atomic_store(&b->stop, true);
  bridge_thread_wake(b);
}

bool hk_bridge_join(struct hk_bridge *b, unsigned seconds)
{
  if (b->running)
    b->running = !(seconds > 0 ? hk_thread_join(b->thread, seconds) : pthread_tryjoin_np(b->thread, NULL) == 0);
  return !b->running;
}

void hk_bridge_close(struct hk_bridge *b)
{
  if (b->wake >= 0)
    close(b->wake);
  pthread_mutex_destroy(&b->lock);
}
