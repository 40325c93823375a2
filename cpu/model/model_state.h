/* The state of a model as bytes. Thread: that of the model. */
#ifndef HK_MODEL_STATE_H
#define HK_MODEL_STATE_H

#include "cpu/model/model.h"

/* The state of a model, as bytes in memory aligned to 8. hk_model_state_size: their number, a multiple of 8. hk_model_read: reads
 * the state into a new model; false: it is not a state of this plan. */
size_t hk_model_state_size(const struct hk_model_plan *plan);
void hk_model_write(const struct hk_model *model, void *state);
bool hk_model_read(struct hk_model *model, const void *state, size_t size);

#endif
