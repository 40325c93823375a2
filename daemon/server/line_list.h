/* The lines of models in JSON: what a list of sensors (sensor_list.h) has of a field with operator = model. Thread: any. */
#ifndef HK_LINE_LIST_H
#define HK_LINE_LIST_H

#include "daemon/base/buffer.h"

struct hk_profile;

/* Appends the members that a profile has in an object that was begun. */
void hk_line_json(struct hk_buffer *out, const struct hk_profile *profile);

#endif
