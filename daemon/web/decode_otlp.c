/* Protobuf. See decode_otlp.h. */
#include "daemon/web/decode_otlp.h"

#include "daemon/web/otlp.pb-c.h"
#include "daemon/web/otlp_points.h"
#include "daemon/web/web_arena.h"

#include <errno.h>
#include <math.h>

#define NOT_RECORDED 1u /* of a data point's flags */

typedef Hk__Otlp__KeyValue Attribute;

static void decode_otlp_put_tags(struct hk_otlp *o, bool in_resource, Attribute *const *attributes, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    const Attribute *a = attributes[i];
    const char *key = (const char *)a->key.data;
    switch (a->value ? a->value->value_case : HK__OTLP__ANY_VALUE__VALUE__NOT_SET) {
    case HK__OTLP__ANY_VALUE__VALUE_STRING_VALUE:
      hk_otlp_text(o, in_resource, key, a->key.len, (const char *)a->value->string_value.data, a->value->string_value.len);
      break;
    case HK__OTLP__ANY_VALUE__VALUE_BOOL_VALUE:
      hk_otlp_text(o, in_resource, key, a->key.len, a->value->bool_value ? "true" : "false", a->value->bool_value ? 4 : 5);
      break;
    case HK__OTLP__ANY_VALUE__VALUE_INT_VALUE:
      hk_otlp_whole(o, in_resource, key, a->key.len, a->value->int_value);
      break;
    case HK__OTLP__ANY_VALUE__VALUE_DOUBLE_VALUE:
      hk_otlp_real(o, in_resource, key, a->key.len, a->value->double_value);
      break;
    default:
      hk_otlp_other(o, in_resource);
    }
  }
}

static bool put_numbers(struct hk_otlp *o, Hk__Otlp__NumberDataPoint *const *points, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    const Hk__Otlp__NumberDataPoint *p = points[i];
    const struct hk_otlp_point point = { .time = p->time_unix_nano,
                                         .recorded = !(p->flags & NOT_RECORDED),
                                         .value = p->value_case == HK__OTLP__NUMBER_DATA_POINT__VALUE_AS_DOUBLE ? p->as_double
                                                  : p->value_case == HK__OTLP__NUMBER_DATA_POINT__VALUE_AS_INT ? (double)p->as_int
                                                                                                               : NAN };
    hk_otlp_begin(o);
    decode_otlp_put_tags(o, false, p->attributes, p->n_attributes);
    if (!hk_otlp_put(o, &point))
      return false;
  }
  return true;
}

/* Histograms and summaries: the same members, in messages of different types. */
#define PUT_COUNTED(o, points, n, sum_of)                                                                                        \
  for (size_t i = 0; i < (n); i++) {                                                                                             \
    const struct hk_otlp_point point = { .time = (points)[i]->time_unix_nano,                                                    \
                                         .recorded = !((points)[i]->flags & NOT_RECORDED),                                       \
                                         .value = sum_of((points)[i]),                                                           \
                                         .counts = true,                                                                         \
                                         .count = (double)(points)[i]->count };                                                  \
    hk_otlp_begin(o);                                                                                                            \
    decode_otlp_put_tags(o, false, (points)[i]->attributes, (points)[i]->n_attributes);                                          \
    if (!hk_otlp_put(o, &point))                                                                                                 \
      return false;                                                                                                              \
  }                                                                                                                              \
  return true
#define MAY_HAVE_SUM(p) ((p)->has_sum_case ? (p)->sum : NAN)
#define HAS_SUM(p) ((p)->sum)

static bool put_histograms(struct hk_otlp *o, Hk__Otlp__HistogramDataPoint *const *points, size_t n)
{
  PUT_COUNTED(o, points, n, MAY_HAVE_SUM);
}

static bool put_exponential(struct hk_otlp *o, Hk__Otlp__ExponentialHistogramDataPoint *const *points, size_t n)
{
  PUT_COUNTED(o, points, n, MAY_HAVE_SUM);
}

static bool put_summaries(struct hk_otlp *o, Hk__Otlp__SummaryDataPoint *const *points, size_t n)
{
  PUT_COUNTED(o, points, n, HAS_SUM);
}

static bool decode_otlp_put_metric(struct hk_otlp *o, const Hk__Otlp__Metric *m)
{
  const char *name = (const char *)m->name.data;
  switch (m->data_case) {
  case HK__OTLP__METRIC__DATA_GAUGE:
    hk_otlp_metric(o, name, m->name.len, HK_OTLP_GAUGE, 0);
    return put_numbers(o, m->gauge->data_points, m->gauge->n_data_points);
  case HK__OTLP__METRIC__DATA_SUM:
    hk_otlp_metric(o, name, m->name.len, HK_OTLP_SUM, m->sum->aggregation_temporality);
    return put_numbers(o, m->sum->data_points, m->sum->n_data_points);
  case HK__OTLP__METRIC__DATA_HISTOGRAM:
    hk_otlp_metric(o, name, m->name.len, HK_OTLP_HISTOGRAM, m->histogram->aggregation_temporality);
    return put_histograms(o, m->histogram->data_points, m->histogram->n_data_points);
  case HK__OTLP__METRIC__DATA_EXPONENTIAL_HISTOGRAM:
    hk_otlp_metric(o, name, m->name.len, HK_OTLP_HISTOGRAM, m->exponential_histogram->aggregation_temporality);
    return put_exponential(o, m->exponential_histogram->data_points, m->exponential_histogram->n_data_points);
  case HK__OTLP__METRIC__DATA_SUMMARY:
    hk_otlp_metric(o, name, m->name.len, HK_OTLP_SUMMARY, 0);
    return put_summaries(o, m->summary->data_points, m->summary->n_data_points);
  default:
    return hk_otlp_unknown(o);
  }
}

static bool decode_otlp_put_resource(struct hk_otlp *o, const Hk__Otlp__ResourceMetrics *r)
{
  hk_otlp_resource(o);
  if (r->resource)
    decode_otlp_put_tags(o, true, r->resource->attributes, r->resource->n_attributes);
  for (size_t i = 0; i < r->n_scope_metrics; i++)
    for (size_t k = 0; k < r->scope_metrics[i]->n_metrics; k++)
      if (!decode_otlp_put_metric(o, r->scope_metrics[i]->metrics[k]))
        return false;
  return true;
}

int hk_decode_otlp(const void *data, size_t size, struct hk_buffer *out, struct hk_sample_faults *faults)
{
  struct hk_web_arena arena;
  struct hk_otlp o = { .lines = { .out = out, .faults = faults } };
  int status = 0;
  hk_web_arena_open(&arena);
  const Hk__Otlp__ExportMetricsServiceRequest *request =
      hk__otlp__export_metrics_service_request__unpack(&arena.allocator, size, data);
  if (!request)
    status = arena.full ? -E2BIG : -EBADMSG;
  for (size_t i = 0; request && status == 0 && i < request->n_resource_metrics; i++)
    if (!decode_otlp_put_resource(&o, request->resource_metrics[i]))
      status = out->failed || o.lines.key.failed ? -ENOMEM : -E2BIG;
  hk_sample_lines_free(&o.lines);
  hk_web_arena_free(&arena);
  return status;
}

void hk_otlp_partial(int64_t rejected, const char *why, struct hk_buffer *out)
{
  Hk__Otlp__ExportMetricsPartialSuccess partial = HK__OTLP__EXPORT_METRICS_PARTIAL_SUCCESS__INIT;
  Hk__Otlp__ExportMetricsServiceResponse response = HK__OTLP__EXPORT_METRICS_SERVICE_RESPONSE__INIT;
  partial.rejected_data_points = rejected;
  partial.error_message = (char *)why;
  response.partial_success = &partial;
  const size_t size = hk__otlp__export_metrics_service_response__get_packed_size(&response);
  char *room = hk_buffer_room(out, size);
  if (room)
    out->size += hk__otlp__export_metrics_service_response__pack(&response, (uint8_t *)room);
}
