/* The part of a plan that only networks have (model_plan.h): nodes, and what stands at them. Filled in this order by
 * model_plan.c: nodes, points, sensors, end. Functions return 0, or -EINVAL or -ENOMEM with a message. Thread: the caller's. */
#ifndef HK_MODEL_PLAN_NETWORK_H
#define HK_MODEL_PLAN_NETWORK_H

#include "cpu/model/model_plan.h"
#include "cpu/model/plan_lines.h"

struct hk_plan_node_name; /* a node's name and number */

struct hk_plan_network {
  struct hk_network_shape shape;
  struct hk_model_word *node; /* names by number; owned, like the other columns */
  struct hk_plan_node_name *by_name;
  uint32_t *from, *to; /* nodes of an edge */
  uint32_t *at, *edge; /* edges of a node: from at[node] to at[node + 1] */
  uint32_t (*end)[2];  /* shape.end, as the following are shape's */
  double *demand;
  struct hk_network_drive *drive;
  struct hk_network_place *place; /* by sensor */
  uint32_t *driven;               /* by node: 1 + its drive that is a pressure; UINT32_MAX: it has flows */
  uint32_t nodes;
};

/* Numbers the nodes of all edges, in the order of the file; rise: by edge, m. */
int hk_plan_network_nodes(struct hk_plan_network *network, const struct hk_plan_lines *lines, double *rise);
/* Makes the points; pipe: by edge, with its first cell and number of cells, and the cells of all of them. */
int hk_plan_network_points(struct hk_plan_network *network, const struct hk_plan_lines *lines, const struct hk_model_pipe *pipe,
                           const struct hk_pipeline_cell *cell, uint32_t cells);
/* Puts sensor i of the lines: into `place` and, of a boundary, `drive`; and sets its point and the sign of its unit. */
int hk_plan_network_sensor(struct hk_plan_network *network, const struct hk_plan_lines *lines, const struct hk_model_pipe *pipe,
                           uint32_t i, struct hk_model_sensor *out);
/* Checks that each part has a pressure. *transit: as in struct hk_model_line. */
int hk_plan_network_end(struct hk_plan_network *network, const struct hk_plan_lines *lines, double *transit);
void hk_plan_network_free(struct hk_plan_network *network); /* all zero is allowed */

#endif
