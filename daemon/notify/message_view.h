/* View: what a message tells of, as an object of JSON. A webhook gets it, and templates have their values from it;
 * hankeld.conf(5) describes it. Objects are the caller's; NULL: there is no memory. Thread: any. */
#ifndef HK_NOTIFY_MESSAGE_VIEW_H
#define HK_NOTIFY_MESSAGE_VIEW_H

#include "daemon/config/notify_rule.h"
#include "daemon/notify/notice.h"

#include <cjson/cJSON.h>

#define HK_LISTED 10 /* alerts that a message to people names: the gravest */

/* All of a message with this key; `alerts` are as the log has them, or for people the gravest. */
cJSON *hk_view_message(const struct hk_notify_rule *rule, const struct hk_told_of *what, const char *key);
/* One alert, or one change of an incident. */
cJSON *hk_view_notice(const struct hk_notify_rule *rule, const struct hk_told_of *what, const struct hk_notice *notice);
/* The gravest of those that stand, or of all where none does. */
const struct hk_notice *hk_view_gravest(const struct hk_told_of *what);
/* The key of one event. */
void hk_view_key(char *out, size_t size, const struct hk_told_of *what, const struct hk_notice *notice);
/* A name, for people; a time. */
void hk_view_name(const struct hk_notice *notice, char out[HK_NAME_MAX + 1]);
void hk_view_time(int64_t ns, char out[HK_TIME_TEXT_MAX]);

#endif
