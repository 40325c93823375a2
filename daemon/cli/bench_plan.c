/* What hankel bench measures: see bench_plan.h. */
#include "daemon/cli/bench_plan.h"

#include "cpu/backend/warmup.h"
#include "daemon/cli/options.h"
#include "daemon/config/config_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void bench_plan_print_fault(void *arg, const char *message)
{
  (void)arg;
  fprintf(stderr, "%s\n", message);
}

int hk_bench_plan_read(struct hk_bench_plan *plan, char **argv, const char *path)
{
  if (hk_config_load(&plan->config, path, HK_CONFIG_PIPE, bench_plan_print_fault, NULL) != 0)
    return HK_EXIT_FAILED; /* each fault was printed */
  const struct hk_config *config = &plan->config;
  plan->path = path;
  while (plan->n < config->n_detectors && !config->detectors[plan->n].group) /* those of groups and fields are the last */
    plan->n++;
  plan->detectors = calloc(plan->n + 1, sizeof *plan->detectors);
  if (!plan->detectors)
    return hk_failed(argv, "out of memory");
  if (plan->n == 0)
    return hk_failed(argv, "%s: no detector to measure", path);
  for (uint32_t i = 0; i < plan->n; i++) {
    plan->detectors[i] = config->detectors[i].detector;
    plan->sections += !config->detectors[i].derived;
    if (plan->detectors[i].interval > 0) /* else points that come faster would be repeated, and slower ones holes */
      plan->detectors[i].interval = HK_LOAD_STEP;
  }
  return 0;
}

int hk_bench_plan_parse(struct hk_bench_plan *plan, char **argv, const char *keys)
{
  char error[512];
  plan->detectors = calloc(1, sizeof *plan->detectors);
  if (!plan->detectors)
    return hk_failed(argv, "out of memory");
  plan->n = plan->sections = 1;
  return hk_detector_parse(keys, plan->detectors, error, sizeof error) < 0 ? hk_usage(argv, "%s", error) : 0;
}

void hk_bench_plan_free(struct hk_bench_plan *plan)
{
  hk_config_free(&plan->config);
  free(plan->detectors);
  *plan = (struct hk_bench_plan){ 0 };
}

uint32_t hk_bench_plan_series(const struct hk_bench_plan *plan, uint32_t sensors)
{
  return (sensors + plan->sections - 1) / plan->sections * plan->n;
}

uint32_t hk_bench_plan_sensors(const struct hk_bench_plan *plan, uint32_t series)
{
  return series / plan->n * plan->sections;
}

bool hk_bench_plan_scores_all(const struct hk_bench_plan *plan)
{
  for (uint32_t i = 0; i < plan->n; i++)
    if (plan->detectors[i].stride != 1 || plan->detectors[i].algorithm == HK_ALGORITHM_GRAPH)
      return false;
  return true;
}

void hk_bench_plan_print(const struct hk_bench_plan *plan, const struct hk_load *load)
{
  const struct hk_config *config = &plan->config;
  const uint32_t each = load->sensors / plan->n;
  printf("%s: %u sensors, %u series", plan->path, hk_bench_plan_sensors(plan, load->sensors), load->sensors);
  if (plan->sections > 1)
    printf("; each of %u sections has %u sensors", plan->sections, each);
  putchar('\n');
  for (uint32_t i = 0; i < plan->n; i++) {
    const struct hk_config_detector *d = &config->detectors[i];
    const uint64_t need = load->backend->ops->need(load->backend, i, each);
    printf("  %s: %s, match %s, window %s%u, %" PRIu64 " bytes a sensor\n", d->name, hk_algorithm_name(d->detector.algorithm),
           d->match, d->detector.search ? "auto, at most " : "", hk_warmup_widest(&d->detector), need / each);
  }
  for (uint32_t i = 0; i < config->n_groups; i++)
    printf("  %s: a group, left out: a thread of the daemon computes it, not the backend\n", config->groups[i].name);
  for (uint32_t i = 0; i < config->n_fields; i++)
    printf("  %s: a field, left out: a thread of the daemon computes it, not the backend\n", config->fields[i].name);
  if (load->sensors > config->max_sensors)
    printf("  the daemon would want max_sensors = %u for them; the file has %u\n", load->sensors, config->max_sensors);
  if (config->memory > 0 && load->need > config->memory)
    printf("  the daemon would want memory = %.1fGiB for them; the file has %.1fGiB\n", (double)load->need / (1u << 30),
           (double)config->memory / (1u << 30));
}
