/* The backends of a daemon that scores nothing (relay.h). Thread: any. */
#ifndef HK_BACKEND_NONE_H
#define HK_BACKEND_NONE_H

#include "daemon/scoring/backends.h"

/* As hk_backend_kinds. For each choice of the configuration the backend accepts every sensor and no batch. */
extern const struct hk_backend_kind hk_backend_kinds_none[];

#endif
