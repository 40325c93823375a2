/* A network as the only line of its plan: see pipelines_network.h. */
#include "cpu/model/pipelines_network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hk_pipelines {
  const struct hk_model_plan *plan; /* the owner's */
  struct hk_network network;
};

static void close_network(struct hk_pipelines *p)
{
  if (!p)
    return;
  hk_network_close(&p->network);
  free(p);
}

static int open_network(struct hk_pipelines **out, const struct hk_model_plan *plan, uint32_t number, char *error, size_t size)
{
  struct hk_pipelines *p = calloc(1, sizeof *p);
  (void)number;
  const int status = p ? hk_network_open(&p->network, plan->network, plan->line->impedance, NULL) : -ENOMEM;
  if (status != 0) {
    snprintf(error, size, status == -E2BIG ? "the network is too large for its solver" : "out of memory");
    free(p);
    return status;
  }
  p->plan = plan;
  *out = p;
  return 0;
}

static int step_network(struct hk_pipelines *p, struct hk_pipelines_line *line, double dt, const struct hk_pipelines_seen *seen)
{
  line->status = hk_network_step(&p->network, line->drive, NULL, dt, line->friction);
  line->singular = 0;
  hk_network_read(&p->network, p->plan->place, p->plan->sensors, seen->value);
  return 0;
}

static int put_network(struct hk_pipelines *p, uint32_t line, const double *state)
{
  (void)line;
  memcpy(p->network.state, state, hk_network_numbers(p->plan->network) * sizeof *state);
  return 0;
}

static int get_network(struct hk_pipelines *p, double *state)
{
  memcpy(state, p->network.state, hk_network_numbers(p->plan->network) * sizeof *state);
  return 0;
}

static int get_only(struct hk_pipelines *p, uint32_t line, double *state)
{
  (void)line;
  return get_network(p, state);
}

const struct hk_pipelines_kind hk_pipelines_network = { open_network, close_network, step_network, put_network,
                                                        get_network,  get_only,      false };

struct hk_network *hk_pipelines_network_of(struct hk_pipelines *p)
{
  return &p->network;
}

int hk_pipelines_settle(const struct hk_model_plan *plan, const double *drive, double friction, double *state)
{
  struct hk_network network;
  int status = hk_network_open(&network, plan->network, plan->line->impedance, NULL);
  if (status != 0)
    return status;
  status = hk_network_steady(&network, drive, friction);
  if (status == 0)
    memcpy(state, network.state, hk_network_numbers(plan->network) * sizeof *state);
  hk_network_close(&network);
  return status;
}

int hk_pipelines_slopes(struct hk_pipelines *p, double friction, double *slope)
{
  int status = hk_network_linearise(&p->network, friction);
  if (status == 0)
    status = hk_network_by_friction(&p->network, p->plan->place, p->plan->sensors, slope);
  for (uint32_t i = 0; i < p->plan->sensors && status == 0; i++)
    slope[i] /= p->plan->sensor[i].unit;
  return status;
}

int hk_pipelines_facts(const struct hk_model_plan *plan, struct hk_sparse_facts *facts)
{
  struct hk_network network;
  const int status = hk_network_open(&network, plan->network, plan->line->impedance, NULL);
  if (status != 0)
    return status;
  *facts = hk_sparse_facts(network.matrix);
  facts->bytes = hk_network_bytes(&network);
  hk_network_close(&network);
  return 0;
}
