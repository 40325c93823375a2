/* See web_influx.h. Names of databases, buckets and organisations are ignored. */
#include "daemon/web/web_influx.h"

#include "daemon/web/web_feed.h"
#include "daemon/web/web_reply.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ns of a unit of `precision`; 0: unknown. */
static int64_t web_influx_unit_of(const char *precision)
{
  static const struct {
    const char *name;
    int64_t unit;
  } units[] = {
    { "", 1 },         { "ns", 1 },         { "n", 1 },           { "us", 1000 },        { "u", 1000 }, { "\xc2\xb5", 1000 },
    { "ms", 1000000 }, { "s", 1000000000 }, { "m", 60000000000 }, { "h", 3600000000000 }
  };
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strcmp(units[i].name, precision) == 0)
      return units[i].unit;
  return 0;
}

static const struct hk_web_fed_kind lines = { "line", hk_web_feed_answer };

int hk_web_influx_write(struct lws *wsi, struct hk_web_peer *p)
{
  char precision[8];
  const int status = hk_web_argument(wsi, "precision", precision, sizeof precision);
  const int64_t unit = status == 0 ? web_influx_unit_of(precision) : 0;
  if (unit == 0)
    return hk_web_fault(wsi, p, 400, "`precision` is one of ns, us, ms, s, m, h", NULL);
  p->request.points.faults = (struct hk_sample_faults){ 0 };
  return hk_web_feed(wsi, p, unit, &lines);
}

/* Decodes a value of application/x-www-form-urlencoded in place. */
static void decode_form(char *text)
{
  char *out = text, digits[3] = "";
  for (const char *in = text; *in; in++) {
    if (*in == '%' && isxdigit((unsigned char)in[1]) && isxdigit((unsigned char)in[2])) {
      memcpy(digits, in + 1, 2);
      *out++ = (char)strtol(digits, NULL, 16);
      in += 2;
    } else {
      *out++ = *in == '+' ? ' ' : *in;
    }
  }
  *out = 0;
}

/* The statement, in the query or in a form's body. False: longer than any known statement. */
static bool statement_of(struct lws *wsi, const struct hk_web_peer *p, char *out, size_t size)
{
  if (hk_web_argument(wsi, "q", out, size) != 0)
    return false;
  if (out[0])
    return true;
  for (size_t at = 0; at < p->request.body.size;) {
    const char *field = p->request.body.data + at, *end = memchr(field, '&', p->request.body.size - at);
    const size_t length = end ? (size_t)(end - field) : p->request.body.size - at;
    if (length > 2 && memcmp(field, "q=", 2) == 0) {
      if ((size_t)snprintf(out, size, "%.*s", (int)(length - 2), field + 2) >= size)
        return false;
      decode_form(out);
      return true;
    }
    at += length + 1;
  }
  return true;
}

/* The daemon stores nothing that could be queried. Two requests that clients of version 1 make before they write are answered as
 * if they had been done: create a database, and list databases. */
int hk_web_influx_query(struct lws *wsi, struct hk_web_peer *p)
{
  static const char create[] = "create database", show[] = "show databases";
  static const char unknown[] = "hankeld answers only CREATE DATABASE and SHOW DATABASES of InfluxQL; its own API is at /api/v1/";
  char statement[256];
  const bool read = statement_of(wsi, p, statement, sizeof statement);
  const char *word = statement + strspn(statement, " \t\r\n");
  if (read && strncasecmp(word, create, sizeof create - 1) == 0) {
    hk_buffer_print(&p->answer.body, "{\"results\":[{\"statement_id\":0}]}\n");
  } else if (read && strncasecmp(word, show, sizeof show - 1) == 0) {
    hk_buffer_print(&p->answer.body,
                    "{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":\"databases\",\"columns\":[\"name\"],"
                    "\"values\":[[\"hankeld\"]]}]}]}\n");
  } else {
    hk_web_problem(&p->answer.body, 400, unknown);
    p->answer.body.size -= sizeof "}\n" - 1; /* its clients read `error` */
    hk_buffer_print(&p->answer.body, ",\"error\":\"%s\"}\n", unknown);
    return hk_web_reply(wsi, p, 400, "application/problem+json", NULL);
  }
  return hk_web_reply(wsi, p, 200, "application/json", NULL);
}

int hk_web_influx_ping(struct lws *wsi, struct hk_web_peer *p)
{
  static const struct hk_web_header version = { "x-influxdb-version:", "hankeld-" HANKELD_VERSION };
  return hk_web_reply(wsi, p, 204, NULL, &version);
}

int hk_web_influx_health(struct lws *wsi, struct hk_web_peer *p)
{
  const bool serves = atomic_load_explicit(&p->web->phase, memory_order_acquire) == HK_WEB_SERVING;
  hk_buffer_print(&p->answer.body,
                  "{\"name\":\"hankeld\",\"message\":\"%s\",\"checks\":[],\"status\":\"%s\",\"version\":\"" HANKELD_VERSION
                  "\",\"commit\":\"\"}\n",
                  serves ? "ready for writes" : "the daemon is starting or stopping", serves ? "pass" : "fail");
  return hk_web_reply(wsi, p, serves ? 200 : 503, "application/json", NULL);
}
