/* The status of all models of fields. Thread: any. */
#ifndef HK_MODEL_STATUS_H
#define HK_MODEL_STATUS_H

#include "daemon/base/buffer.h"

struct hk_server;

/* Appends the object `models` of the status. */
void hk_models_json(struct hk_buffer *out, const struct hk_server *server);

#endif
