/* The folder that scorers share: the newest complete state of a partition is restored, whatever fails; an older one takes its
 * place only where it is damaged, or was never completed. */
#include "daemon/bridge/cluster_state.h"
#include "daemon/durable/durable.h"
#include "daemon/durable/snapshot_format.h"
#include "daemon/durable/snapshot_write.h"
#include "daemon/net/net.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PARTITION 3u
#define NEWEST 2u

struct world {
  char path[64];
  uint64_t at, calls; /* call number `at` of the disk fails; 0: none does */
  int state;
  struct hk_log log;
  struct hk_durable durable;
  struct hk_shards shards; /* none: only what is restored is looked at, not where it goes */
  struct hk_net net;
  struct hk_cluster cluster;
};

static int fault(void *arg, enum hk_disk_call call)
{
  struct world *w = arg;
  (void)call;
  return ++w->calls == w->at ? EIO : 0;
}

/* A snapshot of the only shard of an epoch's holder, which has read 100 points for each epoch. */
static void leave_state(struct world *w, uint64_t epoch)
{
  char path[200];
  const struct hk_snapshot_about about = { .shards = 1, .number = 1, .epoch = epoch };
  const struct hk_record_feed feed = { .number = 1, .name = hk_string("log") };
  struct hk_snapshot_writer *writer;
  int folder;
  snprintf(path, sizeof path, "%s/c-8/%u", w->path, PARTITION);
  assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
  snprintf(path, sizeof path, "%s/c-8/%u/epoch-%012u.hkp", w->path, PARTITION, (unsigned)epoch);
  assert_int_equal(mkdir(path, 0700), 0);
  strcat(path, "/shard-0");
  assert_int_equal(hk_disk_folder(&w->durable.disk, AT_FDCWD, path, &folder), 0);
  assert_int_equal(hk_snapshot_create(&writer, &w->durable.disk, folder, &about), 0);
  assert_int_equal(hk_snapshot_feed(writer, &feed, 100 * epoch), 0);
  assert_int_equal(hk_snapshot_finish(writer), 0);
  hk_snapshot_close(writer);
  close(folder);
}

static int setup(void **state)
{
  struct world *w = *state = calloc(1, sizeof *w);
  char why[HK_ENGINE_WHY];
  strcpy(w->path, "/tmp/test-state-XXXXXX");
  assert_non_null(mkdtemp(w->path));
  hk_log_init(&w->log, HK_LOG_ERROR);
  w->durable.disk = (struct hk_disk){ fault, w };
  w->net = (struct hk_net){ .log = &w->log, .shards = &w->shards, .durable = &w->durable };
  w->cluster.net = &w->net;
  w->cluster.work = &hk_cluster_scorer;
  w->cluster.rule.partitions = 8;
  strcpy(w->cluster.rule.name, "c");
  snprintf(w->cluster.rule.state, sizeof w->cluster.rule.state, "%s", w->path);
  assert_int_equal(hk_cluster_state_open(&w->cluster, &w->state, why), 0);
  leave_state(w, NEWEST - 1);
  leave_state(w, NEWEST);
  return 0;
}

static int teardown(void **state)
{
  struct world *w = *state;
  char command[100];
  close(w->state);
  snprintf(command, sizeof command, "rm -r %s", w->path);
  assert_int_equal(system(command), 0);
  free(w);
  return 0;
}

/* Number of epochs of the partition. */
static unsigned epochs(const struct world *w)
{
  char path[200];
  unsigned n = 0;
  snprintf(path, sizeof path, "%s/c-8/%u", w->path, PARTITION);
  DIR *d = opendir(path);
  assert_non_null(d);
  for (const struct dirent *e; (e = readdir(d));)
    n += strncmp(e->d_name, "epoch-", 6) == 0;
  closedir(d);
  return n;
}

static int take(struct world *w, struct hk_cluster_taken *out, char why[HK_ENGINE_WHY])
{
  w->calls = 0;
  return hk_cluster_state_take(&w->cluster, w->state, PARTITION, out, why);
}

/* Changes bytes of the newest state. */
static void change(const struct world *w, off_t at, const void *bytes, size_t size)
{
  char path[200];
  snprintf(path, sizeof path, "%s/c-8/%u/epoch-%012u.hkp/shard-0/snapshot-%012u.hks", w->path, PARTITION, NEWEST, 1u);
  const int file = open(path, O_WRONLY);
  assert_true(file >= 0);
  assert_int_equal(pwrite(file, bytes, size, at), size);
  close(file);
}

static void newest_is_restored(void **state)
{
  struct hk_cluster_taken t;
  char why[HK_ENGINE_WHY];
  assert_int_equal(take(*state, &t, why), 0);
  assert_int_equal(t.from, NEWEST);
  assert_int_equal(t.at, 100 * NEWEST);
  assert_int_equal(t.epoch, NEWEST + 1);
}

/* An epoch that could not be held goes, unless there is a state in it. */
static void what_was_not_held_is_dropped(void **state)
{
  struct world *w = *state;
  struct hk_cluster_taken t;
  char why[HK_ENGINE_WHY];
  assert_int_equal(take(w, &t, why), 0);
  const unsigned before = epochs(w);
  hk_cluster_state_drop(&w->cluster, w->state, PARTITION, t.epoch);
  assert_int_equal(epochs(w), before - 1);
  hk_cluster_state_drop(&w->cluster, w->state, PARTITION, NEWEST);
  assert_int_equal(take(w, &t, why), 0);
  assert_int_equal(t.from, NEWEST);
}

/* One call of the disk fails, each in its turn. An older state would lose what the newest one has: sensors would warm up again,
 * and points be scored again. */
static void no_failure_brings_an_older_one(void **state)
{
  struct world *w;
  unsigned failures = 0;
  (void)state;
  bool failed = true; /* a call, of as many as there are */
  for (uint64_t at = 1; failed; at++) {
    struct hk_cluster_taken t;
    char why[HK_ENGINE_WHY] = "";
    assert_int_equal(setup((void **)&w), 0);
    w->at = at;
    const int status = take(w, &t, why);
    failed = w->calls >= at;
    failures += status != 0;
    if (status == 0 ? t.from != NEWEST || t.at != 100 * NEWEST : status != -EIO || !why[0])
      fail_msg("call %u of the disk failed: %d, epoch %u, points %u", (unsigned)at, status, (unsigned)t.from, (unsigned)t.at);
    if (status != 0 && epochs(w) != NEWEST)
      fail_msg("call %u of the disk failed: an epoch is left behind", (unsigned)at);
    assert_int_equal(teardown((void **)&w), 0);
  }
  assert_true(failures > 10);
}

static void one_of_a_newer_version_is_not_replaced(void **state)
{
  struct hk_snapshot_head head;
  struct hk_cluster_taken t;
  char why[HK_ENGINE_WHY], path[200];
  const struct world *w = *state;
  snprintf(path, sizeof path, "%s/c-8/%u/epoch-%012u.hkp/shard-0/snapshot-%012u.hks", w->path, PARTITION, NEWEST, 1u);
  const int file = open(path, O_RDONLY);
  assert_int_equal(read(file, &head, sizeof head), sizeof head);
  close(file);
  head.version = HK_SNAPSHOT_VERSION + 1;
  head.checksum = hk_snapshot_checksum(&head);
  change(w, 0, &head, sizeof head);
  assert_int_equal(take(*state, &t, why), -EPROTONOSUPPORT);
  assert_non_null(strstr(why, ": c-8/3/epoch-000000000002.hkp/shard-0/snapshot-000000000001.hks: it is of version"));
  assert_non_null(strstr(why, "; move it away to go on without it"));
}

static void an_older_one_replaces_a_damaged_one(void **state)
{
  struct hk_cluster_taken t;
  char why[HK_ENGINE_WHY];
  change(*state, (off_t)sizeof(struct hk_snapshot_head) + 4, "damage", 6);
  assert_int_equal(take(*state, &t, why), 0);
  assert_int_equal(t.from, NEWEST - 1);
  assert_int_equal(t.at, 100 * (NEWEST - 1));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(newest_is_restored, setup, teardown),
    cmocka_unit_test_setup_teardown(what_was_not_held_is_dropped, setup, teardown),
    cmocka_unit_test(no_failure_brings_an_older_one),
    cmocka_unit_test_setup_teardown(one_of_a_newer_version_is_not_replaced, setup, teardown),
    cmocka_unit_test_setup_teardown(an_older_one_replaces_a_damaged_one, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
