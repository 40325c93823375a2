/* The model of a field. When a field is read from bytes, the state of its model is known before the plan. Thread: the field's. */
#ifndef HK_FIELD_ATTACHED_MODEL_H
#define HK_FIELD_ATTACHED_MODEL_H

#include "cpu/model/model.h"

/* All zero: neither plan nor state is known. */
struct hk_field_model {
  struct hk_model *is; /* NULL: the plan is not known yet */
  uint8_t *state;      /* the state to continue from once the plan is known, or NULL */
  size_t size;         /* bytes of the model's state */
  double *value;       /* values of the plan's sensors in a row */
};

/* Keeps a copy of a state until the plan is known. Returns 0 or -ENOMEM. */
int hk_field_model_keep(struct hk_field_model *model, const void *state, size_t size);
/* Makes the model of a plan, and continues from the kept state. Returns 0; -EBADMSG: the state is not of this plan; or an error
 * of hk_model_new; with a message. */
int hk_field_model_attach(struct hk_field_model *model, const struct hk_model_plan *plan, const struct hk_model_rule *rule,
                          const struct hk_pipelines_place *place, char *error, size_t size);
/* Writes model->size bytes to memory aligned to 8. */
void hk_field_model_write(const struct hk_field_model *model, void *state);
void hk_field_model_close(struct hk_field_model *model);

#endif
