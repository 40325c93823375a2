/* Text of messages: a receiver's template, or what its type says by itself. The caller's; NULL: there is no memory. Thread: any.
 */
#ifndef HK_NOTIFY_MESSAGE_TEXT_H
#define HK_NOTIFY_MESSAGE_TEXT_H

#include "daemon/notify/message_view.h"

/* All of it, of hk_view_message. standard: what is said where the receiver has no template. */
char *hk_text_message(const struct hk_notify_rule *rule, const cJSON *message, const char *standard);
/* One alert of it, for receivers that get each by itself. */
char *hk_text_notice(const struct hk_notify_rule *rule, const cJSON *message, const cJSON *notice, const char *standard);
/* Whether a text is, or begins like, JSON. */
bool hk_text_is_json(const char *text);

/* For people: how many, the gravest, and where to look; the second without that. */
extern const char hk_text_for_people[], hk_text_without_link[];
/* One alert. */
extern const char hk_text_of_alert[];

#endif
