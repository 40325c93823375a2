/* JSON mapping of protobuf: names in camelCase; 64-bit integers are text. See decode_otlp_json.h. */
#include "daemon/web/decode_otlp_json.h"
#include "daemon/web/otlp_points.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const cJSON *decode_otlp_json_member(const cJSON *json, const char *name)
{
  return cJSON_GetObjectItemCaseSensitive(json, name);
}

/* A number, or a number as text; NAN: neither. */
static double real_of(const cJSON *json)
{
  char *end;
  if (cJSON_IsNumber(json))
    return json->valuedouble;
  if (!cJSON_IsString(json) || !json->valuestring[0])
    return NAN;
  const double value = strtod(json->valuestring, &end);
  return *end ? NAN : value;
}

/* ns since 1970; 0: none. */
static uint64_t decode_otlp_json_time_of(const cJSON *json)
{
  char *end;
  if (cJSON_IsNumber(json))
    return json->valuedouble >= 0 && json->valuedouble < 0x1p64 ? (uint64_t)json->valuedouble : 0;
  if (!cJSON_IsString(json) || strspn(json->valuestring, "0123456789") != strlen(json->valuestring))
    return 0;
  errno = 0;
  const uint64_t time = strtoull(json->valuestring, &end, 10);
  return errno == 0 ? time : UINT64_MAX;
}

static void put_tag(struct hk_otlp *o, bool in_resource, const cJSON *attribute)
{
  const char *key = cJSON_GetStringValue(decode_otlp_json_member(attribute, "key"));
  const cJSON *value = decode_otlp_json_member(attribute, "value"), *text = decode_otlp_json_member(value, "stringValue"),
              *yes = decode_otlp_json_member(value, "boolValue"), *whole = decode_otlp_json_member(value, "intValue"),
              *real = decode_otlp_json_member(value, "doubleValue");
  if (!key)
    hk_otlp_other(o, in_resource);
  else if (cJSON_IsString(text))
    hk_otlp_text(o, in_resource, key, strlen(key), text->valuestring, strlen(text->valuestring));
  else if (cJSON_IsBool(yes))
    hk_otlp_text(o, in_resource, key, strlen(key), cJSON_IsTrue(yes) ? "true" : "false", cJSON_IsTrue(yes) ? 4 : 5);
  else if (cJSON_IsString(whole))
    hk_otlp_text(o, in_resource, key, strlen(key), whole->valuestring, strlen(whole->valuestring));
  else if (cJSON_IsNumber(whole) && fabs(whole->valuedouble) < 0x1p63)
    hk_otlp_whole(o, in_resource, key, strlen(key), (int64_t)whole->valuedouble);
  else if (cJSON_IsNumber(real))
    hk_otlp_real(o, in_resource, key, strlen(key), real->valuedouble);
  else
    hk_otlp_other(o, in_resource);
}

static void decode_otlp_json_put_tags(struct hk_otlp *o, bool in_resource, const cJSON *attributes)
{
  const cJSON *attribute;
  cJSON_ArrayForEach(attribute, attributes) put_tag(o, in_resource, attribute);
}

static bool put_points(struct hk_otlp *o, const cJSON *points, bool counts)
{
  const cJSON *p;
  cJSON_ArrayForEach(p, points)
  {
    const double flags = real_of(decode_otlp_json_member(p, "flags"));
    const cJSON *whole = decode_otlp_json_member(p, "asInt");
    struct hk_otlp_point point = { .time = decode_otlp_json_time_of(decode_otlp_json_member(p, "timeUnixNano")),
                                   .recorded = !(flags >= 0 && flags <= UINT32_MAX && ((uint32_t)flags & 1)),
                                   .value = real_of(counts  ? decode_otlp_json_member(p, "sum")
                                                    : whole ? whole
                                                            : decode_otlp_json_member(p, "asDouble")),
                                   .counts = counts,
                                   .count = counts ? real_of(decode_otlp_json_member(p, "count")) : 0 };
    if (counts && isnan(point.count)) /* members that are 0 may be missing */
      point.count = 0;
    hk_otlp_begin(o);
    decode_otlp_json_put_tags(o, false, decode_otlp_json_member(p, "attributes"));
    if (!hk_otlp_put(o, &point))
      return false;
  }
  return true;
}

static int64_t temporality_of(const cJSON *data)
{
  const cJSON *json = decode_otlp_json_member(data, "aggregationTemporality");
  const char *name = cJSON_GetStringValue(json);
  if (name)
    return strcmp(name, "AGGREGATION_TEMPORALITY_DELTA") == 0        ? 1
           : strcmp(name, "AGGREGATION_TEMPORALITY_CUMULATIVE") == 0 ? 2
                                                                     : 0;
  return cJSON_IsNumber(json) && json->valuedouble >= 0 && json->valuedouble <= 2 ? (int64_t)json->valuedouble : 0;
}

static bool decode_otlp_json_put_metric(struct hk_otlp *o, const cJSON *metric)
{
  static const struct {
    const char *name;
    enum hk_otlp_kind kind;
  } kinds[] = { { "gauge", HK_OTLP_GAUGE },
                { "sum", HK_OTLP_SUM },
                { "histogram", HK_OTLP_HISTOGRAM },
                { "exponentialHistogram", HK_OTLP_HISTOGRAM },
                { "summary", HK_OTLP_SUMMARY } };
  const char *name = cJSON_GetStringValue(decode_otlp_json_member(metric, "name"));
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const cJSON *data = decode_otlp_json_member(metric, kinds[i].name);
    if (!cJSON_IsObject(data))
      continue;
    hk_otlp_metric(o, name ? name : "", name ? strlen(name) : 0, kinds[i].kind, temporality_of(data));
    return put_points(o, decode_otlp_json_member(data, "dataPoints"),
                      kinds[i].kind == HK_OTLP_HISTOGRAM || kinds[i].kind == HK_OTLP_SUMMARY);
  }
  return hk_otlp_unknown(o);
}

static bool decode_otlp_json_put_resource(struct hk_otlp *o, const cJSON *resource)
{
  const cJSON *scope, *metric;
  hk_otlp_resource(o);
  decode_otlp_json_put_tags(o, true, decode_otlp_json_member(decode_otlp_json_member(resource, "resource"), "attributes"));
  cJSON_ArrayForEach(scope, decode_otlp_json_member(resource, "scopeMetrics"))
  {
    cJSON_ArrayForEach(metric, decode_otlp_json_member(scope, "metrics"))
    {
      if (!decode_otlp_json_put_metric(o, metric))
        return false;
    }
  }
  return true;
}

int hk_decode_otlp_json(const char *data, size_t size, struct hk_buffer *out, struct hk_sample_faults *faults)
{
  struct hk_otlp o = { .lines = { .out = out, .faults = faults } };
  int status = 0;
  const char *end = NULL;
  if (size > HK_OTLP_JSON)
    return -E2BIG;
  cJSON *json = size > 0 ? cJSON_ParseWithLengthOpts(data, size, &end, false) : NULL;
  if (!cJSON_IsObject(json))
    status = -EBADMSG;
  const cJSON *resource;
  cJSON_ArrayForEach(resource, decode_otlp_json_member(json, "resourceMetrics"))
  {
    if (status == 0 && !decode_otlp_json_put_resource(&o, resource))
      status = out->failed || o.lines.key.failed ? -ENOMEM : -E2BIG;
  }
  hk_sample_lines_free(&o.lines);
  cJSON_Delete(json);
  return status;
}

void hk_otlp_partial_json(int64_t rejected, const char *why, struct hk_buffer *out)
{
  hk_buffer_print(out, "{\"partialSuccess\":{\"rejectedDataPoints\":\"%" PRId64 "\",\"errorMessage\":", rejected);
  hk_json_string(out, why, strlen(why));
  hk_buffer_put(out, "}}\n", 3);
}
