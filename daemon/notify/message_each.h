/* Messages to receivers that get one message an alert. view: hk_view_message. False: no memory. Thread: any. */
#ifndef HK_NOTIFY_MESSAGE_EACH_H
#define HK_NOTIFY_MESSAGE_EACH_H

#include "daemon/notify/message_view.h"
#include "daemon/notify/sending.h"

bool hk_make_alertmanager(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w,
                          const cJSON *view);
bool hk_make_syslog(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w, const cJSON *view);
bool hk_make_mqtt(struct hk_notify_message *m, const struct hk_notify_rule *r, const struct hk_told_of *w, const cJSON *view);

#endif
