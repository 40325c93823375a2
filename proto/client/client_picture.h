/* Pictures of a client. */
#ifndef HK_CLIENT_PICTURE_H
#define HK_CLIENT_PICTURE_H

#include "proto/client/client.h"

/* Puts a picture behind all that was sent, which is nothing of the points. Returns 0, -EINVAL, -EMSGSIZE or -ENOMEM. */
int hk_client_picture(struct hankel *h, const struct hankel_picture *picture);

#endif
