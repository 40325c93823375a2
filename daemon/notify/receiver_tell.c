/* Groups the events of a batch into messages, and chooses a pager's action. */
#include "daemon/notify/receiver_tell.h"

#include "daemon/notify/message.h"
#include "daemon/notify/receiver_aside.h"
#include "daemon/notify/receiver_send.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define GROUPS 10 /* most messages of one batch; with more groups there is one message about all */

/* One message about r->batch.chosen[0..n-1]. */
static int receiver_tell_tell(struct hk_receiver *r, uint32_t n, const char *group, bool again, enum hk_paging paging)
{
  struct hk_notify_message m = { 0 };
  const struct hk_told_of what = { .notice = r->batch.chosen,
                                   .n = n,
                                   .group = group,
                                   .id = r->place.id,
                                   .again = !again         ? 0
                                            : r->aside.now ? 1
                                                           : r->repeat.times,
                                   .now = hk_wall(),
                                   .paging = paging };
  int64_t retry_after = 0;
  int status;
  while ((status = hk_message_make(&m, &r->rule, &what)) == -ENOMEM &&
         !atomic_load(&r->thread.quit)) { /* there may be memory later */
    const struct timespec second = { 1, 0 };
    hk_message_free(&m);
    (void)nanosleep(&second, NULL);
  }
  if (status == 0)
    status = hk_receiver_deliver(r, &m, &retry_after);
  hk_message_free(&m);
  if (status == -ECANCELED)
    return status;
  r->aside.refusing = status == -EPERM;
  if (status == 0)
    hk_aside_delivered(r, n);
  else if (r->aside.now)
    hk_aside_failed(r, n, status == -EPERM, retry_after);
  else
    hk_aside_add(r, n);
  return 0;
}

/* Whether somebody has acknowledged or marked it. */
static bool is_noted(const struct hk_notice *n)
{
  return n->logged.event.kind == HK_EVENT_ACKNOWLEDGED ||
         (n->change.id != 0 && (n->change.kind == HANKEL_INCIDENT_EXPECTED || n->change.kind == HANKEL_INCIDENT_FALSE));
}

/* A pager has one incident while any sent alert stands, or one for each incident. A new alert triggers it (also while it is
 * open), it is acknowledged once all standing alerts are, and resolved when none stands.
 */
static int page(struct hk_receiver *r, uint32_t n, const char *group, bool again)
{
  const struct hk_notice *last = r->batch.chosen[n - 1], *noted = NULL, *over = NULL;
  uint32_t new = 0;
  for (uint32_t i = 0; i < n; i++) {
    const struct hk_notice *one = r->batch.chosen[i];
    if (is_noted(one)) {
      noted = one;
    } else if (hk_notice_over(one)) {
      over = one;
    } else {
      new = r->rule.about.incidents ? 0 : new; /* for an incident, its last change */
      r->batch.chosen[new ++] = one;
    }
  }
  const int status = new > 0 ? receiver_tell_tell(r, new, group, again, HK_PAGE_TRIGGER) : 0;
  if (status != 0)
    return status;
  const bool ended = r->rule.about.incidents ? over == last : over && r->alerts.told.n == 0 && !r->alerts.told.overflowed;
  const bool taken = r->rule.about.incidents ? noted == last : noted && r->alerts.told.hushed == r->alerts.told.n;
  r->batch.chosen[0] = ended ? over : noted;
  return ended   ? receiver_tell_tell(r, 1, group, again, HK_PAGE_RESOLVE)
         : taken ? receiver_tell_tell(r, 1, group, again, HK_PAGE_ACKNOWLEDGE)
                 : 0;
}

static int tell_some(struct hk_receiver *r, uint32_t n, const char *group, bool again)
{
  return r->rule.type == HK_NOTIFY_PAGERDUTY ? page(r, n, group, again) : receiver_tell_tell(r, n, group, again, HK_PAGE_TRIGGER);
}

/* Bytes of a name up to the first / or . */
static size_t prefix_of(struct hk_string name)
{
  size_t i = 0;
  while (i < name.length && name.data[i] != '/' && name.data[i] != '.')
    i++;
  return i;
}

/* The group of an event: its sensors' common part of the name. */
static void receiver_tell_group_of(const struct hk_receiver *r, const struct hk_notice *n, char out[HK_NAME_MAX + 1])
{
  const struct hk_string name = n->logged.name;
  struct hk_machine_name machine;
  size_t length = 0;
  if (r->rule.group == HK_NOTIFY_MACHINE && r->machines && hk_sections_group(r->machines, name.data, name.length, &machine))
    length = hk_sections_series(&machine, out);
  if (length == 0) { /* a machine's own series has its name */
    const bool whole = r->rule.about.incidents || r->rule.group == HK_NOTIFY_SENSOR ||
                       (r->rule.group == HK_NOTIFY_MACHINE && memchr(name.data, HK_DERIVED_MARK, name.length));
    length = whole ? name.length : prefix_of(name);
    memcpy(out, name.data, length);
  }
  out[length] = 0;
}

/* The number of groups in the batch, at most GROUPS + 1. */
static uint32_t find_groups(const struct hk_receiver *r, char groups[GROUPS][HK_NAME_MAX + 1])
{
  char one[HK_NAME_MAX + 1];
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->batch.n; i++) {
    uint32_t k = 0;
    receiver_tell_group_of(r, &r->batch.notice[i], one);
    while (k < n && strcmp(groups[k], one) != 0)
      k++;
    if (k == GROUPS)
      return GROUPS + 1;
    if (k == n)
      memcpy(groups[n++], one, sizeof one);
  }
  return n;
}

/* Each incident is an incident of the pager, however many there are: the budget limits their number. */
static int page_each(struct hk_receiver *r, bool again)
{
  int status = 0;
  for (uint32_t i = 0; i < r->batch.n && status == 0; i++) {
    const uint64_t id = r->batch.notice[i].change.id;
    uint32_t n = 0;
    bool before = false;
    for (uint32_t k = 0; k < i && !before; k++)
      before = r->batch.notice[k].change.id == id;
    for (uint32_t k = i; k < r->batch.n && !before; k++)
      if (r->batch.notice[k].change.id == id)
        r->batch.chosen[n++] = &r->batch.notice[k];
    if (n > 0)
      status = page(r, n, "", again);
  }
  return status;
}

int hk_receiver_tell_batch(struct hk_receiver *r, bool again)
{
  char groups[GROUPS][HK_NAME_MAX + 1], one[HK_NAME_MAX + 1];
  if (r->rule.about.incidents && r->rule.type == HK_NOTIFY_PAGERDUTY)
    return page_each(r, again);
  const uint32_t n_groups = r->rule.group == HK_NOTIFY_ALL && !r->rule.about.incidents ? 0 : find_groups(r, groups);
  int status = 0;
  if (n_groups == 0 || n_groups > GROUPS) {
    for (uint32_t i = 0; i < r->batch.n; i++)
      r->batch.chosen[i] = &r->batch.notice[i];
    return tell_some(r, r->batch.n, "", again);
  }
  for (uint32_t k = 0; k < n_groups && status == 0; k++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->batch.n; i++) {
      receiver_tell_group_of(r, &r->batch.notice[i], one);
      if (strcmp(groups[k], one) == 0)
        r->batch.chosen[n++] = &r->batch.notice[i];
    }
    status = tell_some(r, n, groups[k], again);
  }
  return status;
}
