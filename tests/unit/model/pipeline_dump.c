/* Simulates a line of pipes for pipeline_oracle.py: reads a model file, then `ticks DT`, then two values a line, those of the
 * boundaries; prints p and q of all points, first of the steady state at the first values, then after each line. */
#include "cpu/model/model_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hk_pipeline_end end_of(const struct hk_model_plan *p, uint32_t k, double value)
{
  const struct hk_model_sensor *s = &p->sensor[p->line->boundary[k]];
  return (struct hk_pipeline_end){ !s->flow, s->flow, 0, value * s->unit };
}

static void print(const struct hk_pipeline *line)
{
  for (uint32_t i = 0; i < line->points; i++)
    printf("%.17g %.17g ", hk_pipeline_pressure(line, i), hk_pipeline_flow(line, i));
  printf("\n");
}

int main(void)
{
  char text[65536], line[256], error[256];
  size_t n = 0;
  double dt = 0, value[2];
  const struct hk_model_plan *plan;
  struct hk_pipeline pipes;
  while (fgets(line, sizeof line, stdin) && sscanf(line, "ticks %lf", &dt) != 1 && n + sizeof line < sizeof text) {
    memcpy(text + n, line, strlen(line));
    n += strlen(line);
  }
  if (hk_model_plan_parse(&plan, text, n, error, sizeof error) != 0) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  int status = hk_pipeline_open(&pipes, plan->cell, plan->cells, plan->line->impedance);
  for (uint32_t tick = 0; status == 0 && scanf("%lf %lf", &value[0], &value[1]) == 2; tick++) {
    const struct hk_pipeline_end end[2] = { end_of(plan, 0, value[0]), end_of(plan, 1, value[1]) };
    if (tick == 0 && (status = hk_pipeline_steady(&pipes, end, 1)) == 0)
      print(&pipes);
    if (status == 0 && (status = hk_pipeline_step(&pipes, end, NULL, dt, 1)) == 0)
      print(&pipes);
    if (status == 0 && pipes.error > HK_BAND_ERROR)
      status = 1;
  }
  hk_pipeline_close(&pipes);
  hk_model_plan_release(plan);
  return status != 0;
}
