/* The model of a field: its state is known before its plan is, where a field is read from bytes. Thread: the field's. */
#ifndef HK_FIELD_ATTACHED_MODEL_H
#define HK_FIELD_ATTACHED_MODEL_H

#include "cpu/model/model.h"

/* All zero: neither is known. */
struct hk_field_model {
  struct hk_model *is; /* NULL: the plan is not known */
  uint8_t *state;      /* and then, what it is to go on from, or NULL */
  size_t size;         /* bytes of its state */
  double *value;       /* what the sensors of the plan have in a row */
};

/* Keeps a copy of a state until the plan is known. 0 or -ENOMEM. */
int hk_field_model_keep(struct hk_field_model *model, const void *state, size_t size);
/* The plan is known now. 0, -EBADMSG: the state is none of it; or what hk_model_new says, with a message. */
int hk_field_model_attach(struct hk_field_model *model, const struct hk_model_plan *plan, const struct hk_model_rule *rule,
                          const struct hk_pipelines_place *place, char *error, size_t size);
/* Writes model->size bytes, to memory that is aligned to 8. */
void hk_field_model_write(const struct hk_field_model *model, void *state);
void hk_field_model_close(struct hk_field_model *model);

#endif
