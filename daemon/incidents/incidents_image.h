/* The image of incidents, for restarts. */
#ifndef HK_INCIDENTS_IMAGE_H
#define HK_INCIDENTS_IMAGE_H

#include "daemon/incidents/incidents.h"

/* All state, with names; appended to out, which is marked `failed` where there is no memory. */
void hk_incidents_write(const struct hk_incidents *incidents, struct hk_buffer *out);
/* Into one that knows no name and had no event. The budget is that of its rules. 0; -EBADMSG: it is
 * damaged, or of another interval or version; -ENOMEM. After an error there is nothing but to free it. */
int hk_incidents_read(struct hk_incidents *incidents, const char *image, size_t size);

#endif
