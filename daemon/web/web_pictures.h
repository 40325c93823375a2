/* Cameras and their last pictures, over HTTP: intake/picture_board.h. Thread: the web's. */
#ifndef HK_WEB_PICTURES_H
#define HK_WEB_PICTURES_H

#include "daemon/web/web_internal.h"

/* Answer complete, authorised requests. Return nonzero if the connection must be closed. */
int hk_web_cameras(struct lws *wsi, struct hk_web_peer *p);
int hk_web_picture(struct lws *wsi, struct hk_web_peer *p); /* of the camera that the request names */

#endif
