/* Figures of a machine whose /proc is a folder of the test. */
#include "daemon/cli/host.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define S 1000000000LL

static char root[64];

static void write_file(const char *path, const char *text)
{
  char whole[256];
  snprintf(whole, sizeof whole, "%s%s", root, path);
  FILE *file = fopen(whole, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

/* The value of a figure, NAN: it is not there. */
static double figure(const struct hk_host *host, const char *name)
{
  double value;
  for (uint32_t i = 0; i < hk_host_figures(host); i++)
    if (strcmp(hk_host_name(host, hk_host_sensor(host, i, &value)), name) == 0)
      return value;
  return NAN;
}

static void counters_are_differences_a_second(void **state)
{
  (void)state;
  struct hk_host *host;
  assert_int_equal(hk_host_open(&host, root, "m"), 0);
  assert_int_equal(hk_host_look(host, 1 * S), -2);
  write_file("proc/stat", "cpu  100 0 50 800 10 0 0 5 0 0\ncpu0 1\ncpu1 1\nctxt 1000\nprocs_running 3\n");
  write_file("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 250 kB\n");
  write_file("proc/loadavg", "0.75 0.5 0.25 1/2 3\n");
  write_file("proc/diskstats",
             " 8 0 sda 10 0 100 0 20 0 200 0 0 500 0\n 8 1 sda1 1 0 1 0 1 0 1 0 0 1 0\n 7 0 loop0 1 0 1 0 1 0 1 0 0 1 0\n");
  write_file("proc/net/dev",
             "Inter-|\n face |\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0\n");
  write_file("proc/pressure/io",
             "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  assert_int_equal(hk_host_look(host, 10 * S), 0);
  assert_true(figure(host, "m.memory.used") == 75 && figure(host, "m.memory.available_bytes") == 256000);
  assert_true(figure(host, "m.system.running") == 3 && figure(host, "m.system.load1") == 0.75);
  assert_true(isnan(figure(host, "m.cpu.busy")) && isnan(figure(host, "m.net.eth0.sent_bytes")));
  write_file("proc/stat", "cpu  200 0 50 900 10 0 0 5 0 0\ncpu0 1\ncpu1 1\nctxt 3000\nprocs_running 1\n");
  write_file("proc/diskstats", " 8 0 sda 10 0 100 0 40 0 600 0 0 1500 0\n 8 1 sda1 1 0 1 0 1 0 1 0 0 1 0\n");
  write_file("proc/net/dev", "  eth0:500 10 0 0 0 0 0 0 4000 24 1 2 0 0 0 0\n");
  write_file("proc/pressure/io",
             "some avg10=0.00 avg60=0.00 avg300=0.00 total=501000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  assert_int_equal(hk_host_look(host, 12 * S), 0);
  assert_true(figure(host, "m.cpu.busy") == 25 && figure(host, "m.cpu.system") == 0); /* 100 ticks of 2 processors in 2 s */
  assert_true(figure(host, "m.system.context_switches") == 1000);
  assert_true(figure(host, "m.disk.sda.written_bytes") == 102400 && figure(host, "m.disk.sda.writes") == 10);
  assert_true(figure(host, "m.disk.sda.busy") == 50 && isnan(figure(host, "m.disk.sda1.busy")) &&
              isnan(figure(host, "m.disk.loop0.busy")));
  assert_true(figure(host, "m.net.eth0.sent_bytes") == 1000 && figure(host, "m.net.eth0.errors") == 1.5);
  assert_true(isnan(figure(host, "m.net.eth0.received_bytes")) && isnan(figure(host, "m.net.lo.sent_bytes"))); /* it went back */
  assert_true(figure(host, "m.pressure.io.some") == 25 && figure(host, "m.pressure.io.full") == 0);
  hk_host_close(host);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(counters_are_differences_a_second) };
  static const char *const folders[] = { "", "proc", "proc/net", "proc/pressure", "sys", "sys/block", "sys/block/sda" };
  char command[128], name[] = "/tmp/hankel-host-XXXXXX";
  if (!mkdtemp(name))
    return 1;
  snprintf(root, sizeof root, "%s/", name);
  for (size_t i = 1; i < sizeof folders / sizeof *folders; i++) {
    snprintf(command, sizeof command, "%s%s", root, folders[i]);
    if (mkdir(command, 0700) != 0)
      return 1;
  }
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  snprintf(command, sizeof command, "rm -r %s", name);
  return system(command) == 0 ? failed : 1;
}
