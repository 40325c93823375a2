/* Models of fields: see attached_model.h. */
#include "cpu/field/attached_model.h"
#include "cpu/model/model_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hk_field_model_keep(struct hk_field_model *m, const void *state, size_t size)
{
  m->state = malloc(size + 1);
  if (!m->state)
    return -ENOMEM;
  memcpy(m->state, state, size);
  m->size = size;
  return 0;
}

int hk_field_model_attach(struct hk_field_model *m, const struct hk_model_plan *plan, const struct hk_model_rule *rule,
                          const struct hk_pipelines_place *place, char *error, size_t size)
{
  double *value = calloc(plan->sensors, sizeof *value);
  snprintf(error, size, "out of memory");
  int status = value ? hk_model_new(&m->is, plan, rule, place, error, size) : -ENOMEM;
  if (status == 0 && m->size > 0 && !hk_model_read(m->is, m->state, m->size)) {
    hk_model_free(m->is);
    m->is = NULL;
    snprintf(error, size, "what was saved is of another model");
    status = -EBADMSG;
  }
  if (status != 0) {
    free(value);
    return status;
  }
  free(m->state);
  *m = (struct hk_field_model){ .is = m->is, .size = hk_model_state_size(plan), .value = value };
  return 0;
}

void hk_field_model_write(const struct hk_field_model *m, void *state)
{
  if (m->is)
    hk_model_write(m->is, state);
  else if (m->size > 0)
    memcpy(state, m->state, m->size);
}

void hk_field_model_close(struct hk_field_model *m)
{
  hk_model_free(m->is);
  free(m->value);
  free(m->state);
}
