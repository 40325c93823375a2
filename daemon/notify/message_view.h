/* View: the contents of a message as a JSON object. A webhook gets it, and templates take their values from it; hankeld.conf(5)
 * describes it. The caller frees objects; NULL: no memory. Thread: any. */
#ifndef HK_NOTIFY_MESSAGE_VIEW_H
#define HK_NOTIFY_MESSAGE_VIEW_H

#include "daemon/config/notify_rule.h"
#include "daemon/notify/notice.h"

#include <cjson/cJSON.h>

#define HK_LISTED 10 /* alerts that a message to people lists: the most severe */

/* The whole message with this key; `alerts` are in the order of the log, or for people the most severe. */
cJSON *hk_view_message(const struct hk_notify_rule *rule, const struct hk_told_of *what, const char *key);
/* The most severe of the standing alerts, or of all if none stands. */
const struct hk_notice *hk_view_gravest(const struct hk_told_of *what);
/* The key of one event. */
void hk_view_key(char *out, size_t size, const struct hk_told_of *what, const struct hk_notice *notice);
/* A name, for people; a time. */
void hk_view_name(const struct hk_notice *notice, char out[HK_NAME_MAX + 1]);
void hk_view_time(int64_t ns, char out[HK_TIME_TEXT_MAX]);

#endif
