/* What a loop does so that nothing is lost on the way: events of the log to subscribers, acknowledgements to feeds. */
#include "daemon/loop.h"

#include "daemon/server.h"

void hk_loop_tell_events(struct hk_loop *l)
{
  if (hk_publish_events(l->publisher))
    hk_wake_up(&l->wake, HK_WAKE_WORK);
}

bool hk_loop_told(struct hk_loop *l, struct hk_connection *c)
{
  struct hk_eventlog *log = l->server->shards.events;
  if (!log)
    return true;
  if (c->bye_event == 0)
    c->bye_event = hk_eventlog_last(log) + 1;
  hk_loop_tell_events(l);
  return hk_follower_told(&c->subscriber, c->bye_event - 1);
}

void hk_loop_feeds(struct hk_loop *l, struct hk_connection *c)
{
  c->next_feeding = l->feeding;
  l->feeding = c;
}

void hk_loop_feeds_no_more(struct hk_loop *l, struct hk_connection *c)
{
  for (struct hk_connection **link = &l->feeding; c->feeding.feed && *link; link = &(*link)->next_feeding)
    if (*link == c) {
      *link = c->next_feeding;
      break;
    }
}

void hk_loop_acknowledge(struct hk_loop *l)
{
  for (struct hk_connection *c = l->feeding, *next; c; c = next) {
    next = c->next_feeding;
    hk_binary_acknowledge(c);
  }
}
