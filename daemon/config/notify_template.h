/* Templates of [notify NAME]: the text of messages. Thread: any. */
#ifndef HK_NOTIFY_TEMPLATE_H
#define HK_NOTIFY_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#define HK_NOTIFY_TEMPLATE_MOST 4096 /* bytes, with the 0 */

struct hk_notify_template {
  char text[HK_NOTIFY_TEMPLATE_MOST]; /* "": the type's own text is used */
  char file[256];                     /* its file; "": it is in the configuration */
};

/* Take a text in which \n is a line feed and \\ a backslash, or read a file, and check that it is a template with names of alerts
 * or incidents. False: it is not, with a message that gives the place. */
bool hk_notify_template_take(struct hk_notify_template *out, const char *value, char *error, size_t size);
bool hk_notify_template_read(struct hk_notify_template *out, const char *path, char *error, size_t size);
/* Whether all its names exist for alerts, or for incidents. */
bool hk_notify_template_fits(const struct hk_notify_template *t, bool incidents, char *error, size_t size);

/* The permitted names: of messages, of alerts, of incidents; each list ends with NULL. */
extern const char *const hk_notify_message_names[], *const hk_notify_alert_names[], *const hk_notify_incident_names[];

#endif
