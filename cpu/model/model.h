/* The process model: readings of the checks on lines of pipes, less the values by the equations of the lines.
 *
 * A model has the lines of a plan, which are independent of each other and computed together (pipelines.h). A line is advanced
 * from row to row (pipeline.h), driven by its boundaries; each check has the difference
 *
 *   nu = y - the value of the line at the place of the check
 *
 * in the sensor's unit. A line begins in the steady state, when all its boundaries have a value, and gives no output for three
 * times the transit. A boundary without a value keeps its last one for `hold` rows, and so do all in missing rows; then the line
 * is lost and begins again. What follows holds for a network (network.h), too, which is one line. A row whose step fails has no
 * output; after three in succession the line is lost.
 *
 * A heat line is silent for one and a half times as long as its water takes from end to end. In what follows its friction is the
 * loss of heat.
 *
 * A process given as matrices (matrix.h) is one line, too. It is silent for three times its age, and nothing of it adapts.
 *
 * Friction adapts: that of all cells is multiplied by phi, initially 1. With s_i = d y_i / d phi of a steady line and c_i a slow
 * mean of |nu_i - its own slow mean|, each row
 *
 *   phi += rate * sum (s_i / c_i) clip(nu_i / c_i, +-clip) / sum (s_i / c_i)^2,    rate = max(adapt, 1 / (rows + 3 transits))
 *
 * unless the sum of squares is below HK_MODEL_SEEN, where friction is not observable. phi is kept when a line is lost.
 *
 * On one machine and one kind of pipelines.h the same rows give the same bits, also in a model that was read from its state.
 * Thread: the owner's. */
#ifndef HK_MODEL_H
#define HK_MODEL_H

#include "cpu/model/pipelines.h"

#define HK_MODEL_SETTLE 96u /* values over which c is a plain mean */
#define HK_MODEL_SEEN 100.0
#define HK_MODEL_RECENT 60u
#define HK_MODEL_PAST 4000u
#define HK_MODEL_FAILURES 3u
#define HK_MODEL_HOLD_MAX 1000000u

struct hk_model_rule {
  double interval; /* s from row to row; > 0 */
  double adapt;    /* 0..0.1; 0: friction is that of the file */
  double clip;     /* in c; > 0 */
  uint32_t hold;   /* rows; up to HK_MODEL_HOLD_MAX */
};

/* The effect of a row on a line. */
enum hk_model_turn {
  HK_MODEL_WAITS,    /* the line has not begun, or was lost before */
  HK_MODEL_BEGINS,   /* the line began in the steady state with this row */
  HK_MODEL_SILENT,   /* the line computes, but gives no output yet */
  HK_MODEL_SAYS,     /* the line gives the differences of its checks */
  HK_MODEL_GAP,      /* the step failed */
  HK_MODEL_MISSED,   /* the line is lost: a boundary had no value for longer than `hold` */
  HK_MODEL_UNSOLVED, /* the line is lost: steps failed */
  HK_MODEL_BROKEN,   /* the line is lost: its device failed; the line begins again on the host */
};

/* Statistics of a check. */
struct hk_model_check {
  double mean, error;           /* slow means of nu, and of |nu - mean|: c */
  double level, moves, differs; /* slow means: of the sensor y, of (y - level)^2, of (nu - mean)^2 */
  double recent, past;          /* means of all nu, with weights of 1 / HK_MODEL_RECENT and HK_MODEL_PAST: linear, so that what
                                 * checks depart by keeps its proportions */
  uint64_t values;
};

struct hk_model;

/* Creates a model, which takes a reference to the plan. Returns 0 and *out, or -ENOMEM or the errors of `open` of the place's
 * kind, with a message. */
int hk_model_new(struct hk_model **out, const struct hk_model_plan *plan, const struct hk_model_rule *rule,
                 const struct hk_pipelines_place *place, char *error, size_t size);
void hk_model_free(struct hk_model *model); /* NULL is fine */
/* Approximate bytes of a model on the host with one thread, without its plan. */
uint64_t hk_model_need(const struct hk_model_plan *plan);
const struct hk_model_plan *hk_model_plan_of(const struct hk_model *model);
/* Where the model is computed: the place given to hk_model_new, or the host once a device has failed. */
struct hk_pipelines_place hk_model_place(const struct hk_model *model);

/* Processes a row; row numbers must ascend. y: by sensor of the plan; NaN: no value. Returns nu by sensor, valid until the next
 * call; NaN: no output. */
const double *hk_model_row(struct hk_model *model, int64_t row, const double *y);
enum hk_model_turn hk_model_turn_of(const struct hk_model *model, uint32_t line); /* of the last row */

/* Seconds for which a line is silent after it begins; of a heat line, by its last flow. */
double hk_model_silence(const struct hk_model *model, uint32_t line);
double hk_model_friction(const struct hk_model *model, uint32_t line); /* phi */
const struct hk_model_check *hk_model_check_of(const struct hk_model *model, uint32_t sensor);
/* Readings of the last row, by sensor: NaN: none. hk_model_seen: the value of the line at the place of a sensor, in its unit;
 * NaN: the line did not step in the last row, or none was processed since the model was made. */
double hk_model_reading(const struct hk_model *model, uint32_t sensor);
double hk_model_seen(const struct hk_model *model, uint32_t sensor);
/* Copies the s and q of all points of a line that runs. False: it does not run, its device failed, or has over 64 MiB of
 * lines. */
bool hk_model_points_of(const struct hk_model *model, uint32_t line, double *state);
/* The network of a model, whose work memory questions about its derivatives use; NULL: it has lines. */
struct hk_network *hk_model_network(const struct hk_model *model);
bool hk_model_runs(const struct hk_model *model, uint32_t line);
/* Share of the variance of a check that the model explains: 1: all; <= 0: none; NaN: no output yet. */
double hk_model_explains(const struct hk_model *model, uint32_t sensor);
/* Why a line was lost: which sensor of the plan, one of its boundaries, had no value; and the pipe at which the equations were
 * singular, or (NULL: there are no pipes) the point, or unknown. */
uint32_t hk_model_missing(const struct hk_model *model, uint32_t line);
const struct hk_model_pipe *hk_model_fault(const struct hk_model *model, uint32_t line);
uint32_t hk_model_singular(const struct hk_model *model, uint32_t line);

#endif
