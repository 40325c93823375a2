/* The image of incidents, for restarts. */
#ifndef HK_INCIDENTS_IMAGE_H
#define HK_INCIDENTS_IMAGE_H

#include "daemon/incidents/incidents.h"

/* Appends all state, with names, to out, which is marked `failed` without memory. */
void hk_incidents_write(struct hk_incidents *incidents, struct hk_buffer *out);
/* The interval of an image, ns; 0: it is damaged. */
int64_t hk_incidents_image_interval(const char *image, size_t size);
/* Restores into incidents without names or events. The budget is that of its rules. 0; -EBADMSG: damaged, or of another interval
 * or version; -ENOMEM. After an error it can only be freed. */
int hk_incidents_read(struct hk_incidents *incidents, const char *image, size_t size);

#endif
