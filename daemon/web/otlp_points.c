/* See otlp_points.h. */
#include "daemon/web/otlp_points.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool otlp_points_is(const char *text, size_t length, const char *name)
{
  return length == strlen(name) && memcmp(text, name, length) == 0;
}

void hk_otlp_resource(struct hk_otlp *o)
{
  o->n = o->n_resource = 0;
}

void hk_otlp_metric(struct hk_otlp *o, const char *name, size_t length, enum hk_otlp_kind kind, int64_t temporality)
{
  o->name = name;
  o->name_length = length;
  o->wrong = (kind == HK_OTLP_SUM || kind == HK_OTLP_HISTOGRAM) && temporality != 1 && temporality != 2
                 ? "its metric says neither delta nor cumulative"
                 : NULL;
}

void hk_otlp_begin(struct hk_otlp *o)
{
  o->n = o->n_resource;
  o->lines.wrong = NULL;
}

/* The next tag, whose key is set already; NULL: the tag is not used. */
static struct hk_otlp_tag *otlp_points_next(struct hk_otlp *o, bool in_resource, const char *key, size_t length)
{
  if (in_resource && !otlp_points_is(key, length, "service.name") && !otlp_points_is(key, length, "service.instance.id") &&
      !otlp_points_is(key, length, "host.name"))
    return NULL;
  if (o->n == HK_OTLP_TAGS) {
    o->lines.wrong = "it has more than 64 attributes";
    return NULL;
  }
  struct hk_otlp_tag *tag = &o->tags[o->n++];
  if (in_resource)
    o->n_resource = o->n;
  tag->key = key;
  tag->key_length = length;
  tag->value = tag->text;
  return tag;
}

void hk_otlp_text(struct hk_otlp *o, bool in_resource, const char *key, size_t key_length, const char *value, size_t length)
{
  struct hk_otlp_tag *tag = otlp_points_next(o, in_resource, key, key_length);
  if (!tag)
    return;
  tag->value = value;
  tag->length = length;
}

void hk_otlp_whole(struct hk_otlp *o, bool in_resource, const char *key, size_t key_length, int64_t value)
{
  struct hk_otlp_tag *tag = otlp_points_next(o, in_resource, key, key_length);
  if (tag)
    tag->length = (size_t)snprintf(tag->text, sizeof tag->text, "%" PRId64, value);
}

void hk_otlp_real(struct hk_otlp *o, bool in_resource, const char *key, size_t key_length, double value)
{
  struct hk_otlp_tag *tag = otlp_points_next(o, in_resource, key, key_length);
  if (tag)
    tag->length = (size_t)snprintf(tag->text, sizeof tag->text, "%.17g", value);
}

void hk_otlp_other(struct hk_otlp *o, bool in_resource)
{
  if (!in_resource)
    o->lines.wrong = "an attribute is neither text nor a number";
}

static int by_key(const void *a, const void *b)
{
  const struct hk_otlp_tag *x = *(const struct hk_otlp_tag *const *)a, *y = *(const struct hk_otlp_tag *const *)b;
  const size_t least = x->key_length < y->key_length ? x->key_length : y->key_length;
  const int order = least > 0 ? memcmp(x->key, y->key, least) : 0;
  return order != 0                       ? order
         : x->key_length != y->key_length ? (x->key_length > y->key_length) - (x->key_length < y->key_length)
                                          : (x > y) - (x < y);
}

/* The key of the data point's series. */
static void otlp_points_put_key(struct hk_otlp *o)
{
  const struct hk_otlp_tag *tags[HK_OTLP_TAGS];
  const char *wrong = o->wrong ? o->wrong : o->lines.wrong;
  for (uint32_t i = 0; i < o->n; i++)
    tags[i] = &o->tags[i];
  qsort(tags, o->n_resource, sizeof *tags, by_key);
  qsort(tags + o->n_resource, o->n - o->n_resource, sizeof *tags, by_key);
  hk_sample_lines_name(&o->lines, o->name, o->name_length);
  for (uint32_t i = 0; i < o->n; i++)
    hk_sample_lines_label(&o->lines, tags[i]->key, tags[i]->key_length, tags[i]->value, tags[i]->length);
  if (wrong)
    o->lines.wrong = wrong;
}

bool hk_otlp_put(struct hk_otlp *o, const struct hk_otlp_point *point)
{
  if (!point->recorded)
    return hk_sample_lines_refuse(&o->lines, NULL);
  if (point->time == 0 || point->time > INT64_MAX)
    return hk_sample_lines_refuse(&o->lines, point->time ? "its time is past the year 2262" : "it has no time");
  otlp_points_put_key(o);
  return hk_sample_lines_add(&o->lines, point->counts ? &point->count : NULL, point->counts ? "sum" : "value", point->value,
                             (int64_t)point->time);
}

bool hk_otlp_unknown(struct hk_otlp *o)
{
  return hk_sample_lines_refuse(&o->lines, "its metric is no gauge, sum, histogram or summary");
}
