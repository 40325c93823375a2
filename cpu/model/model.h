/* The process model: what the checks of lines of pipes read, less what the lines' equations say that they should.
 *
 * A model has the lines of a plan, which know nothing of each other and are computed together (pipelines.h). Driven by its
 * boundaries a line goes on from row to row (pipeline.h); of each check there is the difference
 *
 *   nu = y - what the line has at its place
 *
 * in the sensor's unit. It begins steady, when both boundaries have a value, and is silent for three times the transit. A
 * boundary without a value keeps its last one for `hold` rows, as both do in rows that do not come; then the line is lost, and
 * begins again. A step that fails is a row without output; three in a row, and the line is lost.
 *
 * Friction adapts: all cells' is multiplied by phi, at first 1. With s_i = d y_i / d phi of a steady line and c_i a slow mean of
 * |nu_i - its own slow mean|, each row
 *
 *   phi += rate * sum (s_i / c_i) clip(nu_i / c_i, +-clip) / sum (s_i / c_i)^2,    rate = max(adapt, 1 / (rows + 3 transits))
 *
 * unless the sum of squares is below HK_MODEL_SEEN, where friction is not seen. phi stays, whatever is lost.
 *
 * The same rows give the same bits, on one machine and one kind of pipelines.h, and so does a model that is read from its state.
 * Thread: the owner's. */
#ifndef HK_MODEL_H
#define HK_MODEL_H

#include "cpu/model/pipelines.h"

#define HK_MODEL_SETTLE 96u /* values over which c is a plain mean */
#define HK_MODEL_SEEN 100.0
#define HK_MODEL_FAILURES 3u
#define HK_MODEL_HOLD_MAX 1000000u

struct hk_model_rule {
  double interval; /* s of a row; over 0 */
  double adapt;    /* 0..0.1; 0: friction stays as the file says */
  double clip;     /* of c; over 0 */
  uint32_t hold;   /* rows; up to HK_MODEL_HOLD_MAX */
};

/* What a row was for a line. */
enum hk_model_turn {
  HK_MODEL_WAITS,    /* it has not begun, or was lost before */
  HK_MODEL_BEGINS,   /* it began steady with this row */
  HK_MODEL_SILENT,   /* it computes, and says nothing yet */
  HK_MODEL_SAYS,     /* what the checks differ by */
  HK_MODEL_GAP,      /* the step failed */
  HK_MODEL_MISSED,   /* it is lost: a boundary has had no value for longer than `hold` */
  HK_MODEL_UNSOLVED, /* it is lost: steps failed */
  HK_MODEL_BROKEN,   /* it is lost: the device that computed it failed; it begins again on the host */
};

/* What is known of a check. */
struct hk_model_check {
  double mean, error;           /* slow means of nu, and of its distance from that: c */
  double level, moves, differs; /* slow mean of the sensor; slow means of the squares that it and nu are away from theirs */
  uint64_t values;
};

struct hk_model;

/* 0 and *out, or -ENOMEM, and what the place's kind says where it cannot be opened, with a message. It takes a reference to the
 * plan. */
int hk_model_new(struct hk_model **out, const struct hk_model_plan *plan, const struct hk_model_rule *rule,
                 const struct hk_pipelines_place *place, char *error, size_t size);
void hk_model_free(struct hk_model *model); /* NULL is fine */
/* Bytes of one on the host, with one thread, more or less, without its plan. */
uint64_t hk_model_need(const struct hk_model_plan *plan);
const struct hk_model_plan *hk_model_plan_of(const struct hk_model *model);
/* Where it is computed: what was said, or the host once a device has failed. */
struct hk_pipelines_place hk_model_place(const struct hk_model *model);

/* Takes a row, whose number is larger than that of the one before: y by sensor of the plan, NaN: none. Returns nu, by sensor,
 * until the next call: NaN: there is none. */
const double *hk_model_row(struct hk_model *model, int64_t row, const double *y);
enum hk_model_turn hk_model_turn_of(const struct hk_model *model, uint32_t line); /* the last row */

double hk_model_friction(const struct hk_model *model, uint32_t line); /* phi */
const struct hk_model_check *hk_model_check_of(const struct hk_model *model, uint32_t sensor);
/* How much of a check's movement the model explains: 1: all; 0 and less: none; NaN: it has said nothing of it yet. */
double hk_model_explains(const struct hk_model *model, uint32_t sensor);
/* The boundary that had no value when a line was lost (0 or 1 of the line's), and the pipe at which equations were singular. */
uint32_t hk_model_missing(const struct hk_model *model, uint32_t line);
const struct hk_model_pipe *hk_model_fault(const struct hk_model *model, uint32_t line);

/* All that it knows, as bytes in memory that is aligned to 8; as many as hk_model_state_size says, a multiple of 8.
 * hk_model_read: into a model that is new. False: it is no state of this plan. */
size_t hk_model_state_size(const struct hk_model_plan *plan);
void hk_model_write(const struct hk_model *model, void *state);
bool hk_model_read(struct hk_model *model, const void *state, size_t size);

#endif
