/* What a daemon that scores nothing has for backends (relay.h). Thread: any. */
#ifndef HK_BACKEND_NONE_H
#define HK_BACKEND_NONE_H

#include "daemon/scoring/backends.h"

/* As hk_backend_kinds: whichever the configuration chooses, it takes every sensor, and no batch. */
extern const struct hk_backend_kind hk_backend_kinds_none[];

#endif
