/* A hankeld that is built without libsnappy or protobuf-c. */
#include "daemon/web/web_remote_write.h"

#include "daemon/web/web_reply.h"

int hk_web_remote_write(struct lws *wsi, struct hk_web_peer *p)
{
  return hk_web_fault(wsi, p, 501, "this hankeld is built without remote write: it needs libsnappy and protobuf-c", NULL);
}
