/* Figures of this machine. A function parses each file of /proc, and leaves out what it cannot read. */
#include "daemon/cli/host.h"
#include "daemon/cli/csv_names.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define MOST 4096 /* figures of a look */

struct counter {
  double value;
  int64_t at; /* ns; 0: it was not seen yet */
};

struct hk_host {
  char *root, *prefix;
  struct hk_csv_names names;
  struct counter *last; /* by sensor */
  uint32_t n_last, n;   /* counters that there is room for; figures of this look */
  uint32_t sensor[MOST];
  double value[MOST];
  int64_t now;
  bool failed; /* no memory */
};

int hk_host_open(struct hk_host **out, const char *root, const char *prefix)
{
  struct hk_host *host = calloc(1, sizeof *host);
  if (!host)
    return -ENOMEM;
  host->root = strdup(root);
  host->prefix = strdup(prefix);
  if (!host->root || !host->prefix) {
    hk_host_close(host);
    return -ENOMEM;
  }
  *out = host;
  return 0;
}

void hk_host_close(struct hk_host *host)
{
  if (!host)
    return;
  hk_csv_names_free(&host->names);
  free(host->last);
  free(host->root);
  free(host->prefix);
  free(host);
}

/* The sensor of prefix.group.of.figure, `of` may be NULL; UINT32_MAX: no memory. */
static uint32_t host_sensor(struct hk_host *host, const char *group, const char *of, const char *figure)
{
  char name[256];
  snprintf(name, sizeof name, "%s.%s%s%.64s.%s", host->prefix, group, of ? "." : "", of ? of : "", figure);
  const uint32_t number = hk_csv_names_number(&host->names, name);
  host->failed |= number == UINT32_MAX;
  return number;
}

static void host_put(struct hk_host *host, uint32_t number, double value)
{
  if (number == UINT32_MAX || host->n == MOST || !isfinite(value))
    return;
  host->sensor[host->n] = number;
  host->value[host->n++] = value;
}

static void host_gauge(struct hk_host *host, const char *group, const char *of, const char *figure, double value)
{
  host_put(host, host_sensor(host, group, of, figure), value);
}

/* A counter's difference a second, times `scale`. A counter that went back starts again. */
static void host_rate(struct hk_host *host, const char *group, const char *of, const char *figure, double value, double scale)
{
  const uint32_t number = host_sensor(host, group, of, figure);
  if (number == UINT32_MAX)
    return;
  if (number >= host->n_last) {
    const uint32_t room = 2 * number + 64;
    struct counter *grown = realloc(host->last, room * sizeof *grown);
    if (!grown) {
      host->failed = true;
      return;
    }
    memset(grown + host->n_last, 0, (room - host->n_last) * sizeof *grown);
    host->last = grown;
    host->n_last = room;
  }
  struct counter *last = &host->last[number];
  if (last->at > 0 && value >= last->value && host->now > last->at)
    host_put(host, number, (value - last->value) * scale * 1e9 / (double)(host->now - last->at));
  *last = (struct counter){ value, host->now };
}

static FILE *open_file(const struct hk_host *host, const char *path)
{
  char whole[512];
  snprintf(whole, sizeof whole, "%s%s", host->root, path);
  return fopen(whole, "re");
}

/* Shares of all processors' time, in percent, and what the whole system does a second. */
static bool look_at_processor(struct hk_host *host)
{
  FILE *file = open_file(host, "proc/stat");
  char line[1024];
  double t[8], number;
  uint32_t processors = 0;
  if (!file)
    return false;
  memset(t, 0, sizeof t);
  while (fgets(line, sizeof line, file)) {
    processors += strncmp(line, "cpu", 3) == 0 && line[3] >= '0' && line[3] <= '9';
    if (strncmp(line, "cpu ", 4) == 0 &&
        sscanf(line + 4, "%lf %lf %lf %lf %lf %lf %lf %lf", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) < 4)
      break;
    if (sscanf(line, "ctxt %lf", &number) == 1)
      host_rate(host, "system", NULL, "context_switches", number, 1);
    if (sscanf(line, "processes %lf", &number) == 1)
      host_rate(host, "system", NULL, "forks", number, 1);
    if (sscanf(line, "procs_running %lf", &number) == 1)
      host_gauge(host, "system", NULL, "running", number);
    if (sscanf(line, "procs_blocked %lf", &number) == 1)
      host_gauge(host, "system", NULL, "blocked", number);
  }
  fclose(file);
  const double percent = processors > 0 ? 1.0 / processors : 1; /* a tick is a hundredth of a second */
  host_rate(host, "cpu", NULL, "user", t[0] + t[1], percent);
  host_rate(host, "cpu", NULL, "system", t[2] + t[5] + t[6], percent);
  host_rate(host, "cpu", NULL, "iowait", t[4], percent);
  host_rate(host, "cpu", NULL, "steal", t[7], percent);
  host_rate(host, "cpu", NULL, "busy", t[0] + t[1] + t[2] + t[5] + t[6] + t[7], percent);
  return true;
}

static void look_at_load(struct hk_host *host)
{
  FILE *file = open_file(host, "proc/loadavg");
  double load;
  if (file && fscanf(file, "%lf", &load) == 1)
    host_gauge(host, "system", NULL, "load1", load);
  if (file)
    fclose(file);
}

static bool look_at_memory(struct hk_host *host)
{
  FILE *file = open_file(host, "proc/meminfo");
  char line[256], name[64];
  double kib, total = 0, available = 0, swap = 0, swap_free = 0;
  if (!file)
    return false;
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "%63[^:]: %lf", name, &kib) != 2)
      continue;
    total = strcmp(name, "MemTotal") == 0 ? kib : total;
    available = strcmp(name, "MemAvailable") == 0 ? kib : available;
    swap = strcmp(name, "SwapTotal") == 0 ? kib : swap;
    swap_free = strcmp(name, "SwapFree") == 0 ? kib : swap_free;
    if (strcmp(name, "Dirty") == 0)
      host_gauge(host, "memory", NULL, "dirty_bytes", kib * 1024);
    if (strcmp(name, "Cached") == 0)
      host_gauge(host, "memory", NULL, "cached_bytes", kib * 1024);
  }
  fclose(file);
  if (total > 0) {
    host_gauge(host, "memory", NULL, "available_bytes", available * 1024);
    host_gauge(host, "memory", NULL, "used", 100 * (total - available) / total);
  }
  if (swap > 0)
    host_gauge(host, "memory", NULL, "swap_used", 100 * (swap - swap_free) / swap);
  return true;
}

/* Whole disks: parts of them have no folder of their own in /sys/block. */
static void look_at_disks(struct hk_host *host)
{
  FILE *file = open_file(host, "proc/diskstats");
  char line[512], name[64], path[600];
  double reads, read_sectors, writes, written_sectors, busy;
  struct stat about;
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "%*u %*u %63s %lf %*f %lf %*f %lf %*f %lf %*f %*f %lf", name, &reads, &read_sectors, &writes,
               &written_sectors, &busy) != 6 ||
        strncmp(name, "loop", 4) == 0 || strncmp(name, "ram", 3) == 0)
      continue;
    snprintf(path, sizeof path, "%ssys/block/%s", host->root, name);
    if (stat(path, &about) != 0)
      continue;
    host_rate(host, "disk", name, "reads", reads, 1);
    host_rate(host, "disk", name, "writes", writes, 1);
    host_rate(host, "disk", name, "read_bytes", read_sectors, 512);
    host_rate(host, "disk", name, "written_bytes", written_sectors, 512);
    host_rate(host, "disk", name, "busy", busy, 0.1); /* ms of a second, in percent */
  }
  if (file)
    fclose(file);
  struct statvfs root;
  if (statvfs(host->root, &root) == 0 && root.f_blocks > 0)
    host_gauge(host, "disk", NULL, "root_used", 100.0 * (double)(root.f_blocks - root.f_bavail) / (double)root.f_blocks);
}

static void look_at_network(struct hk_host *host)
{
  FILE *file = open_file(host, "proc/net/dev");
  char line[512], name[64];
  double in, in_packets, in_errors, in_dropped, out, out_packets, out_errors, out_dropped;
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, " %63[^:]: %lf %lf %lf %lf %*f %*f %*f %*f %lf %lf %lf %lf", name, &in, &in_packets, &in_errors, &in_dropped,
               &out, &out_packets, &out_errors, &out_dropped) != 9 ||
        strcmp(name, "lo") == 0)
      continue;
    host_rate(host, "net", name, "received_bytes", in, 1);
    host_rate(host, "net", name, "sent_bytes", out, 1);
    host_rate(host, "net", name, "received_packets", in_packets, 1);
    host_rate(host, "net", name, "sent_packets", out_packets, 1);
    host_rate(host, "net", name, "errors", in_errors + out_errors + in_dropped + out_dropped, 1);
  }
  if (file)
    fclose(file);
}

/* The percentage of time in which some or all tasks waited for the resource. */
static void look_at_pressure(struct hk_host *host)
{
  static const char *const resources[] = { "cpu", "memory", "io" };
  for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
    char path[64], line[256], kind[16];
    double total;
    snprintf(path, sizeof path, "proc/pressure/%s", resources[i]);
    FILE *file = open_file(host, path);
    while (file && fgets(line, sizeof line, file))
      if (sscanf(line, "%15s avg10=%*f avg60=%*f avg300=%*f total=%lf", kind, &total) == 2)
        host_rate(host, "pressure", resources[i], strcmp(kind, "full") == 0 ? "full" : "some", total, 1e-4);
    if (file)
      fclose(file);
  }
}

int hk_host_look(struct hk_host *host, int64_t now)
{
  host->n = 0;
  host->now = now;
  const bool any = look_at_processor(host), memory = look_at_memory(host);
  look_at_load(host);
  look_at_disks(host);
  look_at_network(host);
  look_at_pressure(host);
  return host->failed ? -ENOMEM : any || memory ? 0 : -ENOENT;
}

uint32_t hk_host_figures(const struct hk_host *host)
{
  return host->n;
}

uint32_t hk_host_sensor(const struct hk_host *host, uint32_t figure, double *value)
{
  *value = host->value[figure];
  return host->sensor[figure];
}

uint32_t hk_host_sensors(const struct hk_host *host)
{
  return host->names.n;
}

const char *hk_host_name(const struct hk_host *host, uint32_t sensor)
{
  return host->names.name[sensor];
}
