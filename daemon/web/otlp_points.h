/* Converts data points of OTLP metrics, of both formats, into lines. Each data point becomes one line, so line n of the
 * daemon's answer is data point n.
 *
 * The metric's name is the measurement. The tags are `service.name`, `service.instance.id` and `host.name` of the resource,
 * and all attributes of the data point, ordered by key. A number becomes the field `value`; a histogram or summary has the
 * fields `count` and `sum`. */
#ifndef HK_OTLP_POINTS_H
#define HK_OTLP_POINTS_H

#include "daemon/intake/sample_lines.h"

#define HK_OTLP_TAGS 64u /* most tags of a data point */

struct hk_otlp_tag {
  const char *key, *value;
  size_t key_length, length;
  char text[32]; /* text of a numeric value */
};

enum hk_otlp_kind { HK_OTLP_GAUGE, HK_OTLP_SUM, HK_OTLP_HISTOGRAM, HK_OTLP_SUMMARY };

struct hk_otlp {
  struct hk_sample_lines lines;
  const char *name; /* of the metric */
  size_t name_length;
  const char *wrong; /* error of the metric or the data point; NULL: none */
  uint32_t n_resource;
  uint32_t n; /* tags; those of the resource first */
  struct hk_otlp_tag tags[HK_OTLP_TAGS];
};

/* Contents of a data point. */
struct hk_otlp_point {
  uint64_t time; /* ns; 0: none */
  bool recorded; /* false: the point has no value, which is not an error */
  double value;  /* or sum; NAN: none */
  bool counts;   /* the point has a count, */
  double count;  /* which is this */
};

/* Call in this order: a resource with its tags, a metric, a data point with its tags. Text must stay valid until the data
 * point is put. temporality: enum AggregationTemporality, for metrics that have one. */
void hk_otlp_resource(struct hk_otlp *o);
void hk_otlp_metric(struct hk_otlp *o, const char *name, size_t length, enum hk_otlp_kind kind, int64_t temporality);
void hk_otlp_begin(struct hk_otlp *o);
/* Adds a tag to the resource (in_resource) or the data point; unused tags of a resource are skipped. */
void hk_otlp_text(struct hk_otlp *o, bool in_resource, const char *key, size_t key_length, const char *value, size_t length);
void hk_otlp_whole(struct hk_otlp *o, bool in_resource, const char *key, size_t key_length, int64_t value);
void hk_otlp_real(struct hk_otlp *o, bool in_resource, const char *key, size_t key_length, double value);
void hk_otlp_other(struct hk_otlp *o, bool in_resource); /* a value of a type that a tag cannot have */
/* Appends the line of a data point. False: no room, or out of memory. */
bool hk_otlp_put(struct hk_otlp *o, const struct hk_otlp_point *point);
/* Handles a metric of an unknown kind: counts one rejected point. */
bool hk_otlp_unknown(struct hk_otlp *o);

#endif
