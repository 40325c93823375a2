/* See web_api.h. The server makes the lists. Operators' requests go over an inner connection, in the frames of the binary
 * protocol, so that there is one implementation and one access check. */
#include "daemon/web/web_api.h"

#include "daemon/web/web_access.h"
#include "daemon/web/web_inner.h"
#include "daemon/web/web_reply.h"
#include "proto/wire/message.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX 2048  /* bytes of a request in frames */
#define SECONDS_MOST 9e9 /* of maintenance: ns of these fit into 64 bits */

/* --- in frames -------------------------------------------------------------------------------------------------------- */

static void web_api_fail(struct hk_web_peer *p, unsigned code, const char *why)
{
  p->answer.body.size = 0;
  hk_web_problem(&p->answer.body, code, why);
  hk_web_ready(p, code, NULL);
}

static void said_no(struct hk_web_peer *p, const struct hk_frame *f)
{
  struct hk_error_message m;
  char text[1024 + 1];
  if (hk_error_read(f, &m) != 0) {
    web_api_fail(p, 500, "the daemon's answer was not understood");
    return;
  }
  snprintf(text, sizeof text, "%.*s", (int)m.message.length, m.message.data);
  web_api_fail(p, m.code == HANKEL_FORBIDDEN ? 403 : m.code == HANKEL_UNAUTHORIZED ? 401 : 503, text);
}

static void web_api_answer(struct hk_web_peer *p, const struct hk_frame *f)
{
  bool taken;
  struct hk_string text;
  if (f->type == HK_REPORT) {
    hk_buffer_put(&p->answer.body, (const char *)f->payload, f->length);
    hk_buffer_put(&p->answer.body, "\n", 1);
    hk_web_ready(p, 200, NULL);
    return;
  }
  if (hk_reloaded_read(f, &taken, &text) != 0) {
    web_api_fail(p, 500, "the daemon's answer was not understood");
    return;
  }
  while (text.length > 0 && text.data[text.length - 1] == '\n')
    text.length--;
  hk_buffer_print(&p->answer.body, taken ? "{\"text\":" : "{\"type\":\"about:blank\",\"status\":409,\"detail\":");
  hk_json_string(&p->answer.body, text.data, text.length);
  hk_buffer_put(&p->answer.body, "}\n", 2);
  hk_web_ready(p, taken ? 200 : 409, NULL);
}

static void web_api_came(struct hk_web_inner *inner, const char *data, size_t size)
{
  struct hk_frame f;
  struct hk_web_peer *p = inner->peer;
  while (size > 0) {
    size_t room;
    uint8_t *space = hk_inbox_space(&inner->inbox, &room);
    const size_t n = room < size ? room : size;
    if (!space || n == 0) {
      hk_web_inner_close(inner);
      web_api_fail(p, 503, "no memory");
      return;
    }
    memcpy(space, data, n);
    hk_inbox_wrote(&inner->inbox, n);
    data += n;
    size -= n;
    int status;
    while ((status = hk_inbox_next(&inner->inbox, &f)) == HK_FRAME_WHOLE) {
      if (f.type != inner->awaited && f.type != HK_ERROR)
        continue;
      if (f.type == HK_ERROR)
        said_no(p, &f);
      else
        web_api_answer(p, &f);
      hk_web_inner_close(inner);
      return;
    }
    if (status != HK_FRAME_PART) {
      hk_web_inner_close(inner);
      web_api_fail(p, 500, "the daemon's answer was not understood");
      return;
    }
  }
}

static void web_api_ended(struct hk_web_inner *inner)
{
  web_api_fail(inner->peer, 503, "the daemon closed the connection; it may be stopping");
}

static const struct hk_web_inner_kind frames_kind = { HK_PROTOCOL_BINARY, web_api_came, web_api_ended };

/* Sends a request; w: the frames, HELLO and one that is answered by a frame of type `awaited`. */
static int web_api_ask(struct lws *wsi, struct hk_web_peer *p, const struct hk_writer *w, uint8_t awaited)
{
  int status = w->full ? -E2BIG : hk_web_inner_open(p, &frames_kind, 1);
  if (status == 0) {
    p->inner->awaited = awaited;
    status = hk_web_inner_send(p->inner, w->data, w->size);
  }
  if (status == 0) {
    lws_set_timeout(wsi, NO_PENDING_TIMEOUT, 0); /* no time limit; a closed peer is noticed */
    return 0;
  }
  hk_web_inner_close(p->inner);
  return hk_web_fault(wsi, p, status == -E2BIG ? 400 : 503,
                      status == -E2BIG ? "the name is too long" : "no memory or no descriptor is available", NULL);
}

static void web_api_greet(struct hk_writer *w)
{
  const struct hk_hello hello = { .client = hk_string("HTTP") };
  w->full |= hk_hello_write(w, 1, &hello) != 0;
}

static int ask_plainly(struct lws *wsi, struct hk_web_peer *p, uint8_t type, uint8_t awaited)
{
  uint8_t bytes[FRAMES_MAX];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  web_api_greet(&w);
  w.full |= hk_empty_write(&w, type, 2) != 0;
  return web_api_ask(wsi, p, &w, awaited);
}

int hk_web_api_status(struct lws *wsi, struct hk_web_peer *p)
{
  return p->answer.head ? hk_web_reply(wsi, p, 200, "application/json", NULL) : ask_plainly(wsi, p, HK_STATUS, HK_REPORT);
}

int hk_web_api_reload(struct lws *wsi, struct hk_web_peer *p)
{
  return ask_plainly(wsi, p, HK_RELOAD, HK_RELOADED);
}

static int web_api_operate(struct lws *wsi, struct hk_web_peer *p, const struct hk_operate *m)
{
  uint8_t bytes[FRAMES_MAX];
  struct hk_writer w = HK_WRITER(bytes, sizeof bytes);
  web_api_greet(&w);
  w.full |= hk_operate_write(&w, 2, m) != 0;
  return web_api_ask(wsi, p, &w, HK_OPERATED);
}

/* --- bodies ----------------------------------------------------------------------------------------------------------- */

/* The JSON object in a request's body; NULL: an error was answered, as *status says. The caller deletes it. */
static cJSON *object(struct lws *wsi, struct hk_web_peer *p, int *status)
{
  const char *end = NULL;
  cJSON *json =
      p->request.body.size > 0 ? cJSON_ParseWithLengthOpts(p->request.body.data, p->request.body.size, &end, false) : NULL;
  if (cJSON_IsObject(json))
    return json;
  cJSON_Delete(json);
  *status = hk_web_fault(wsi, p, 400, "the body is not an object of JSON", NULL);
  return NULL;
}

/* A member that is a string; "" if it is missing. NULL: it is not a string. */
static const char *string_of(const cJSON *json, const char *name)
{
  const cJSON *member = cJSON_GetObjectItemCaseSensitive(json, name);
  return !member ? "" : cJSON_IsString(member) ? member->valuestring : NULL;
}

/* A member that is a whole number from 0 to most; 0 if it is missing. False: it is something else. */
static bool web_api_number_of(const cJSON *json, const char *name, double most, double *out)
{
  const cJSON *member = cJSON_GetObjectItemCaseSensitive(json, name);
  *out = member ? member->valuedouble : 0;
  return !member || (cJSON_IsNumber(member) && *out >= 0 && *out <= most && *out == floor(*out));
}

/* Something that operators ask for: its members, and what it takes in words. All take `by`. */
struct order {
  const char *subject, *number; /* a name or glob; a whole number, of at most this */
  double most;
  bool (*make)(const cJSON *json, double number, struct hk_operate *m); /* fills in the rest. False: it lacks something */
  const char *takes;
};

static int operate_as(struct lws *wsi, struct hk_web_peer *p, const struct order *order)
{
  int status = 0;
  double number;
  cJSON *json = object(wsi, p, &status);
  if (!json)
    return status;
  const char *subject = string_of(json, order->subject), *by = string_of(json, "by");
  const bool read = subject && by && strlen(by) <= HK_WHO_MAX && web_api_number_of(json, order->number, order->most, &number);
  struct hk_operate m = { .subject = hk_string(read ? subject : ""), .by = hk_string(read ? by : "") };
  if (read && order->make(json, number, &m))
    status = web_api_operate(wsi, p, &m);
  else
    status = hk_web_fault(wsi, p, 400, order->takes, NULL);
  cJSON_Delete(json);
  return status;
}

static bool acknowledgement(const cJSON *json, double number, struct hk_operate *m)
{
  (void)json;
  m->what = HANKEL_ACKNOWLEDGE;
  m->number = (uint32_t)number;
  return m->subject.length > 0;
}

int hk_web_api_acknowledge(struct lws *wsi, struct hk_web_peer *p)
{
  static const struct order order = {
    "sensor", "number", UINT32_MAX, acknowledgement,
    "the body needs `sensor` (a name); `number` (of the alert) and `by` (at most 64 bytes) are optional"
  };
  return operate_as(wsi, p, &order);
}

/* What somebody may say of an incident; 0: it is none of it. */
static uint8_t word_of(const char *word)
{
  return !word                           ? 0
         : strcmp(word, "expected") == 0 ? HANKEL_EXPECTED
         : strcmp(word, "false") == 0    ? HANKEL_FALSE
         : strcmp(word, "undo") == 0     ? HANKEL_UNDO
                                         : 0;
}

static bool feedback(const cJSON *json, double incident, struct hk_operate *m)
{
  m->what = word_of(string_of(json, "word"));
  m->number = (uint32_t)incident;
  return m->what != 0 && (incident > 0) != (m->subject.length > 0);
}

int hk_web_api_say(struct lws *wsi, struct hk_web_peer *p)
{
  static const struct order order = { "sensor", "incident", UINT32_MAX, feedback,
                                      "the body needs `word` (expected, false or undo) and either `incident` (a number) or "
                                      "`sensor` (its latest incident); `by` (at most 64 bytes) is optional" };
  return operate_as(wsi, p, &order);
}

static bool maintenance(const cJSON *json, double seconds, struct hk_operate *m)
{
  const bool ends = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "end"));
  m->what = ends ? HANKEL_END_MAINTENANCE : HANKEL_BEGIN_MAINTENANCE;
  m->duration = (uint64_t)seconds * 1000000000;
  return m->subject.length > 0 && ends != (seconds > 0);
}

int hk_web_api_maintain(struct lws *wsi, struct hk_web_peer *p)
{
  static const struct order order = { "glob", "seconds", SECONDS_MOST, maintenance,
                                      "the body needs `glob` (`*` is every sensor) and either `seconds` (from now on) or `end`: "
                                      "true; `by` (at most 64 bytes) is optional" };
  return operate_as(wsi, p, &order);
}

/* --- login ------------------------------------------------------------------------------------------------------------ */

/* Whether text can be a cookie's value; tokens can. */
static bool fits_cookie(const char *token)
{
  const size_t n = strlen(token);
  return n > 0 && n <= HK_TOKEN_MAX &&
         strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~+/=") == n;
}

int hk_web_api_login(struct lws *wsi, struct hk_web_peer *p)
{
  char cookie[HK_TOKEN_MAX + 64];
  int status = 0;
  cJSON *json = object(wsi, p, &status);
  if (!json)
    return status;
  const char *token = string_of(json, "token"), *why = NULL;
  if (!hk_rules_demand(&p->gate->rules)) {
    hk_buffer_print(&p->answer.body, "{\"text\":\"this listener needs no token\"}\n");
    status = hk_web_reply(wsi, p, 200, "application/json", NULL);
  } else if (!token || !fits_cookie(token) || (why = hk_web_know_token(p, token, strlen(token)))) {
    status = hk_web_unauthorized(wsi, p, why ? why : "unknown token");
  } else {
    const struct hk_web_header header = { "set-cookie:", cookie };
    snprintf(cookie, sizeof cookie, HK_WEB_COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict%s", token, p->tls ? "; Secure" : "");
    hk_buffer_print(&p->answer.body, "{\"text\":\"logged in\",\"name\":");
    hk_json_string(&p->answer.body, p->request.shown.name, strlen(p->request.shown.name));
    hk_buffer_print(&p->answer.body, "}\n");
    status = hk_web_reply(wsi, p, 200, "application/json", &header);
  }
  cJSON_Delete(json);
  return status;
}

int hk_web_api_logout(struct lws *wsi, struct hk_web_peer *p)
{
  static const struct hk_web_header header = { "set-cookie:", HK_WEB_COOKIE "=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0" };
  hk_buffer_print(&p->answer.body, "{\"text\":\"logged out\"}\n");
  return hk_web_reply(wsi, p, 200, "application/json", &header);
}

/* --- lists ------------------------------------------------------------------------------------------------------------ */

/* The requested part of a list. glob: room for its glob. False: an error was answered, as *status says. */
static bool list_arguments(struct lws *wsi, struct hk_web_peer *p, const char *after, char glob[HK_GLOB_MAX + 1],
                           struct hk_web_part *part, int *status)
{
  uint64_t limit = HK_WEB_LIMIT;
  const char *wrong = NULL;
  *part = (struct hk_web_part){ .glob = glob };
  if (hk_web_argument(wsi, "glob", glob, HK_GLOB_MAX + 1) != 0)
    wrong = "`glob` has at most 512 bytes";
  else if (!hk_web_number(wsi, "limit", HK_WEB_LIMIT_MOST, &limit) || limit == 0)
    wrong = "`limit` is a number from 1 to 10000";
  else if (!hk_web_number(wsi, after, UINT64_MAX, &part->after))
    wrong = "`since` and `after` are positions from an earlier answer";
  part->limit = (uint32_t)limit;
  if (wrong)
    *status = hk_web_fault(wsi, p, 400, wrong, NULL);
  return wrong == NULL;
}

static int web_api_list(struct lws *wsi, struct hk_web_peer *p, const char *after,
                        int (*make)(void *arg, const struct hk_web_part *part, struct hk_buffer *out))
{
  char glob[HK_GLOB_MAX + 1];
  struct hk_web_part part;
  int status;
  if (!list_arguments(wsi, p, after, glob, &part, &status))
    return status;
  status = make(p->web->answers.arg, &part, &p->answer.body);
  if (status == -ENOTSUP)
    return hk_web_fault(wsi, p, 409, "the daemon keeps no event log (durability = none); the stream has new events", NULL);
  if (status != 0)
    return hk_web_fault(wsi, p, 503, "no memory", NULL);
  return hk_web_reply(wsi, p, 200, "application/json", NULL);
}

int hk_web_api_alerts(struct lws *wsi, struct hk_web_peer *p)
{
  return web_api_list(wsi, p, "after", p->web->answers.alerts);
}

int hk_web_api_events(struct lws *wsi, struct hk_web_peer *p)
{
  return web_api_list(wsi, p, "since", p->web->answers.events);
}

int hk_web_api_told(struct lws *wsi, struct hk_web_peer *p)
{
  return web_api_list(wsi, p, "since", p->web->answers.told);
}

int hk_web_api_incidents(struct lws *wsi, struct hk_web_peer *p)
{
  p->web->answers.incidents(p->web->answers.arg, &p->answer.body);
  return hk_web_reply(wsi, p, 200, "application/json", NULL);
}

int hk_web_api_cluster(struct lws *wsi, struct hk_web_peer *p)
{
  p->web->answers.cluster(p->web->answers.arg, &p->answer.body);
  return hk_web_reply(wsi, p, 200, "application/json", NULL);
}

int hk_web_api_feedback(struct lws *wsi, struct hk_web_peer *p)
{
  p->web->answers.feedback(p->web->answers.arg, &p->answer.body);
  return hk_web_reply(wsi, p, 200, "application/json", NULL);
}

int hk_web_api_maintenance(struct lws *wsi, struct hk_web_peer *p)
{
  p->web->answers.maintenance(p->web->answers.arg, &p->answer.body);
  return hk_web_reply(wsi, p, 200, "application/json", NULL);
}
