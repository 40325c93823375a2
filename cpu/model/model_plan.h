/* What a model file says: the pipes of a line, or of several, and the sensors on them.
 *
 *   fluid  DENSITY                                   kg/m^3; 1000 unless said
 *   units  Pa|kPa|bar|psi m3/s|m3/h|l/s              of all sensors; Pa and m3/s unless said
 *   line   NAME                                      what follows, up to the next one, is of this line
 *   edge   A B LENGTH DIAMETER FRICTION WAVE CELLS   a pipe from node A to node B: m, m, Darcy's factor, m/s, a whole number
 *   height NODE HEIGHT                               m; 0 unless said, and pipes are straight
 *   sensor NAME p|q NODE boundary|check              a pressure, or the flow along the line
 *
 * Words are divided by blanks and tabs; # begins a comment. A file with one line need not name it. Pipes of a line stand
 * one after the other, each begins where the one before ends, and flows count from the first node to the last; names of nodes are
 * the line's own. Each end of a line has one boundary, at least one of which is a pressure.
 *
 * A plan never changes once it was read. Thread: any. */
#ifndef HK_MODEL_PLAN_H
#define HK_MODEL_PLAN_H

#include "cpu/model/pipeline.h"

#include <stdbool.h>
#include <stddef.h>

#define HK_MODEL_BYTES ((size_t)1 << 24) /* of a file, at most */
#define HK_MODEL_LINES_MAX 65536
#define HK_MODEL_PIPES_MAX 65536
#define HK_MODEL_LINE_PIPES_MAX 4096    /* of a line */
#define HK_MODEL_CELLS_MAX 100000       /* of a line */
#define HK_MODEL_ALL_CELLS_MAX 16777216 /* of all of them */
#define HK_MODEL_SENSORS_MAX 65536
#define HK_MODEL_NONE UINT32_MAX

/* A word of the file; no 0 stands behind it. */
struct hk_model_word {
  const char *text;
  uint32_t length;
};

struct hk_model_pipe {
  struct hk_model_word from, to; /* nodes */
  uint32_t first, cells;         /* of the line */
  double length, area;           /* m, m^2 */
  double loss;                   /* of the line's pipes to its end, as struct hk_model_line has it */
};

struct hk_model_sensor {
  struct hk_model_word name;
  uint32_t line;
  uint32_t point; /* of the line */
  bool flow;      /* else a pressure */
  bool boundary;  /* else a check */
  double unit;    /* Pa or m^3/s that one of its units is */
  double loss;    /* of the line's pipes before it, as struct hk_model_line has it */
};

struct hk_model_line {
  struct hk_model_word name; /* length 0: the file does not name it */
  uint32_t pipe, pipes;      /* of the plan: the first, and how many */
  uint32_t cell, cells;      /* likewise */
  uint32_t boundary[2];      /* sensors: of the first node, of the last one */
  double impedance;          /* pipeline.h */
  double loss;               /* Pa that friction takes of the whole line at 1 m^3/s, which grows as the flow squared */
  double transit;            /* s that a wave takes from end to end */
  double shortest;           /* s that it takes through the shortest cell */
};

struct hk_model_plan {
  const struct hk_model_line *line;
  const struct hk_model_pipe *pipe;
  const struct hk_model_sensor *sensor; /* in the order of the file */
  const struct hk_pipeline_cell *cell;
  uint32_t lines, pipes, sensors, cells;
  uint32_t longest; /* cells of the line that has most */
  uint32_t mark;    /* two plans that differ do not share it, but for one in four billion; never 0 */
};

/* hk_model_plan_parse: of a text in memory. 0 and *out with one reference, or a negative errno with a message, which names line
 * and column. */
int hk_model_plan_read(const struct hk_model_plan **out, const char *path, char *error, size_t size);
int hk_model_plan_parse(const struct hk_model_plan **out, const char *text, size_t length, char *error, size_t size);
const struct hk_model_plan *hk_model_plan_hold(const struct hk_model_plan *plan); /* one reference more */
void hk_model_plan_release(const struct hk_model_plan *plan);                     /* NULL is allowed */

/* The sensor of a name; HK_MODEL_NONE: it is none of its. */
uint32_t hk_model_plan_find(const struct hk_model_plan *plan, const char *name, size_t length);
/* The pipe in which a point of a line lies; of two that meet there the first. */
const struct hk_model_pipe *hk_model_plan_pipe(const struct hk_model_plan *plan, uint32_t line, uint32_t point);

/* Points of a line, and of all lines together; and of those before a line, which stand there first where all are in one column.
 */
static inline uint32_t hk_model_points(const struct hk_model_line *line)
{
  return line->cells + 1;
}

static inline uint32_t hk_model_all_points(const struct hk_model_plan *plan)
{
  return plan->cells + plan->lines;
}

static inline uint32_t hk_model_first_point(const struct hk_model_plan *plan, uint32_t line)
{
  return plan->line[line].cell + line;
}

#endif
