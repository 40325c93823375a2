/* Text of messages: by a receiver's template, or by its type's default. The caller frees it; NULL: no memory. Thread: any.
 */
#ifndef HK_NOTIFY_MESSAGE_TEXT_H
#define HK_NOTIFY_MESSAGE_TEXT_H

#include "daemon/notify/message_view.h"

/* The whole text, of hk_view_message. standard: the template to use if the receiver has none. */
char *hk_text_message(const struct hk_notify_rule *rule, const cJSON *message, const char *standard);
/* The text of one alert, for receivers that get one message an alert. */
char *hk_text_notice(const struct hk_notify_rule *rule, const cJSON *message, const cJSON *notice, const char *standard);
/* Whether a text is, or begins like, JSON. */
bool hk_text_is_json(const char *text);

/* For people: the number of alerts, the most severe, and the link; the second template has no link. */
extern const char hk_text_for_people[], hk_text_without_link[];
/* One alert. */
extern const char hk_text_of_alert[];

#endif
