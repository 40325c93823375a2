/* See web_remote_write.h. */
#include "daemon/web/web_remote_write.h"

#include "daemon/web/decode_remote_write.h"
#include "daemon/web/web_feed.h"
#include "daemon/web/web_reply.h"

#include <string.h>
#include <strings.h>

#define MILLISECOND 1000000 /* ns */

static const struct hk_web_fed_kind samples = { "sample", hk_web_feed_answer };

int hk_web_remote_write(struct lws *wsi, struct hk_web_peer *p)
{
  static const char protobuf[] = "application/x-protobuf";
  char type[96] = "";
  (void)lws_hdr_copy(wsi, type, sizeof type, WSI_TOKEN_HTTP_CONTENT_TYPE); /* one that is too long: it stays empty */
  if (strncasecmp(type, protobuf, sizeof protobuf - 1) != 0 || strstr(type, "write.v2"))
    return hk_web_fault(wsi, p, 415, "this path takes remote write 1.0 (Content-Type: application/x-protobuf)", NULL);
  struct hk_buffer lines = { 0 };
  p->request.points.faults = (struct hk_sample_faults){ 0 };
  const int status = hk_decode_remote_write(p->request.body.data, p->request.body.size, &lines, &p->request.points.faults);
  return hk_web_feed_decoded(wsi, p, status, &lines, MILLISECOND, &samples);
}
