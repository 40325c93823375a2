/* Lists for HTTP (web/web_source.h): standing alerts, logged events; in parts, so that no call takes long. arg: the server.
 * Thread:
 * the web's. */
#ifndef HK_WEB_LISTS_H
#define HK_WEB_LISTS_H

#include "daemon/web/web_source.h"

int hk_list_alerts(void *arg, const struct hk_web_part *part, struct hk_buffer *out);
void hk_list_incidents(void *arg, struct hk_buffer *out);
void hk_list_feedback(void *arg, struct hk_buffer *out);
void hk_list_maintenance(void *arg, struct hk_buffer *out);
int hk_list_events(void *arg, const struct hk_web_part *part, struct hk_buffer *out);
int hk_list_told(void *arg, const struct hk_web_part *part, struct hk_buffer *out);

#endif
