/* Friction that adapts (model.h), and what it does to the checks of a model. Thread: that of the model. */
#ifndef HK_MODEL_FRICTION_H
#define HK_MODEL_FRICTION_H

#include <stdint.h>

struct hk_model;
struct hk_model_course;

/* Sums what the checks say of friction after a step. */
void hk_model_learn(const struct hk_model *model);
/* Changes the friction of a line by that. silence: hk_model_silence of the line, s. */
void hk_model_adapt(const struct hk_model *model, uint32_t line, double silence);
/* Counts a row with output. friction: with which its step was made. */
void hk_model_count_friction(struct hk_model_course *line, double friction);

/* By how much phi is more of late than in the past: the difference of means with the weights of `recent` and `past`. */
double hk_model_friction_moved(const struct hk_model *model, uint32_t line);
/* The derivative of a sensor by phi, as if its line were steady as in the last row, in its unit; of a network 0 where nothing
 * adapts. */
double hk_model_slope(const struct hk_model *model, uint32_t sensor);

#endif
