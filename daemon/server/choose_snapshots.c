#include "daemon/server/choose_snapshots.h"
#include "daemon/durable/snapshot_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHY 256

/* --- finding --------------------------------------------------------------------------------------------------------- */

static int by_age(const void *a, const void *b)
{
  const struct hk_snapshot_about *x = &((const struct hk_found_snapshot *)a)->about,
                                 *y = &((const struct hk_found_snapshot *)b)->about;
  if (x->epoch != y->epoch)
    return x->epoch < y->epoch ? -1 : 1;
  if (x->shard != y->shard)
    return x->shard < y->shard ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

/* Says why a file that is not damaged cannot be read. */
static void choose_snapshots_say(int status, uint32_t folder, const char *name, const char *why, char *error, size_t size)
{
  snprintf(error, size, "shard-%u/%s: %s%s", folder, name, why,
           status == -EPROTONOSUPPORT ? "; run a hankeld that reads it, or move the file away to start without it" : "");
}

/* Reads the head of a file. A damaged one is logged and omitted. */
static int choose_snapshots_look(struct hk_snapshot_choice *c, uint32_t folder, uint64_t number, char *error, size_t size)
{
  struct hk_snapshot_reader *reader;
  struct hk_found_snapshot f = { .folder = folder };
  char why[WHY];
  hk_disk_name(f.name, HK_SNAPSHOT_STEM, number, HK_SNAPSHOT_SUFFIX);
  int status = hk_snapshot_open(&reader, &c->durable->disk, c->folders[folder], f.name, why, sizeof why);
  if (status == -EBADMSG) {
    hk_log(c->durable->log, HK_LOG_ERROR, "shard-%u/%s is damaged and not used: %s", folder, f.name, why);
    return 0;
  }
  if (status != 0) {
    choose_snapshots_say(status, folder, f.name, why, error, size);
    return status;
  }
  f.about = *hk_snapshot_of(reader);
  hk_snapshot_read_close(reader);
  struct hk_found_snapshot *more = realloc(c->found, (c->n + 1) * sizeof *more);
  if (!more) {
    snprintf(error, size, "no memory");
    return -ENOMEM;
  }
  c->found = more;
  c->found[c->n++] = f;
  return 0;
}

static int look_around(struct hk_snapshot_choice *c, char *error, size_t size)
{
  int status = 0;
  for (uint32_t i = 0; i < HK_SHARDS_MAX && status == 0; i++) {
    char path[32];
    uint64_t *numbers;
    size_t n;
    snprintf(path, sizeof path, "shard-%u", i);
    status = hk_disk_folder_there(&c->durable->disk, c->durable->folder, path, &c->folders[i]);
    if (status == -ENOENT) {
      status = 0;
      continue;
    }
    if (status == 0)
      status = hk_disk_list(&c->durable->disk, c->folders[i], HK_SNAPSHOT_STEM, HK_SNAPSHOT_SUFFIX, &numbers, &n);
    if (status != 0) {
      snprintf(error, size, "%s: %s", path, strerror(-status));
      return status;
    }
    for (size_t k = 0; k < n && status == 0; k++)
      status = choose_snapshots_look(c, i, numbers[k], error, size);
    free(numbers);
  }
  if (c->n > 1)
    qsort(c->found, c->n, sizeof *c->found, by_age);
  return status;
}

/* --- choosing -------------------------------------------------------------------------------------------------------- */

/* Reads a whole file. Returns 0: it is good; -EBADMSG, logged; or another negative errno. */
static int choose_snapshots_check(struct hk_snapshot_choice *c, const struct hk_found_snapshot *f, char *error, size_t size)
{
  struct hk_snapshot_reader *reader;
  struct hk_snapshot_part part;
  char why[WHY];
  int status = hk_snapshot_open(&reader, &c->durable->disk, c->folders[f->folder], f->name, why, sizeof why);
  if (status == 0) {
    while ((status = hk_snapshot_next(reader, &part)) == 1)
      continue;
    hk_snapshot_read_close(reader);
  }
  if (status == -EBADMSG || status == -EIO)
    hk_log(c->durable->log, HK_LOG_ERROR, "shard-%u/%s is damaged: %s. The previous snapshot is used", f->folder, f->name, why);
  else if (status != 0)
    choose_snapshots_say(status, f->folder, f->name, why, error, size);
  return status == -EIO ? -EBADMSG : status;
}

/* Chooses the newest good snapshot of each shard of an epoch. Returns 1: every shard has one; 0: not. */
static int choose_of(struct hk_snapshot_choice *c, uint64_t epoch, char *error, size_t size)
{
  uint32_t shards = 0, there = 0;
  memset(c->chosen, 0, sizeof c->chosen);
  for (uint32_t i = c->n; i-- > 0;) {
    struct hk_found_snapshot *f = &c->found[i];
    if (f->about.epoch != epoch || f->bad || c->chosen[f->about.shard])
      continue;
    const int status = choose_snapshots_check(c, f, error, size);
    f->bad = status == -EBADMSG;
    if (status != 0 && !f->bad)
      return status;
    if (f->bad)
      continue;
    c->chosen[f->about.shard] = f;
    shards = f->about.shards;
    there++;
  }
  return there > 0 && there == shards;
}

/* Whether the chosen snapshots of some shards count without the others. A snapshot, good or not, that counts only together is
 * from a time when every shard had one: what was there before may be gone. */
static bool counts(const struct hk_snapshot_choice *c, uint64_t epoch)
{
  bool any = false, alone = false;
  for (uint32_t i = 0; i < HK_SHARDS_MAX; i++)
    any |= c->chosen[i] != NULL;
  for (uint32_t i = 0; i < c->n; i++)
    alone |= c->found[i].about.epoch == epoch && !c->found[i].about.together;
  return any && alone;
}

/* Chooses the newest complete epoch; if there is none, the newest with anything that counts. */
static int choose_snapshots_choose(struct hk_snapshot_choice *c, char *error, size_t size)
{
  uint64_t newest = 0;
  for (uint32_t i = c->n; i-- > 0;) {
    const uint64_t epoch = c->found[i].about.epoch;
    if (i + 1 < c->n && c->found[i + 1].about.epoch == epoch)
      continue;
    const int whole = choose_of(c, epoch, error, size);
    if (whole != 0)
      return whole < 0 ? whole : 0;
    if (newest == 0 && counts(c, epoch))
      newest = epoch;
  }
  const int status = choose_of(c, newest, error, size); /* if 0, none is chosen: epochs count from 1 */
  return status < 0 ? status : 0;
}

/* Reports epochs that are newer than the chosen one. */
static void tell_passed_over(const struct hk_snapshot_choice *c)
{
  uint64_t chosen = 0, good = 0;
  for (uint32_t i = 0; i < HK_SHARDS_MAX; i++)
    chosen = c->chosen[i] ? c->chosen[i]->about.epoch : chosen;
  for (uint32_t i = 0; i < c->n; i++) {
    const struct hk_snapshot_about *about = &c->found[i].about;
    good |= (uint64_t)!c->found[i].bad << about->shard;
    if (i + 1 < c->n && c->found[i + 1].about.epoch == about->epoch)
      continue;
    if (about->epoch > chosen && good != 0)
      hk_log(c->durable->log, HK_LOG_NOTICE,
             "snapshots of %d of %u shards, of epoch %" PRIu64
             ", are not used, because the other shards have no undamaged one; the state before them is restored",
             __builtin_popcountll(good), about->shards, about->epoch);
    good = 0;
  }
}

int hk_snapshots_choose(struct hk_snapshot_choice *c, struct hk_durable *durable, char *error, size_t size)
{
  *c = (struct hk_snapshot_choice){ .durable = durable };
  for (uint32_t i = 0; i < HK_SHARDS_MAX; i++)
    c->folders[i] = -1;
  int status = look_around(c, error, size);
  if (status == 0)
    status = choose_snapshots_choose(c, error, size);
  if (status == 0)
    tell_passed_over(c);
  return status;
}

void hk_snapshot_choice_close(struct hk_snapshot_choice *c)
{
  for (uint32_t i = 0; i < HK_SHARDS_MAX; i++)
    if (c->folders[i] >= 0)
      close(c->folders[i]);
  free(c->found);
}

bool hk_snapshot_chosen(const struct hk_snapshot_choice *c)
{
  bool any = false;
  for (uint32_t i = 0; i < HK_SHARDS_MAX; i++)
    any |= c->chosen[i] != NULL;
  return any;
}

bool hk_snapshot_any_bad(const struct hk_snapshot_choice *c)
{
  bool bad = false;
  for (uint32_t i = 0; i < c->n; i++)
    bad |= c->found[i].bad;
  return bad;
}
