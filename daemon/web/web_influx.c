/* See web_influx.h. Databases, buckets and organisations are taken as given: there is one of each here. */
#include "daemon/web/web_influx.h"

#include "daemon/web/web_feed.h"
#include "daemon/web/web_reply.h"

#include <string.h>

/* ns in what `precision` names; 0: nothing. */
static int64_t unit_of(const char *precision)
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
  const int64_t unit = status == 0 ? unit_of(precision) : 0;
  if (unit == 0)
    return hk_web_fault(wsi, p, 400, "`precision` is one of ns, us, ms, s, m, h", NULL);
  p->faults = (struct hk_sample_faults){ 0 };
  return hk_web_feed(wsi, p, unit, &lines);
}

int hk_web_influx_ping(struct lws *wsi, struct hk_web_peer *p)
{
  static const struct hk_web_header version = { "x-influxdb-version:", "hankeld-" HANKELD_VERSION };
  return hk_web_reply(wsi, p, 204, NULL, &version);
}

int hk_web_influx_health(struct lws *wsi, struct hk_web_peer *p)
{
  const bool serves = atomic_load_explicit(&p->web->phase, memory_order_acquire) == HK_WEB_SERVING;
  hk_buffer_print(&p->body,
                  "{\"name\":\"hankeld\",\"message\":\"%s\",\"checks\":[],\"status\":\"%s\",\"version\":\"" HANKELD_VERSION
                  "\",\"commit\":\"\"}\n",
                  serves ? "ready for writes" : "it is starting, or ending", serves ? "pass" : "fail");
  return hk_web_reply(wsi, p, serves ? 200 : 503, "application/json", NULL);
}
