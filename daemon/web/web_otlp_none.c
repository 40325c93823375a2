/* A hankeld that is built without protobuf-c. */
#include "daemon/web/web_otlp.h"

#include "daemon/web/web_reply.h"

int hk_web_otlp(struct lws *wsi, struct hk_web_peer *p)
{
  return hk_web_fault(wsi, p, 501, "this hankeld is built without OTLP: it needs protobuf-c", NULL);
}
