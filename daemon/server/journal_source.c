#include "daemon/server/journal_source.h"
#include "daemon/durable/journal_quarantine.h"
#include "daemon/durable/journal_read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void journal_source_on_damage(void *arg, const struct hk_journal_damaged *d)
{
  struct hk_journal_source *s = arg;
  if (d->tail && !(s->marked && (s->mark.segment > d->number || (s->mark.segment == d->number && s->mark.bytes > d->at)))) {
    hk_log(s->log, HK_LOG_NOTICE,
           "shard-%u/%s: the last %" PRIu64 " bytes, from %" PRIu64 " on, were written incompletely (%s) and are cut off; %s",
           s->shard, d->file, d->bytes, d->at, d->why,
           s->marked ? "nothing in them was acknowledged or published"
                     : "it is unknown whether anything in them was acknowledged or published");
    return;
  }
  if (d->missing)
    hk_log(s->log, HK_LOG_ERROR,
           "shard-%u/%s is intact, but %s; if that file was moved or there is a copy, stop the daemon and put it back", s->shard,
           d->file, d->why);
  else
    hk_log(s->log, HK_LOG_ERROR,
           "shard-%u/%s is damaged: %s at byte %" PRIu64 ", and %" PRIu64 " bytes of it are left out; look at the disk "
           "(hankel state verify names the place)",
           s->shard, d->file, d->why, d->at, d->bytes);
  s->missing |= d->missing;
  if (!s->damaged) {
    s->damaged = true;
    s->number = d->number;
    s->at = d->at;
  }
}

/* Nothing is missing if the snapshot has all of it, or if it was written again into a later segment because the disk had
 * failed. */
void hk_journal_source_judge(struct hk_journal_source *s, const struct hk_record *record)
{
  const bool again = !s->missing && hk_journal_number(s->reader) > s->number && record->position <= s->reached;
  if (record->position < s->from || again)
    s->damaged = s->missing = false;
  else
    s->over = true;
}

static struct hk_journal_place journal_source_place_of(const struct hk_journal_source *s)
{
  return (struct hk_journal_place){ .disk = &s->durable->disk,
                                    .folder = s->folder,
                                    .stem = "journal",
                                    .suffix = "hkj",
                                    .kind = HK_JOURNAL_POINTS,
                                    .shard = s->shard };
}

int hk_journal_source_open(struct hk_journal_source *s, struct hk_durable *d, uint32_t shard, uint64_t from, bool begun,
                           bool *there, char *error, size_t size)
{
  *s = (struct hk_journal_source){
    .durable = d, .log = d->log, .shard = shard, .folder = shard < d->shards ? d->shard_folder[shard] : -1
  };
  if (s->folder < 0) {
    char name[32];
    snprintf(name, sizeof name, "shard-%u", shard);
    s->folder = openat(d->folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    s->own = s->folder >= 0;
  }
  *there = s->folder >= 0;
  if (!*there)
    return 0;
  const struct hk_journal_place place = journal_source_place_of(s);
  char why[256];
  const int status = hk_journal_read(&s->reader, &place, from, journal_source_on_damage, s, why, sizeof why);
  if (status != 0)
    snprintf(error, size, "state = %s: shard-%u: %s", d->path, shard, why);
  s->marked = hk_marks_get(d->marks, shard, &s->mark);
  s->from = s->reached = from;
  s->begun = begun;
  return status;
}

void hk_journal_source_close(struct hk_journal_source *s)
{
  hk_journal_read_close(s->reader);
  if (s->own)
    close(s->folder);
}

/* Sets unused parts aside, where nothing overwrites them. */
static int journal_source_set_aside(const struct hk_journal_source *s, uint64_t *all, char *error, size_t size)
{
  const struct hk_journal_place place = journal_source_place_of(s);
  const uint64_t behind = s->behind > s->mark.position ? s->behind : s->mark.position;
  const uint64_t lost = behind > s->reached ? behind - s->reached : 0;
  const int status = hk_journal_set_aside(&place, s->number, s->at);
  if (status != 0) {
    snprintf(error, size, "state = %s: shard-%u: the damaged journal cannot be set aside: %s; make room, or move its files away",
             s->durable->path, s->shard, strerror(-status));
    return status;
  }
  *all += lost;
  hk_log(s->log, HK_LOG_ERROR,
         "shard %u: the journal ends at position %" PRIu64 ", where it is %s: at least %" PRIu64
         " points after that, which may have been acknowledged, are left out. The damaged part and what follows it are kept in "
         "shard-%u/journal-*." HK_JOURNAL_ASIDE,
         s->shard, s->reached, s->missing ? "incomplete" : "damaged", lost, s->shard);
  return 0;
}

/* Whether a journal once had more, by its mark, than it has. */
static bool is_short(const struct hk_journal_source *s)
{
  const struct hk_journal_mark *m = &s->mark;
  return m->segment > 0 && (m->position > s->reached || !hk_journal_holds(s->reader, m->segment, m->bytes, m->salt));
}

static void tell_short(const struct hk_journal_source *s, uint64_t *all)
{
  const uint64_t lost = s->mark.position > s->reached ? s->mark.position - s->reached : 0;
  *all += lost;
  hk_log(s->log, HK_LOG_ERROR,
         "shard %u: the end of the journal is missing: it reached position %" PRIu64 ", at byte %" PRIu64 " of file %" PRIu64
         ", and ends at position %" PRIu64 ": %" PRIu64
         " points that may have been acknowledged are lost, and sensors that came or went since",
         s->shard, s->mark.position, s->mark.bytes, s->mark.segment, s->reached, lost);
}

int hk_journal_source_mend(struct hk_journal_source *s, uint64_t *lost, char *error, size_t size)
{
  const bool less = !s->damaged && is_short(s);
  if (less)
    tell_short(s, lost);
  int status = s->damaged ? journal_source_set_aside(s, lost, error, size) : hk_journal_mend(s->reader);
  if (status == 0 && (s->damaged || less)) /* it is reported once */
    status = hk_marks_put(s->durable->marks, s->shard, &(struct hk_journal_mark){ .position = s->reached });
  return status;
}
