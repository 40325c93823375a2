/* What is known of the members of a field, in numbers: see count.h. */
#include "cpu/field/count.h"
#include "cpu/field/arma.h"
#include "cpu/field/field_internal.h"
#include "cpu/field/hoelder.h"

static struct hk_field_count count_checks(const struct hk_field *f)
{
  struct hk_field_count count = { 0 };
  for (uint32_t i = 0; i < f->top; i++) {
    const uint32_t sensor = hk_field_sensor_of(f, i);
    const uint64_t values = sensor == HK_MODEL_NONE ? 0 : hk_model_check_of(f->model.is, sensor)->values;
    count.settled += values >= HK_MODEL_SETTLE;
    count.explained += values > 0;
  }
  return count;
}

static struct hk_field_count count_line(const struct hk_field *f)
{
  struct hk_field_count count = { 0 };
  hk_offload_look(f->offload);
  for (uint32_t i = 0; i < f->top; i++) {
    const uint32_t j = hk_field_place_of(f, i);
    count.settled += j != HK_FOCUS_NONE && f->line.is->f.errors[j] >= HK_FOCUS_SETTLE;
    count.explained += j != HK_FOCUS_NONE && f->line.is->f.any && !isnan(f->line.is->f.now.value[j]);
  }
  return count;
}

static struct hk_field_count count_filters(const struct hk_field *f)
{
  struct hk_field_count count = { 0 };
  for (uint32_t i = 0; i < f->top; i++) {
    const bool full = f->member[i].status == HK_FIELD_MEMBER && f->filter[i].last.n == hk_field_filter_rule(&f->rule).samples;
    count.settled += full;
    count.explained += full;
  }
  return count;
}

static struct hk_field_count count_exponents(const struct hk_field *f)
{
  struct hk_field_count count = { 0 };
  for (uint32_t i = 0; i < f->top; i++) {
    const bool full = f->member[i].status == HK_FIELD_MEMBER && f->hoelder[i].last.n == HK_HOELDER_SAMPLES;
    count.settled += full;
    count.explained += f->arma ? full && (f->arma[i].has & HK_ARMA_SHORT_FIT) : full;
  }
  return count;
}

struct hk_field_count hk_field_count(const struct hk_field *f)
{
  struct hk_field_count count = { 0 };
  if (f->rule.kind == HK_FIELD_FOCUS)
    return count_line(f);
  if (f->rule.kind == HK_FIELD_MODEL)
    return count_checks(f);
  if (hk_field_filters(&f->rule))
    return count_filters(f);
  if (hk_field_alone(&f->rule))
    return count_exponents(f);
  hk_offload_look(f->offload);
  for (uint32_t i = 0; i < f->top; i++) {
    count.settled += f->residual.settled[i] == HK_RESIDUAL_SETTLE;
    count.explained += f->residual.made[i];
    count.refused += f->residual.refused[i];
  }
  return count;
}
