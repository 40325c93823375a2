/* See web_otlp.h. Rejected points are answered as OTLP requires, with 200 and a partial success, so that they are not sent again.
 */
#include "daemon/web/web_otlp.h"

#include "daemon/web/decode_otlp.h"
#include "daemon/web/decode_otlp_json.h"
#include "daemon/web/web_feed.h"
#include "daemon/web/web_reply.h"

#include <string.h>
#include <strings.h>

#define SENTENCE_MAX 512

static const char protobuf[] = "application/x-protobuf", json[] = "application/json";

static bool web_otlp_complete(const struct hk_web_fed *fed)
{
  return fed->refused == 0 && fed->dropped == 0 && fed->rejected == 0;
}

static unsigned answer_protobuf(struct hk_web_peer *p, const struct hk_web_fed *fed, const char **type)
{
  char why[SENTENCE_MAX];
  *type = protobuf;
  hk_web_feed_sentence(fed, p->request.points.fed->line, why, sizeof why);
  if (!web_otlp_complete(fed)) /* otherwise an empty message */
    hk_otlp_partial((int64_t)(fed->refused + fed->dropped + fed->rejected), why, &p->answer.body);
  return 200;
}

static unsigned answer_json(struct hk_web_peer *p, const struct hk_web_fed *fed, const char **type)
{
  char why[SENTENCE_MAX];
  *type = json;
  hk_web_feed_sentence(fed, p->request.points.fed->line, why, sizeof why);
  if (web_otlp_complete(fed))
    hk_buffer_print(&p->answer.body, "{}\n");
  else
    hk_otlp_partial_json((int64_t)(fed->refused + fed->dropped + fed->rejected), why, &p->answer.body);
  return 200;
}

int hk_web_otlp(struct lws *wsi, struct hk_web_peer *p)
{
  static const struct hk_web_fed_kind in_protobuf = { "data point", answer_protobuf }, in_json = { "data point", answer_json };
  char type[96] = "";
  (void)lws_hdr_copy(wsi, type, sizeof type, WSI_TOKEN_HTTP_CONTENT_TYPE); /* one that is too long: it stays empty */
  const bool binary = strncasecmp(type, protobuf, sizeof protobuf - 1) == 0;
  if (!binary && strncasecmp(type, json, sizeof json - 1) != 0)
    return hk_web_fault(wsi, p, 415, "this path takes OTLP/HTTP (Content-Type: application/x-protobuf or application/json)",
                        NULL);
  struct hk_buffer lines = { 0 };
  p->request.points.faults = (struct hk_sample_faults){ 0 };
  const int status = binary ? hk_decode_otlp(p->request.body.data, p->request.body.size, &lines, &p->request.points.faults)
                            : hk_decode_otlp_json(p->request.body.data, p->request.body.size, &lines, &p->request.points.faults);
  return hk_web_feed_decoded(wsi, p, status, &lines, 1, binary ? &in_protobuf : &in_json);
}
