/* A network as the only line of its plan (pipelines.h). Thread: the owner's. */
#ifndef HK_PIPELINES_NETWORK_H
#define HK_PIPELINES_NETWORK_H

#include "cpu/model/pipelines_kind.h"

/* The kind of networks, which the host alone computes, with one thread (pipelines_network.c). */
extern const struct hk_pipelines_kind hk_pipelines_network;
struct hk_network *hk_pipelines_network_of(struct hk_pipelines *lines); /* of this kind */
/* The steady state of a plan's network. drive: as hk_network_steady takes it; state: hk_network_numbers. Returns 0, or the errors
 * of hk_network_open and hk_network_steady. */
int hk_pipelines_settle(const struct hk_model_plan *plan, const double *drive, double friction, double *state);
/* The derivatives of a network's sensors, in their units, by the friction factor, as if it were steady with its present flows; by
 * sensor of the plan. Returns 0, -EDOM or -ERANGE. */
int hk_pipelines_slopes(struct hk_pipelines *lines, double friction, double *slope);
/* What a network's solver needs; bytes: of all that is computed with. Returns 0, -ENOMEM or -E2BIG. */
int hk_pipelines_facts(const struct hk_model_plan *plan, struct hk_sparse_facts *facts);

#endif
