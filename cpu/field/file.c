/* Files of fields: see file.h. */
#include "cpu/field/file.h"

int hk_field_file_read(struct hk_field_file *out, const struct hk_field_rule *rule, char *error, size_t size)
{
  *out = (struct hk_field_file){ 0 };
  if (rule->kind == HK_FIELD_MODEL)
    return hk_model_plan_read(&out->plan, rule->file, error, size);
  return rule->neighbours == HK_FIELD_AUTO ? 0
                                           : hk_field_graph_read(&out->graph, rule->neighbours, rule->q, rule->file, error, size);
}

struct hk_field_file hk_field_file_hold(const struct hk_field_file *file)
{
  return (struct hk_field_file){ file->graph ? hk_field_graph_hold(file->graph) : NULL,
                                 file->plan ? hk_model_plan_hold(file->plan) : NULL };
}

void hk_field_file_release(struct hk_field_file *file)
{
  hk_field_graph_release(file->graph);
  hk_model_plan_release(file->plan);
  *file = (struct hk_field_file){ 0 };
}

uint32_t hk_field_file_mark(const struct hk_field_file *file)
{
  return file->graph ? hk_field_graph_mark(file->graph) : file->plan ? file->plan->mark : 0;
}
