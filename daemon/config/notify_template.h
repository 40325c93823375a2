/* Templates of [notify NAME]: what messages say. Thread: any. */
#ifndef HK_NOTIFY_TEMPLATE_H
#define HK_NOTIFY_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#define HK_NOTIFY_TEMPLATE_MOST 4096 /* bytes, with the 0 */

struct hk_notify_template {
  char text[HK_NOTIFY_TEMPLATE_MOST]; /* "": the receiver's type has its own */
  char file[256];                     /* that it was read from; "": it stood in the configuration */
};

/* Takes a text in which \n is the end of a line and \\ a backslash; or reads a file. Either looks whether it is a template, of
 * names that there are for alerts or incidents. False: not, with a message that says where in it. */
bool hk_notify_template_take(struct hk_notify_template *out, const char *value, char *error, size_t size);
bool hk_notify_template_read(struct hk_notify_template *out, const char *path, char *error, size_t size);
/* Whether all its names are there for what the receiver is told of. */
bool hk_notify_template_fits(const struct hk_notify_template *t, bool incidents, char *error, size_t size);

/* What may be named: of messages, of alerts, of incidents; each list ends with NULL. */
extern const char *const hk_notify_message_names[], *const hk_notify_alert_names[], *const hk_notify_incident_names[];

#endif
