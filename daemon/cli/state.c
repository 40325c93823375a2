/* hankel state: examines the files of the daemon's state folder.
 *
 * inspect prints what each file contains; verify reads everything and names damage. Neither changes anything, and both may be
 * used while the daemon runs. */
#include "cpu/group/state.h"
#include "cpu/field/state.h"
#include "cpu/group/group.h"
#include "cpu/rules/state.h"
#include "daemon/base/limits.h"
#include "daemon/base/timestamp.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/options.h"
#include "daemon/durable/event_log.h"
#include "daemon/durable/journal.h"
#include "daemon/durable/journal_quarantine.h"
#include "daemon/durable/journal_read.h"
#include "daemon/durable/marks.h"
#include "daemon/durable/snapshot_read.h"
#include "daemon/sensors/maintenance_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char state_help[] = "usage: hankel state inspect|verify FILE|DIR...\n\n"
                                 "Inspects and verifies the daemon's state folder (durability = snapshot or journal).\n\n"
                                 "  inspect   print what each file holds: sensors, positions, when it was written\n"
                                 "  verify    read every byte and name what is damaged; exits with 1 if anything is\n\n"
                                 "DIR is the state folder or that of a shard in it; FILE is a snapshot (.hks), a part of a\n"
                                 "journal (.hkj) or of the event log (.hke), or `maintenance`, the client-requested windows.\n"
                                 "It changes nothing, and may run beside the daemon.\n\n"
                                 "examples:\n"
                                 "  hankel state inspect /var/lib/hankeld\n"
                                 "  hankel state verify /var/lib/hankeld/shard-0/snapshot-000000000012.hks\n";

#define WHY 256

struct look {
  bool verify;
  bool bad;                              /* something is damaged */
  struct hk_journal_mark mark[HK_MARKS]; /* of the state folder, */
  bool marked[HK_MARKS];                 /* where it has one */
  uint32_t files;                        /* that were looked at */
};

static void state_print_time(int64_t time)
{
  char text[HK_TIMESTAMP_SIZE];
  hk_timestamp_format(time, text);
  printf("%s", text);
}

/* --- snapshots ------------------------------------------------------------------------------------------------------- */

/* What a snapshot has, in all. */
struct counts {
  uint64_t parts, sensors, raised, standing, feeds, detectors, machines, members;
  uint64_t first, last; /* positions of sensors */
};

/* Checks the sensors of a section. Returns NULL if they are valid, or what is wrong. */
static const char *look_at_sensors(const struct hk_snapshot_part *part, struct counts *n, char *why, size_t size)
{
  struct hk_snapshot_sensor s;
  struct hk_state_about about;
  size_t at = 0;
  uint32_t seen = 0;
  int more;
  for (; (more = hk_snapshot_sensor_next(part, &at, &s)) == 1; seen++) {
    n->standing += s.alerts.stands;
    if (s.detector >= n->detectors)
      snprintf(why, size, "%.*s: its detector is not named before", (int)s.name.length, s.name.data);
    else if (s.state_size > 0 && hk_state_look(s.state, s.state_size, &about) != 0)
      snprintf(why, size, "%.*s: its state is damaged", (int)s.name.length, s.name.data);
    else {
      n->raised += s.state_size > 0 && about.raised;
      continue;
    }
    return why;
  }
  if (more < 0 || seen != part->count)
    return "its layout is wrong";
  n->sensors += seen;
  n->first = n->first == 0 || part->position < n->first ? part->position : n->first;
  n->last = part->position > n->last ? part->position : n->last;
  return NULL;
}

/* The same for machines. */
static const char *look_at_machines(const struct hk_snapshot_part *part, struct counts *n, char *why, size_t size)
{
  struct hk_machine_memory m;
  struct hk_group *group;
  struct hk_field *field;
  uint8_t generation;
  size_t at = 0;
  uint32_t seen = 0;
  int more;
  for (; (more = hk_snapshot_machine_next(part, &at, &m, &generation)) == 1; seen++) {
    int status = hk_group_read(&group, NULL, m.rows, m.rows_size);
    bool good = status == 0 && hk_group_members(group) == m.n_members;
    if (status == 0)
      hk_group_free(group);
    if (status == -EBADMSG && (status = hk_field_read(&field, NULL, m.rows, m.rows_size)) == 0) { /* a field's, perhaps */
      good = hk_field_members(field) == m.n_members;
      hk_field_free(field);
    }
    n->members += m.n_members;
    if (good)
      continue;
    snprintf(why, size, "the machine whose series has slot %u: %s", m.slot,
             status == -ENOMEM   ? "no memory"
             : status == -EINVAL ? "its rows have the layout of another version"
                                 : "its rows are damaged");
    return why;
  }
  n->machines += seen;
  return more < 0 || seen != part->count ? "its layout is wrong" : NULL;
}

/* And for owners. */
static const char *look_at_owners(const struct hk_snapshot_part *part)
{
  struct hk_snapshot_owner o;
  size_t at = 0;
  uint32_t seen = 0;
  int more;
  while ((more = hk_snapshot_owner_next(part, &at, &o)) == 1)
    seen++;
  return more < 0 || seen != part->count ? "its layout is wrong" : NULL;
}

/* And for counters. */
static const char *look_at_counters(const struct hk_snapshot_part *part)
{
  struct hk_snapshot_counter c;
  size_t at = 0;
  uint32_t seen = 0;
  int more;
  while ((more = hk_snapshot_counter_next(part, &at, &c)) == 1)
    seen++;
  return more < 0 || seen != part->count ? "its layout is wrong" : NULL;
}

static const char *look_at_provisional(const struct hk_snapshot_part *part)
{
  struct hk_snapshot_provisional p;
  size_t at = 0;
  uint32_t seen = 0;
  int more;
  while ((more = hk_snapshot_provisional_next(part, &at, &p)) == 1)
    seen++;
  return more < 0 || seen != part->count ? "its layout is wrong" : NULL;
}

static const char *look_at_part(const struct hk_snapshot_part *part, struct counts *n, char *why, size_t size)
{
  struct hk_string name;
  uint16_t detector;
  struct hk_record_feed feed;
  uint64_t upto;
  n->parts++;
  switch (part->type) {
  case HK_PART_DETECTOR:
    return hk_snapshot_detector_read(part, &detector, &name) != 0 || detector != n->detectors++ ? "its layout is wrong" : NULL;
  case HK_PART_FEED:
    n->feeds++;
    return hk_snapshot_feed_read(part, &feed, &upto) != 0 ? "its layout is wrong" : NULL;
  case HK_PART_SENSORS:
    return look_at_sensors(part, n, why, size);
  case HK_PART_MACHINES:
    return look_at_machines(part, n, why, size);
  case HK_PART_OWNERS:
    return look_at_owners(part);
  case HK_PART_COUNTERS:
    return look_at_counters(part);
  case HK_PART_PROVISIONAL:
    return look_at_provisional(part);
  default:
    return NULL;
  }
}

static void say_bad(struct look *l, const char *path, const char *why)
{
  printf("%s: DAMAGED: %s\n", path, why);
  l->bad = true;
}

static void look_at_snapshot(struct look *l, const struct hk_disk *disk, int folder, const char *name, const char *path)
{
  struct hk_snapshot_reader *reader;
  struct hk_snapshot_part part = { 0 };
  struct counts n = { 0 };
  char why[WHY], what[WHY], section[WHY + 80];
  const char *wrong = NULL;
  int status = hk_snapshot_open(&reader, disk, folder, name, why, sizeof why);
  if (status != 0) {
    say_bad(l, path, why);
    return;
  }
  const struct hk_snapshot_about about = *hk_snapshot_of(reader);
  while (!wrong && (status = hk_snapshot_next(reader, &part)) == 1)
    wrong = look_at_part(&part, &n, what, sizeof what);
  hk_snapshot_read_close(reader);
  if (wrong) {
    snprintf(section, sizeof section, "section %" PRIu64 " (at byte %" PRIu64 "): %s", n.parts, part.at, wrong);
    say_bad(l, path, section);
  } else if (status != 0) {
    say_bad(l, path, why);
  } else if (l->verify) {
    printf("%s: good, %" PRIu64 " sensors in %" PRIu64 " sections\n", path, n.sensors, n.parts);
  }
  if (l->verify)
    return;
  printf("%s: snapshot %" PRIu64 " of shard %u of %u, ", path, about.number, about.shard, about.shards);
  state_print_time(about.made);
  printf("\n  sensors %" PRIu64 ", alerts that stand %" PRIu64 ", detectors %" PRIu64 ", feeds %" PRIu64 "\n", n.sensors,
         n.standing, n.detectors, n.feeds);
  if (n.machines > 0)
    printf("  machines %" PRIu64 ", members %" PRIu64 "\n", n.machines, n.members);
  printf("  begun at position %" PRIu64, about.begin);
  if (n.sensors > 0)
    printf(", sensors taken from %" PRIu64 " to %" PRIu64, n.first, n.last);
  printf("; epoch %" PRIu64 "%s\n", about.epoch, about.together ? ", counts only with those of all shards" : "");
}

/* --- journals -------------------------------------------------------------------------------------------------------- */

struct damage {
  struct look *look;
  const char *folder;
  const struct hk_journal_mark *mark; /* NULL: there is none */
};

static void state_on_damage(void *arg, const struct hk_journal_damaged *damaged)
{
  const struct damage *d = arg;
  const struct hk_journal_mark *m = d->mark;
  const bool told = m && (m->segment > damaged->number || (m->segment == damaged->number && m->bytes > damaged->at));
  const bool torn = damaged->tail && !told;
  d->look->bad |= !torn;
  if (damaged->missing) {
    printf("%s/%s: DAMAGED: %s\n", d->folder, damaged->file, damaged->why);
    return;
  }
  printf("%s/%s: %s: %" PRIu64 " bytes from byte %" PRIu64 " on are no record (%s)%s\n", d->folder, damaged->file,
         torn ? "torn" : "DAMAGED", damaged->bytes, damaged->at, damaged->why,
         !torn ? ""
         : m   ? ": as a crash leaves it; nothing in it was acknowledged or published"
               : ": what a crash leaves");
}

/* Prints files that a start has set aside. */
static void look_aside(struct look *l, const struct hk_disk *disk, int folder, const char *path, const char *stem)
{
  uint64_t *numbers;
  size_t n;
  if (hk_disk_list(disk, folder, stem, HK_JOURNAL_ASIDE, &numbers, &n) != 0)
    return;
  for (size_t i = 0; i < n; i++) {
    char name[HK_DISK_NAME_MAX];
    hk_disk_name(name, stem, numbers[i], HK_JOURNAL_ASIDE);
    printf("%s/%s: was set aside when a start found damage; nothing uses it, and nothing removes it\n", path, name);
    l->files++;
  }
  free(numbers);
}

/* Whether a journal reaches to its mark. */
static void look_at_end(struct look *l, const struct hk_journal_reader *reader, const char *path, const char *stem,
                        const struct hk_journal_mark *mark)
{
  if (!mark || mark->segment == 0 || hk_journal_holds(reader, mark->segment, mark->bytes, mark->salt))
    return;
  printf("%s/%s: DAMAGED: its end is gone: it went to byte %" PRIu64 " of file %" PRIu64 ", and position %" PRIu64 "\n", path,
         stem, mark->bytes, mark->segment, mark->position);
  l->bad = true;
}

/* Prints all segments of a journal. index: of its mark; HK_MARKS: unknown. */
static void look_at_journal(struct look *l, const struct hk_disk *disk, int folder, const char *path, const char *stem,
                            const char *suffix, uint32_t index)
{
  const uint32_t kind = index == HK_MARK_EVENTS ? HK_JOURNAL_EVENTS : HK_JOURNAL_POINTS;
  const struct hk_journal_mark *mark = index < HK_MARKS && l->marked[index] ? &l->mark[index] : NULL;
  const struct hk_journal_place place = {
    .disk = disk, .folder = folder, .stem = stem, .suffix = suffix, .kind = kind, .shards = 1
  };
  struct damage damage = { l, path, mark };
  struct hk_journal_reader *reader;
  struct hk_record record;
  uint64_t *numbers, records = 0, first = 0, last = 0;
  size_t n = 0;
  char why[WHY] = "";
  if (hk_disk_list(disk, folder, stem, suffix, &numbers, &n) != 0 || n == 0)
    return;
  free(numbers);
  l->files += (uint32_t)n;
  int status = hk_journal_read(&reader, &place, 0, state_on_damage, &damage, why, sizeof why);
  if (status == 0) {
    while ((status = hk_journal_next(reader, &record)) == 1) {
      if (records++ == 0)
        first = record.position;
      last = record.position + record.count;
    }
    look_at_end(l, reader, path, stem, mark);
    hk_journal_read_close(reader);
  }
  if (status < 0) {
    printf("%s/%s-*.%s: DAMAGED: %s\n", path, stem, suffix, why[0] ? why : strerror(-status));
    l->bad = true;
    return;
  }
  printf("%s/%s-*.%s: %zu file%s, %" PRIu64 " records, positions %" PRIu64 " to %" PRIu64 "\n", path, stem, suffix, n,
         n == 1 ? "" : "s", records, first, last);
}

/* --- maintenance windows --------------------------------------------------------------------------------------------- */

/* Prints the maintenance windows that clients have requested. */
static void look_at_maintenance(struct look *l, const struct hk_disk *disk, int folder, const char *path)
{
  struct hk_maintenance_saved saved = { 0 };
  struct hk_maintenance_line line;
  char whole[4096], why[WHY];
  uint32_t n = 0, damaged = 0, first = 0;
  int more = 0;
  const int status = hk_maintenance_saved_open(&saved, disk, folder);
  if (status == -ENOENT)
    return;
  l->files++;
  snprintf(whole, sizeof whole, "%s/" HK_MAINTENANCE_FILE, path);
  while (status == 0 && (more = hk_maintenance_saved_next(&saved, &line)) != 0) {
    n++;
    if (more < 0 && damaged++ == 0)
      first = n;
  }
  hk_maintenance_saved_close(&saved);
  snprintf(why, sizeof why, "%u of %u lines are not maintenance windows, the first is line %u", damaged, n, first);
  if (status != 0)
    say_bad(l, whole, strerror(-status));
  else if (damaged > 0)
    say_bad(l, whole, why);
  else
    printf("%s: %s%u window%s that clients asked for\n", whole, l->verify ? "good, " : "", n, n == 1 ? "" : "s");
}

/* --- folders --------------------------------------------------------------------------------------------------------- */

/* index: of the mark of its journal of points; HK_MARKS: unknown. */
static int look_at_folder(struct look *l, const struct hk_disk *disk, int folder, const char *path, uint32_t index)
{
  uint64_t *numbers;
  size_t n;
  const int status = hk_disk_list(disk, folder, HK_SNAPSHOT_STEM, HK_SNAPSHOT_SUFFIX, &numbers, &n);
  if (status != 0)
    return status;
  for (size_t i = 0; i < n; i++) {
    char name[HK_DISK_NAME_MAX], whole[4096];
    hk_disk_name(name, HK_SNAPSHOT_STEM, numbers[i], HK_SNAPSHOT_SUFFIX);
    snprintf(whole, sizeof whole, "%s/%s", path, name);
    look_at_snapshot(l, disk, folder, name, whole);
    l->files++;
  }
  free(numbers);
  look_at_journal(l, disk, folder, path, "journal", "hkj", index);
  look_aside(l, disk, folder, path, "journal");
  look_at_journal(l, disk, folder, path, "events", "hke", HK_MARK_EVENTS);
  return 0;
}

/* Examines the state folder, and the folders of the shards in it. */
static int look_at_state(struct look *l, const struct hk_disk *disk, const char *path)
{
  int folder = -1, status = hk_disk_folder_there(disk, AT_FDCWD, path, &folder);
  if (status == 0)
    (void)hk_marks_read(disk, folder, l->mark, l->marked); /* before the journals, which may go on meanwhile; none is no fault */
  if (status == 0)
    status = look_at_folder(l, disk, folder, path, HK_MARKS);
  if (status == 0)
    look_at_maintenance(l, disk, folder, path);
  for (uint32_t i = 0; i < HK_SHARDS_MAX && status == 0; i++) {
    char name[32], whole[4096];
    int shard;
    snprintf(name, sizeof name, "shard-%u", i);
    if (hk_disk_folder_there(disk, folder, name, &shard) != 0)
      continue;
    snprintf(whole, sizeof whole, "%s/%s", path, name);
    status = look_at_folder(l, disk, shard, whole, i);
    close(shard);
  }
  if (folder >= 0)
    close(folder);
  return status;
}

/* Whether a file of a state folder could have this name. */
static bool state_has_such(const char *path)
{
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  return strcmp(name, HK_MAINTENANCE_FILE) == 0 || strstr(name, "." HK_SNAPSHOT_SUFFIX) || strstr(name, ".hkj") ||
         strstr(name, ".hke");
}

/* Examines one file. Segments of a journal are examined together. */
static int look_at_file(struct look *l, const struct hk_disk *disk, const char *path)
{
  char in_folder[4096], in_name[4096];
  int folder;
  snprintf(in_folder, sizeof in_folder, "%s", path);
  snprintf(in_name, sizeof in_name, "%s", path);
  const char *directory = dirname(in_folder), *name = basename(in_name), *dot = strrchr(name, '.');
  const int status = hk_disk_folder_there(disk, AT_FDCWD, directory, &folder);
  if (status != 0)
    return status;
  if (dot && strcmp(dot, ".hkj") == 0) {
    look_at_journal(l, disk, folder, directory, "journal", "hkj", HK_MARKS);
  } else if (dot && strcmp(dot, ".hke") == 0) {
    look_at_journal(l, disk, folder, directory, "events", "hke", HK_MARK_EVENTS);
  } else if (strcmp(name, HK_MAINTENANCE_FILE) == 0) {
    look_at_maintenance(l, disk, folder, directory);
  } else {
    look_at_snapshot(l, disk, folder, name, path);
    l->files++;
  }
  close(folder);
  return 0;
}

int hk_command_state(int argc, char **argv)
{
  static const struct option options[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
  const struct hk_disk disk = { 0 };
  struct look look = { 0 };
  switch (hk_option_next(argc, argv, options)) {
  case HK_OPTION_WRONG:
    return HK_EXIT_USAGE;
  case HK_OPTION_HELP:
    fputs(state_help, stdout);
    return HK_EXIT_DONE;
  default:
    break;
  }
  static const char *const words[] = { "inspect", "verify", NULL };
  int word;
  if (hk_option_subcommand(argc, argv, words, &word) != 0)
    return HK_EXIT_USAGE;
  look.verify = word == 1;
  if (optind + 1 == argc)
    return hk_usage(argv, "%s needs a FILE or DIR", words[word]);
  for (int i = optind + 1; i < argc; i++) {
    struct stat there;
    if (stat(argv[i], &there) == 0 && !S_ISDIR(there.st_mode) && !state_has_such(argv[i]))
      return hk_failed(argv, "%s: no file of a state folder: these are .hks, .hkj, .hke and maintenance", argv[i]);
    const int status = stat(argv[i], &there) != 0 ? -errno
                       : S_ISDIR(there.st_mode)   ? look_at_state(&look, &disk, argv[i])
                                                  : look_at_file(&look, &disk, argv[i]);
    if (status != 0)
      return hk_failed(argv, "%s: %s", argv[i], strerror(-status));
  }
  if (look.files == 0)
    printf("nothing is kept there\n");
  return hk_finish_output(argv, look.bad ? HK_EXIT_FAILED : HK_EXIT_DONE);
}
