/* See web_feed.h. */
#include "daemon/web/web_feed.h"

#include "daemon/web/web_body.h"
#include "daemon/web/web_inner.h"
#include "daemon/web/web_reply.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define SUMMARY_MOST 65536u /* bytes: none is nearly as long */
#define SENTENCE_MAX 512

void hk_web_feed_sentence(const struct hk_web_fed *fed, const char *line, char *out, size_t size)
{
  const cJSON *first = cJSON_GetArrayItem(fed->faults, 0);
  const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(first, "why"));
  const double number = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(first, "line"));
  const double byte = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(first, "byte"));
  char where[96] = "", at[32] = "";
  if (why && byte > 0)
    snprintf(at, sizeof at, ", byte %.0f", byte);
  if (why)
    snprintf(where, sizeof where, "%s %.0f%s: ", line, number, at);
  const int n = snprintf(
      out, size, "partial write: %s%s; %" PRIu64 " %ss refused, %" PRIu64 " points dropped, %" PRIu64 " points taken", where,
      why                ? why
      : fed->dropped > 0 ? "a time too far in the future"
                         : "a value out of range",
      fed->refused, line, fed->dropped, fed->taken);
  if (fed->late + fed->rejected > 0 && n > 0 && (size_t)n < size)
    snprintf(out + n, size - (size_t)n, ", of which %" PRIu64 " were late and %" PRIu64 " were rejected", fed->late,
             fed->rejected);
}

unsigned hk_web_feed_answer(struct hk_web_peer *p, const struct hk_web_fed *fed, const char **type)
{
  char sentence[SENTENCE_MAX];
  (void)type;
  if (fed->refused == 0 && fed->dropped == 0)
    return 204;
  hk_web_feed_sentence(fed, p->request.points.fed->line, sentence, sizeof sentence);
  char *faults = cJSON_PrintUnformatted(fed->faults);
  hk_buffer_print(&p->answer.body, "{\"type\":\"about:blank\",\"status\":400,\"detail\":");
  hk_json_string(&p->answer.body, sentence, strlen(sentence));
  /* as clients of InfluxDB 1 and 2 look for it */
  hk_buffer_print(&p->answer.body, ",\"error\":");
  hk_json_string(&p->answer.body, sentence, strlen(sentence));
  hk_buffer_print(&p->answer.body, ",\"code\":\"invalid\",\"message\":");
  hk_json_string(&p->answer.body, sentence, strlen(sentence));
  hk_buffer_print(&p->answer.body,
                  ",\"taken\":%" PRIu64 ",\"late\":%" PRIu64 ",\"rejected\":%" PRIu64 ",\"refused\":%" PRIu64
                  ",\"dropped\":%" PRIu64 ",\"faults\":%s}\n",
                  fed->taken, fed->late, fed->rejected, fed->refused, fed->dropped, faults ? faults : "[]");
  cJSON_free(faults);
  return 400;
}

static void web_feed_fail(struct hk_web_peer *p, const char *why)
{
  p->answer.body.size = 0;
  hk_web_problem(&p->answer.body, 503, why);
  hk_web_ready(p, 503, NULL);
}

static uint64_t web_feed_count_of(const cJSON *json, const char *name)
{
  const cJSON *member = cJSON_GetObjectItemCaseSensitive(json, name);
  return cJSON_IsNumber(member) && member->valuedouble > 0 ? (uint64_t)member->valuedouble : 0;
}

/* Adds points that could not become lines. */
static void add_faults(const struct hk_sample_faults *from, struct hk_web_fed *fed)
{
  fed->refused += from->refused;
  for (uint32_t i = from->n; i-- > 0;) {
    cJSON *fault = cJSON_CreateObject();
    (void)cJSON_AddNumberToObject(fault, "line", (double)from->fault[i].line);
    (void)cJSON_AddNumberToObject(fault, "byte", 0);
    (void)cJSON_AddStringToObject(fault, "why", from->fault[i].why);
    (void)cJSON_InsertItemInArray(fed->faults, 0, fault); /* it is dropped without memory or an array */
  }
  while (cJSON_GetArraySize(fed->faults) > (int)HK_SAMPLE_FAULTS)
    cJSON_DeleteItemFromArray(fed->faults, (int)HK_SAMPLE_FAULTS);
}

static void web_feed_came(struct hk_web_inner *inner, const char *data, size_t size)
{
  struct hk_web_peer *p = inner->peer;
  struct hk_buffer *partial = &inner->partial;
  hk_buffer_put(partial, data, size);
  if (!partial->failed && partial->size <= SUMMARY_MOST && !memchr(data, '\n', size))
    return;
  cJSON *json = partial->failed ? NULL : cJSON_ParseWithLength(partial->data, partial->size);
  const char *type = NULL;
  if (!json) {
    hk_web_inner_close(inner);
    web_feed_fail(p, "no memory for the result of the points");
    return;
  }
  struct hk_web_fed fed = { .taken = web_feed_count_of(json, "taken"),
                            .late = web_feed_count_of(json, "late"),
                            .rejected = web_feed_count_of(json, "rejected"),
                            .refused = web_feed_count_of(json, "refused"),
                            .dropped = web_feed_count_of(json, "dropped"),
                            .faults = cJSON_GetObjectItemCaseSensitive(json, "faults") };
  add_faults(&p->request.points.faults, &fed);
  snprintf(p->request.points.told, sizeof p->request.points.told, "taken=%" PRIu64 ", late=%" PRIu64 ", rejected=%" PRIu64,
           fed.taken, fed.late, fed.rejected);
  const unsigned code = p->request.points.fed->answer(p, &fed, &type);
  cJSON_Delete(json);
  hk_web_inner_close(inner);
  hk_web_ready(p, code, type);
}

static void web_feed_ended(struct hk_web_inner *inner)
{
  web_feed_fail(inner->peer, "the daemon is stopping, and it is unknown how many points it has taken: send them again");
}

static const struct hk_web_inner_kind lines_kind = { HK_PROTOCOL_LINE, web_feed_came, web_feed_ended };

int hk_web_feed(struct lws *wsi, struct hk_web_peer *p, int64_t unit, const struct hk_web_fed_kind *kind)
{
  const int status = hk_web_inner_open(p, &lines_kind, unit);
  if (status != 0)
    return hk_web_fault(wsi, p, 503, "no memory or no descriptor is available", &hk_web_retry);
  p->request.points.fed = kind;
  hk_web_inner_send_all(p->inner, p->request.body.data, p->request.body.size);
  lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0); /* it takes as long as it takes; a peer that goes is noticed */
  return 0;
}

int hk_web_feed_decoded(struct lws *wsi, struct hk_web_peer *p, int status, struct hk_buffer *lines, int64_t unit,
                        const struct hk_web_fed_kind *kind)
{
  if (status != 0 || lines->failed) {
    hk_buffer_free(lines);
    if (status == -EBADMSG)
      return hk_web_fault(wsi, p, 400, "the body does not have this path's format", NULL);
    if (status == -E2BIG)
      return hk_web_fault(wsi, p, 413, "the body has too many samples: send fewer at a time", NULL);
    return hk_web_fault(wsi, p, 503, "no memory", &hk_web_retry);
  }
  hk_buffer_free(&p->request.body);
  p->request.body = *lines;
  return hk_web_body_reserve(p, lines->size) ? hk_web_feed(wsi, p, unit, kind) : hk_web_body_full(wsi, p);
}
