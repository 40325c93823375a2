/* Limits of the system. */
#include "daemon/server/resource_limits.h"

#include "daemon/intake/chunk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#define A_POINT 24u   /* bytes of a waiting point: slot, time, value, source */
#define A_SENSOR 100u /* approximate bytes of a sensor's name and slot on the host */
#define LOOPS_AUTO 16 /* maximum number of event loops by default */

uint32_t hk_rlimit_connections(const struct hk_config *config, uint32_t spare, struct hk_log *log)
{
  const rlim_t wanted = (rlim_t)config->max_connections + spare;
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted)
    return config->max_connections;
  const struct rlimit enough = { wanted, files.rlim_max > wanted ? files.rlim_max : wanted };
  if (setrlimit(RLIMIT_NOFILE, &enough) == 0) /* above the hard limit only with privileges */
    return config->max_connections;
  files.rlim_cur = files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files); /* the resulting limit is read next */
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted)
    return config->max_connections;
  const uint32_t taken = files.rlim_cur > spare ? (uint32_t)(files.rlim_cur - spare) : 1;
  hk_log(log, HK_LOG_WARNING,
         "max_connections = %u is beyond the limit of open files; %u are taken (ulimit -n %" PRIu64 ", LimitNOFILE=%" PRIu64 ")",
         config->max_connections, taken, (uint64_t)wanted, (uint64_t)wanted);
  return taken;
}

/* A number in a file; UINT64_MAX if there is none, or "max". */
static uint64_t number_in(const char *path)
{
  unsigned long long number = UINT64_MAX;
  FILE *file = fopen(path, "re");
  if (file && fscanf(file, "%llu", &number) != 1)
    number = UINT64_MAX;
  if (file)
    fclose(file);
  return number;
}

/* Memory limit of the control groups of this process, bytes (MemoryMax= of the service, and of its slices). */
static uint64_t group_memory(void)
{
  char line[512] = "", path[640];
  uint64_t least = UINT64_MAX;
  FILE *file = fopen("/proc/self/cgroup", "re");
  while (file && fgets(line, sizeof line, file) && strncmp(line, "0::/", 4) != 0)
    line[0] = 0;
  if (file)
    fclose(file);
  line[strcspn(line, "\n")] = 0;
  for (char *group = line[0] ? line + 3 : NULL, *last; group && (last = strrchr(group, '/')); *last = 0) {
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
    const uint64_t limit = number_in(path);
    least = limit < least ? limit : least;
  }
  return least;
}

static uint64_t available(void)
{
  const uint64_t machine = uv_get_total_memory(), group = group_memory();
  return group < machine ? group : machine;
}

void hk_rlimit_memory(const struct hk_config *config, uint32_t n_loops, bool host, struct hk_log *log)
{
  const uint64_t sensors = host ? config->memory : 0, names = (uint64_t)config->max_sensors * A_SENSOR,
                 points = (uint64_t)(n_loops * HK_CHUNK_POINTS + 2 * config->backlog) * A_POINT,
                 queues = config->queue * 8, /* this number of slow subscribers is common */
      scores = hk_config_scores(config), sum = sensors + names + points + queues + scores, most = available();
  if (most == 0 || sum <= most)
    return;
  hk_log(log, HK_LOG_WARNING,
         "the configuration allows about %.1f GiB (memory = %.1f for sensors%s, names of max_sensors %.1f, backlog %.1f, eight "
         "queues %.1f, scores %.1f), and there are %.1f GiB (MemoryMax=, or the machine's): lower these keys, or the kernel may "
         "kill the daemon",
         (double)sum * 0x1p-30, (double)sensors * 0x1p-30, host ? "" : ", which are on the GPU", (double)names * 0x1p-30,
         (double)points * 0x1p-30, (double)queues * 0x1p-30, (double)scores * 0x1p-30, (double)most * 0x1p-30);
}

uint32_t hk_rlimit_loops(const struct hk_config *config)
{
  const unsigned half = uv_available_parallelism() / 2;
  if (config->loops > 0)
    return config->loops;
  return half < 1 ? 1 : half < LOOPS_AUTO ? half : LOOPS_AUTO;
}

uint32_t hk_rlimit_shards(const struct hk_config *config, const struct hk_backend_kind *kinds)
{
  const struct hk_backend_kind *cuda = &kinds[HK_BACKEND_CUDA];
  if (config->backend == HK_BACKEND_CPU || config->backend == HK_BACKEND_REFERENCE || config->cluster.role == HK_CLUSTER_GATEWAY)
    return 1;
  const uint32_t there = cuda->devices ? cuda->devices() : 1, most = there < HK_SHARDS_MAX ? there : HK_SHARDS_MAX;
  if (config->backend == HK_BACKEND_CUDA && config->devices > 0)
    return config->devices;
  return most == 0 ? 1 : config->devices > 0 && config->devices < most ? config->devices : most;
}
